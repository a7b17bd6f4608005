"""Whether results can be trusted: human labels, judge cards, noise, mutation tests, item analysis, alarms."""
