"""Old names, until the tests follow."""

from proctor.testing.history_contract import NOON as NOON
from proctor.testing.history_contract import make_failure as a_failure
from proctor.testing.history_contract import make_result as a_result
from proctor.testing.history_contract import make_run as a_run
from proctor.testing.history_contract import run_ids as ids
from proctor.testing.history_contract import store_run as store

__all__ = ["NOON", "a_failure", "a_result", "a_run", "ids", "store"]
