"""The demonstration: a question answerer without a model, its questions, and its evaluation."""
