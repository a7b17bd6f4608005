"""The demo: a question answerer without a model, its questions, and its evaluation."""
