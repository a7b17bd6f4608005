"""How likely people would call a text toxic: a linear model of words, shipped as data."""
