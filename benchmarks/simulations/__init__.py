"""Simulations that check the claims of the statistics."""
