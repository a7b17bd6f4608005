"""Where samples come from: memory, JSONL and CSV files, iterators, and the user's own objects."""
