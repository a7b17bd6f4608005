"""User code for type checkers; `tests/test_typing.py` runs them."""
