"""Check, sentence by sentence, whether a context supports a text."""
