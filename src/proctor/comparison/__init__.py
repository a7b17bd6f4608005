"""Configurations side by side: differences with intervals, and places in a ranking."""
