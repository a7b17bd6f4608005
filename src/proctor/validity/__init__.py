"""Checks of the checks themselves: labels, judge cards, noise, mutation tests, item analysis and alarms."""
