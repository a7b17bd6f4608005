"""The nouns. Each is one frozen shape; nothing here does anything but hold and check."""
