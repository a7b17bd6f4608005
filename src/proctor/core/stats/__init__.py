"""Pure numbers: distributions, moments, quantiles and intervals. Knows no record."""
