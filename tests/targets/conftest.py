"""The packages of agents are installed for one Python version only; see tools/bootstrap.py."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("agents") else ["test_agents.py"]
