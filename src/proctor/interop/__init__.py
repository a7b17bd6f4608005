"""Files of other evaluation tools: read as samples and recorded runs, written from runs."""
