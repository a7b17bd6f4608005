"""Statistics of plain numbers: distributions, intervals, tests, effect sizes, agreement and power."""
