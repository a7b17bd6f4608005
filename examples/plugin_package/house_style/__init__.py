"""Evaluators for everyone who installs this package."""

from proctor import evaluator


@evaluator(category="style", pure=True)
def no_shouting(output: str) -> bool:
    """Passes if the output is not all in capitals."""
    return not output.isupper()
