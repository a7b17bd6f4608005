"""Files of other evaluation tools."""
