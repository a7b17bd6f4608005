"""Runs as files, to be looked at elsewhere or taken into another history; nothing is lost."""
