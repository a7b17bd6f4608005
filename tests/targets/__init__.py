"""The targets room."""
