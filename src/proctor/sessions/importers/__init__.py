"""Import recorded sessions: chat logs and traces, one module per format."""
