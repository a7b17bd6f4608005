"""What an identity cannot cover, gathered for the warnings of a run."""

from __future__ import annotations

from proctor.identity.code import COMPUTED, CodeFacts


class Uncovered:
    """Phrases by what they are about, each with the functions that it was seen in."""

    def __init__(self) -> None:
        self._seen: dict[str, set[str]] = {}

    def add(self, what: str, where: str) -> None:
        """Note one thing that is not covered, and the function that uses it."""
        self._seen.setdefault(what, set()).add(where)

    def add_facts(self, facts: CodeFacts, where: str) -> None:
        """Note what the code of a function tells."""
        for name in facts.environment:
            what = "environment variables whose names are computed"
            self.add(what if name == COMPUTED else f"the environment variable {name}", where)
        for what in facts.dynamic:
            self.add(what, where)

    def phrases(self) -> tuple[str, ...]:
        """One phrase for each, in order.

        >>> uncovered = Uncovered()
        >>> uncovered.add("the environment variable STYLE", "answer")
        >>> uncovered.phrases()
        ('the environment variable STYLE (in answer)',)
        """
        return tuple(
            f"{what} (in {', '.join(sorted(places))})" if (places := seen - {""}) else what
            for what, seen in sorted(self._seen.items())
        )
