"""The command line: one module per command. Each parses its options, calls the engine, and prints."""
