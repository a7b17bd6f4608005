"""Personal data and secrets: found in texts, and taken out of what is stored."""
