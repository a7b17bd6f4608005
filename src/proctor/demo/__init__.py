"""The demo: a question-answering program without a model, its questions, and its evaluation."""
