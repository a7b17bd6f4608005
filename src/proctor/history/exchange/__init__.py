"""Export runs to files and import them into another history, without loss."""
