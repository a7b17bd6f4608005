"""The project that the command-line tests work in, here too, and one with logs and a judge."""

from tests.cli.conftest import project
from tests.rubrics.batches import batch

__all__ = ["batch", "project"]
