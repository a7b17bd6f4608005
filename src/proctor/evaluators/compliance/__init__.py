"""Policies: what a text must not give away, claim or decline; one file for each."""
