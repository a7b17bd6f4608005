"""Read model and tool calls from spans and messages of the GenAI conventions."""
