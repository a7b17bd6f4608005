"""Evaluators: functions of an output, and of what was expected, that give a score."""
