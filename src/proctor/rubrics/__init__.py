"""Rubric files: read with every fault at once, their JSON Schema, and the set that ships.

`files` reads them, `starter.yaml` is the set that ships, `schema` is for editors.
"""
