"""What spans tell of models and tools, by the conventions in use; plain data in, records out."""
