"""The identity of a target covers what it reaches in the user's project.

Every case is a small project in its own folder, examined in its own process: `before` and `after`
are the same project with one change.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from proctor.records.run import TargetSpec
from tests.tables import each_row

# Every project is examined in a fork. Its modules are imported again in each state; large packages are
# imported once, before the forks.
LOOK = """
import gc, importlib, json, os, pathlib, sys
gc.disable()
from proctor.targets.resolve import as_target
as_target("json:dumps").spec
PACKAGES = ("openai", "jinja2", "pydantic", "langchain_core.prompts", "langchain_core.runnables")

def write(files):
    for name, text in files.items():
        path = pathlib.Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

def forget_modules(folder):
    for name, module in list(sys.modules.items()):
        paths = [getattr(module, "__file__", None) or "", *getattr(module, "__path__", ())]
        if any(str(path).startswith(folder) for path in paths):
            del sys.modules[name]
    importlib.invalidate_caches()

for folder, states in json.load(sys.stdin):
    sources = " ".join(text for files in states for text in files.values())
    for package in PACKAGES:
        if f"import {package}" in sources or f"from {package}" in sources:
            importlib.import_module(package)
    os.makedirs(folder)
    os.chdir(folder)
    if os.fork() == 0:
        for files in states:
            write(files)
            forget_modules(folder)
            spec = as_target(sys.argv[1]).spec
            print(json.dumps([spec.identity, list(spec.uncovered), spec.parts]), flush=True)
        os._exit(0)
    assert os.wait()[1] == 0, folder
"""

Files = dict[str, str]
Look = tuple[str, list[str], dict[str, str]]


def look_at(
    projects: Sequence[tuple[Path, Sequence[Files]]], address: str = "target.py:answer", **environment: str
) -> list[list[Look]]:
    """The identity of the target in each state of each project, what it does not cover, and its named parts."""
    surroundings = {"PATH": "", "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONDONTWRITEBYTECODE": "1", **environment}
    finished = subprocess.run(
        [sys.executable, "-c", LOOK, address],
        input=json.dumps([(str(folder), states) for folder, states in projects]),
        env=surroundings,
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    lines = iter(finished.stdout.splitlines())
    return [[tuple(json.loads(next(lines))) for _ in states] for _, states in projects]


CHANGES: dict[str, tuple[Files, Files]] = {
    "a module constant": (
        {"target.py": "PROMPT = 'Be brief.'\ndef answer(q): return PROMPT + q"},
        {"target.py": "PROMPT = 'Be long.'\ndef answer(q): return PROMPT + q"},
    ),
    "a constant of an imported module": (
        {"target.py": "import prompts\ndef answer(q): return prompts.SYSTEM + q", "prompts.py": "SYSTEM = 'a'"},
        {"prompts.py": "SYSTEM = 'b'"},
    ),
    "a constant imported by name": (
        {"target.py": "from prompts import SYSTEM\ndef answer(q): return SYSTEM + q", "prompts.py": "SYSTEM = 'a'"},
        {"prompts.py": "SYSTEM = 'b'"},
    ),
    "a constant in a package, through another module": (
        {
            "target.py": "from app.chain import run\ndef answer(q): return run(q)",
            "app/__init__.py": "",
            "app/chain.py": "from . import texts\ndef run(q): return texts.inner.SYSTEM + q",
            "app/texts/__init__.py": "from . import inner",
            "app/texts/inner.py": "SYSTEM = 'a'",
        },
        {"app/texts/inner.py": "SYSTEM = 'b'"},
    ),
    "a function that is called": (
        {"target.py": "def ask(q): return q + 'a'\ndef answer(q): return ask(q)"},
        {"target.py": "def ask(q): return q + 'b'\ndef answer(q): return ask(q)"},
    ),
    "a function that is called by one that is called": (
        {"target.py": "def b(q): return 1\ndef a(q): return b(q)\ndef answer(q): return a(q)"},
        {"target.py": "def b(q): return 2\ndef a(q): return b(q)\ndef answer(q): return a(q)"},
    ),
    "a module that is imported inside the function": (
        {
            "target.py": "def answer(q):\n    from prompts import SYSTEM\n    return SYSTEM + q",
            "prompts.py": "SYSTEM = 'a'",
        },
        {"prompts.py": "SYSTEM = 'b'"},
    ),
    "a module that such a module imports": (
        {
            "target.py": "def answer(q):\n    import prompts\n    return prompts.SYSTEM + q",
            "prompts.py": "from texts import SYSTEM",
            "texts.py": "SYSTEM = 'a'",
        },
        {"texts.py": "SYSTEM = 'b'"},
    ),
    "a module that is imported by a relative import inside a package": (
        {
            "target.py": "def answer(q):\n    from app import chain\n    return chain.run(q)",
            "app/__init__.py": "",
            "app/chain.py": "from .texts import SYSTEM\ndef run(q): return SYSTEM + q",
            "app/texts.py": "SYSTEM = 'a'",
        },
        {"app/texts.py": "SYSTEM = 'b'"},
    ),
    "a file that the function opens": (
        {"target.py": "def answer(q): return open('prompt.txt').read() + q", "prompt.txt": "a"},
        {"prompt.txt": "b"},
    ),
    "a file that a constant names": (
        {
            "target.py": "from pathlib import Path\nFILE = Path(__file__).parent / 'p' / 'a.md'\n"
            "def answer(q): return FILE.read_text() + q",
            "p/a.md": "a",
        },
        {"p/a.md": "b"},
    ),
    "a file that was read when the module was": (
        {
            "target.py": "from pathlib import Path\nTEXT = Path('a.txt').read_text()\ndef answer(q): return TEXT + q",
            "a.txt": "a",
        },
        {"a.txt": "b"},
    ),
    "a template in a folder that is named": (
        {
            "target.py": "from pathlib import Path\ndef answer(q): return (Path('prompts') / (q + '.txt')).read_text()",
            "prompts/one.txt": "a",
            "prompts/two.txt": "b",
        },
        {"prompts/two.txt": "c"},
    ),
    "a Jinja template": (
        {
            "target.py": "import jinja2\n"
            "env = jinja2.Environment(loader=jinja2.FileSystemLoader('templates'))\n"
            "def answer(q): return env.get_template('a.j2').render(q=q)",
            "templates/a.j2": "a {{ q }}",
        },
        {"templates/a.j2": "b {{ q }}"},
    ),
    "a list of examples": (
        {"target.py": "SHOTS = [{'q': '1', 'a': '2'}]\ndef answer(q): return str(SHOTS) + q"},
        {"target.py": "SHOTS = [{'q': '1', 'a': '3'}]\ndef answer(q): return str(SHOTS) + q"},
    ),
    "a method that the class's __call__ uses": (
        {
            "target.py": "class A:\n    def ask(self, q): return 1\n"
            "    def __call__(self, q): return self.ask(q)\nanswer = A()"
        },
        {
            "target.py": "class A:\n    def ask(self, q): return 2\n"
            "    def __call__(self, q): return self.ask(q)\nanswer = A()"
        },
    ),
    "a constant of a base class": (
        {
            "target.py": "class B:\n    PROMPT = 'a'\nclass A(B):\n"
            "    def __call__(self, q): return self.PROMPT\nanswer = A()"
        },
        {
            "target.py": "class B:\n    PROMPT = 'b'\nclass A(B):\n"
            "    def __call__(self, q): return self.PROMPT\nanswer = A()"
        },
    ),
    "what an instance was made with": (
        {
            "target.py": "class A:\n    def __init__(self, p): self.p = p\n"
            "    def ask(self, q): return self.p\nanswer = A('a').ask"
        },
        {
            "target.py": "class A:\n    def __init__(self, p): self.p = p\n"
            "    def ask(self, q): return self.p\nanswer = A('b').ask"
        },
    ),
    "the function behind a decorator": (
        {
            "target.py": "import functools\ndef log(f):\n    @functools.wraps(f)\n"
            "    def inner(*a): return f(*a)\n    return inner\n@log\ndef answer(q): return 1"
        },
        {
            "target.py": "import functools\ndef log(f):\n    @functools.wraps(f)\n"
            "    def inner(*a): return f(*a)\n    return inner\n@log\ndef answer(q): return 2"
        },
    ),
    "a constant of a cached function": (
        {"target.py": "import functools\nP = 'a'\n@functools.cache\ndef answer(q): return P"},
        {"target.py": "import functools\nP = 'b'\n@functools.cache\ndef answer(q): return P"},
    ),
    "what a partial binds": (
        {"target.py": "import functools\ndef f(p, q): return p\nanswer = functools.partial(f, 'a')"},
        {"target.py": "import functools\ndef f(p, q): return p\nanswer = functools.partial(f, 'b')"},
    ),
    "a member of an enumeration": (
        {"target.py": "import enum\nclass P(enum.Enum):\n    A = 'a'\ndef answer(q): return P.A.value"},
        {"target.py": "import enum\nclass P(enum.Enum):\n    A = 'b'\ndef answer(q): return P.A.value"},
    ),
    "the description of a pydantic field": (
        {
            "target.py": "import pydantic\nclass A(pydantic.BaseModel):\n"
            "    x: str = pydantic.Field(description='a')\n"
            "def answer(q): return str(A.model_json_schema())"
        },
        {
            "target.py": "import pydantic\nclass A(pydantic.BaseModel):\n"
            "    x: str = pydantic.Field(description='b')\n"
            "def answer(q): return str(A.model_json_schema())"
        },
    ),
    "the docstring of a tool": (
        {"target.py": "def tool(): 'a'\ndef answer(q): return tool.__doc__"},
        {"target.py": "def tool(): 'b'\ndef answer(q): return tool.__doc__"},
    ),
    "a prompt template of LangChain": (
        {
            "target.py": "from langchain_core.prompts import ChatPromptTemplate as C\n"
            "PROMPT = C.from_messages([('system', 'a'), ('user', '{q}')])\n"
            "def answer(q): return PROMPT.format(q=q)"
        },
        {
            "target.py": "from langchain_core.prompts import ChatPromptTemplate as C\n"
            "PROMPT = C.from_messages([('system', 'b'), ('user', '{q}')])\n"
            "def answer(q): return PROMPT.format(q=q)"
        },
    ),
    "a function inside a LangChain chain": (
        {
            "target.py": "from langchain_core.runnables import RunnableLambda as R\nP = 'a'\n"
            "def f(q): return P\nanswer = R(f) | R(lambda x: x)"
        },
        {
            "target.py": "from langchain_core.runnables import RunnableLambda as R\nP = 'b'\n"
            "def f(q): return P\nanswer = R(f) | R(lambda x: x)"
        },
    ),
    "the class of an object with execute": (
        {"target.py": "P = 'a'\nclass L:\n    def execute(self, q): return P, None\nanswer = L()"},
        {"target.py": "P = 'b'\nclass L:\n    def execute(self, q): return P, None\nanswer = L()"},
    ),
    "a module that is looked up by getattr": (
        {"target.py": "import prompts\ndef answer(q): return getattr(prompts, q)", "prompts.py": "ONE = 'a'"},
        {"prompts.py": "ONE = 'b'"},
    ),
    "a setting of a model client of the user's": (
        {
            "target.py": "import agents\nagent = agents.Agent('a')\ndef answer(q): return agent.run(q)",
            "agents.py": "class Agent:\n    def __init__(self, p): self.p = p\n    def run(self, q): return self.p",
        },
        {"target.py": "import agents\nagent = agents.Agent('b')\ndef answer(q): return agent.run(q)"},
    ),
}


@pytest.fixture(scope="module")
def looks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Look]]:
    """Every project of this file before, unchanged, and after its change."""
    folder = tmp_path_factory.mktemp("projects")
    cases = {**CHANGES, **UNRELATED, **{code: ({"target.py": code}, {}) for code in CODES}}
    projects = [(folder / str(number), [before, {}, after]) for number, (before, after) in enumerate(cases.values())]
    return dict(zip(cases, look_at(projects), strict=True))


@each_row("case", CHANGES)
def test_a_change_that_the_target_reaches_changes_the_identity(case: str, looks: dict[str, list[Look]]) -> None:
    first, again, second = looks[case]
    assert first == again
    assert first[0] != second[0]
    assert not first[1]


NAMED_CHANGES = {
    "a module constant": "PROMPT in target.py changed",
    "a constant of an imported module": "SYSTEM in prompts.py changed",
    "a constant in a package, through another module": "SYSTEM in app/texts/inner.py changed",
    "a function that is called": "the function ask in target.py changed",
}


@each_row("case", NAMED_CHANGES)
def test_a_change_is_named(case: str, looks: dict[str, list[Look]]) -> None:
    before, _, after = (TargetSpec("answer", "function", look[0], parts=look[2]) for look in looks[case])
    assert after.describe_change(before) == NAMED_CHANGES[case]


def test_nearly_every_change_is_named(looks: dict[str, list[Look]]) -> None:
    """For the rest, a message can name only the whole target."""
    specs = {
        case: [TargetSpec("answer", "function", look[0], parts=look[2]) for look in looks[case]] for case in CHANGES
    }
    unnamed = [case for case, (before, _, after) in specs.items() if not after.describe_change(before)]
    assert unnamed == ["the description of a pydantic field"]


UNRELATED: dict[str, tuple[Files, Files]] = {
    "a function that is not called": (
        {"target.py": "def other(): return 1\ndef answer(q): return q"},
        {"target.py": "def other(): return 2\ndef answer(q): return q"},
    ),
    "a constant of another module that is not used": (
        {"target.py": "import prompts\ndef answer(q): return prompts.ONE", "prompts.py": "ONE = 1\nTWO = 2"},
        {"prompts.py": "ONE = 1\nTWO = 3"},
    ),
    "comments and line breaks": (
        {"target.py": "P = 'a'\ndef answer(q): return P + q"},
        {"target.py": "# a comment\n\nP = 'a'\n\n\ndef answer(q):\n    # here\n    return P + q"},
    ),
    "a file with a key": (
        {"target.py": "def answer(q): return open('tls.pem').read() and q", "tls.pem": "a"},
        {"tls.pem": "b"},
    ),
    "an empty file that tells another program has ended": (
        {"target.py": "import os\ndef answer(q): return os.path.exists('go')"},
        {"go": ""},
    ),
    "a file that nothing names": ({"target.py": "def answer(q): return q", "notes.txt": "a"}, {"notes.txt": "b"}),
    "an object's address": (
        {"target.py": "import threading\nLOCK = threading.Lock()\ndef answer(q):\n    with LOCK:\n        return q"},
        {},
    ),
}


@pytest.mark.parametrize("case", UNRELATED)
def test_other_changes_leave_the_identity(case: str, looks: dict[str, list[Look]]) -> None:
    """Cached outputs stay valid."""
    first, again, second = looks[case]
    assert first == again == second


PROJECT: Files = {
    "target.py": """
import json, os, re
from pathlib import Path
import app.prompts as prompts
HERE = os.path.dirname(os.path.abspath(__file__))
FILE = Path(__file__).parent / "prompts" / "system.txt"
CONFIG = json.loads((Path(__file__).parent / "config.json").read_text())
WORDS = {"alpha", "beta", "gamma", "delta"}
CALLS = []
class Agent:
    kinds = frozenset({"x", "y", "z"})
    def __init__(self): self.table = {word: {word} for word in WORDS}
    def __call__(self, q):
        CALLS.append(q)
        return FILE.read_text() + prompts.SYSTEM + HERE + str(CONFIG) + str(self.table)
answer = Agent()
""",
    "app/__init__.py": "",
    "app/prompts.py": "SYSTEM = 'Be brief.'",
    "prompts/system.txt": "You are kind.",
    "config.json": '{"temperature": 0}',
}


def test_the_identity_does_not_depend_on_the_folder_or_process(tmp_path: Path) -> None:
    item = look_at([(tmp_path / "one", [PROJECT])], PYTHONHASHSEED="1")
    other = look_at([(tmp_path / "a" / "deeper" / "place", [PROJECT])], PYTHONHASHSEED="2")
    assert item == other


def test_a_package_in_a_src_layout_and_a_script_are_covered(tmp_path: Path) -> None:
    files = {
        "src/pack/__init__.py": "",
        "src/pack/texts.py": "SYSTEM = 'a'",
        "src/pack/bot.py": "from pack.texts import SYSTEM\ndef answer(q): return SYSTEM + q",
        "pyproject.toml": "",
    }
    places = os.pathsep.join([*sys.path, str(tmp_path / "project" / "src")])
    states = [files, {"src/pack/texts.py": "SYSTEM = 'b'"}]
    ((before, after),) = look_at([(tmp_path / "project", states)], "pack.bot:answer", PYTHONPATH=places)
    assert before[0] != after[0]


UNCOVERED = {
    "import os\ndef answer(q): return os.environ['STYLE'] + q": ("the environment variable STYLE (in answer)"),
    "import os\ndef answer(q): return os.environ.get('STYLE', '') + q": ("the environment variable STYLE (in answer)"),
    "from os import getenv\ndef style(): return getenv('STYLE')\ndef answer(q): return style()": (
        "the environment variable STYLE (in style)"
    ),
    "import os\ndef answer(q): return os.getenv('A_' + q)": (
        "environment variables whose names are computed (in answer)"
    ),
    "def answer(q):\n    with open(f'{q}.txt') as file:\n        return file.read()": (
        "files whose names are computed (in answer)"
    ),
    "import importlib\ndef answer(q): return importlib.import_module(q).X": (
        "modules whose names are computed (in answer)"
    ),
    "def answer(q): return eval(q)": "code in strings (in answer)",
    "import subprocess\ndef answer(q): return subprocess.run(['x', q])": ("subprocesses (in answer)"),
}
ORDINARY = [
    "import os\ndef answer(q): return os.environ['OPENAI_API_KEY'] and q",
    "import json, re\ndef answer(q): return json.dumps(re.findall('a', q))",
    (
        "import openai\nclient = openai.OpenAI(api_key='sk-none')\n"
        "def answer(q): return client.chat.completions.create(model='m', messages=[])"
    ),
    "from pathlib import Path\ndef answer(q): return Path('target.py').read_text()",
    "def answer(q): return getattr(q, 'upper')()",
]
CODES = [*UNCOVERED, *ORDINARY]


@pytest.mark.parametrize("code", UNCOVERED)
def test_access_that_cannot_be_covered_has_a_warning(code: str, looks: dict[str, list[Look]]) -> None:
    """Environment variables, computed names and other programs."""
    assert looks[code][0][1] == [UNCOVERED[code]]


@pytest.mark.parametrize("code", ORDINARY)
def test_ordinary_targets_have_no_warnings(code: str, looks: dict[str, list[Look]]) -> None:
    """Keys, clients and files with constant names need no warning."""
    assert looks[code][0][1] == []


PICK = "from pathlib import Path\nHERE = Path(__file__).parent\ndef pick(q): return 'v1'\n"
PICK += "def note(path, text):\n    with open(path, 'a') as log: log.write(text)\n"
# Ways to load a prompt whose name is computed, from the folder of the code or one beside it.
LOADERS = {
    "read_text beside the code": "return (Path(__file__).parent / f'{pick(q)}.txt').read_text()",
    "read_text below a global": "return (HERE / (pick(q) + '.txt')).read_text()",
    "read_bytes": "return (HERE / f'{pick(q)}.txt').read_bytes()",
    "Path.open": "with (HERE / f'{pick(q)}.txt').open() as f: return f.read()",
    "a path in a variable": "p = HERE / f'{pick(q)}.txt'\n    with p.open() as f: return f.read()",
    "joinpath": "return HERE.joinpath(pick(q) + '.txt').read_text()",
    "with_name": "return Path(__file__).with_name(pick(q) + '.txt').read_text()",
    "open beside another file": "doc = 'README.md'\n    return open(f'{HERE}/{pick(q)}.txt').read()",
    "os.path.join": "import os\n    return open(os.path.join(HERE, pick(q) + '.txt')).read()",
    "a format": "return open('prompts/{}.txt'.format(pick(q))).read()",
    "a percent sign": "return open('prompts/%s.txt' % pick(q)).read()",
    "a folder beside a log": "with open('calls.log', 'a') as log: log.write(q)\n"
    "    return Path('prompts', pick(q) + '.txt').read_text()",
    "JSON beside a log": "import json\n    with open('calls.txt', 'a') as log: log.write(q)\n"
    "    with open('config.json') as f: return json.load(f)",
    "JSON beside a log of a helper": "import json\n    note('calls.txt', q)\n"
    "    with open('config.json') as f: return json.load(f)",
    "every file of the folder": "return [p.read_text() for p in HERE.glob('*.txt')]",
    "points in a file called key": "return open('key_points.txt').read()",
    "an answer key": "return Path('answer-key.md').read_text()",
}
UNSEEN = {
    "a parameter": ("return open(q).read()", "files whose names are computed (in answer)"),
    "a branch": (
        "name = q if q else 'README.md'\n    return open(name).read()",
        "files whose names are computed (in answer)",
    ),
    "a method of a parameter": ("return q.read_text()", "files whose names are computed (in answer)"),
    "a computed name beside a known file": (
        "return open('README.md').read() + open(pick(q)).read()",
        "files whose names are computed (in answer)",
    ),
    "a folder that is written": (
        "Path('prompts', q).write_text(q)\n    return Path('prompts', pick(q)).read_text()",
        "the folder prompts, which it may write to (in answer)",
    ),
    "a key file": ("return open('tls.pem').read()", "the key file tls.pem, which is not read (in answer)"),
    "a number of tokens": (
        "import os\n    return os.environ['MAX_TOKENS']",
        "the environment variable MAX_TOKENS (in answer)",
    ),
}
NOT_PROMPTS = ("README.md", "tls.pem")
PROMPTS = ("v1.txt", "prompts/v1.txt", "config.json", "key_points.txt", "answer-key.md")
BESIDE: Files = dict.fromkeys((*NOT_PROMPTS, *PROMPTS), "one")
EDITED: Files = dict.fromkeys(PROMPTS, "two")


@pytest.fixture(scope="module")
def loader_looks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Look]]:
    """Every loader before and after the prompts were edited, in a folder and in another one."""
    folder = tmp_path_factory.mktemp("loaders")
    bodies = {**LOADERS, **{name: body for name, (body, _) in UNSEEN.items()}}
    projects = [
        (folder / str(number), [{**BESIDE, "target.py": f"{PICK}def answer(q):\n    {body}\n"}, EDITED])
        for number, body in enumerate(bodies.values())
    ]
    return dict(zip(bodies, look_at(projects), strict=True))


@each_row("case", LOADERS)
def test_an_edited_prompt_file_changes_the_identity(case: str, loader_looks: dict[str, list[Look]]) -> None:
    """Whatever function opens it."""
    before, after = loader_looks[case]
    assert before[0] != after[0]


@pytest.mark.parametrize("case", UNSEEN)
def test_a_read_that_is_not_covered_has_a_warning(case: str, loader_looks: dict[str, list[Look]]) -> None:
    assert UNSEEN[case][1] in loader_looks[case][0][1]


def test_a_constant_that_the_code_changes_counts_by_its_source(tmp_path: Path) -> None:
    """Its content at run time has a warning."""
    code = "CONFIG = {'system': 'be nice'}\ndef answer(q):\n    CONFIG.update(last=q)\n    return CONFIG"
    states = [{"target.py": code}, {"target.py": code.replace("nice", "rude")}]
    ((before, after),) = look_at([(tmp_path / "project", states)])
    assert before[0] != after[0]
    assert before[1] == ["CONFIG, which the code changes (in answer)"]


def test_caches_and_counters_are_ignored_without_a_warning(tmp_path: Path) -> None:
    code = (
        "from collections import defaultdict\n"
        "MEMO = {}\nTALLY = {'a': 0}\nSEEN = defaultdict(list)\n"
        "def answer(q):\n    MEMO[q] = q\n    TALLY['a'] += 1\n    SEEN.update(a=q)\n    return q"
    )
    (((_, uncovered, _),),) = look_at([(tmp_path / "project", [{"target.py": code}])])
    assert uncovered == []


def define_answer(code: str) -> Any:
    """Return the function `answer` that some code defines."""
    names: dict[str, Any] = {"__name__": "made_here"}
    exec(code, names)
    return names


def test_state_that_the_target_changes_does_not_count() -> None:
    """A list of calls, a counter, a cache."""
    from proctor.core.identity import compute_digest

    names = define_answer(
        "CALLS = []\nMEMO = {}\nCOUNT = 0\nTALLY = {'a': 0}\n"
        "def answer(q):\n    global COUNT\n    COUNT += 1\n    CALLS.append(q)\n"
        "    MEMO[q] = q\n    TALLY['a'] += 1\n    return q\n"
    )
    before = compute_digest(names["answer"])
    names["answer"]("x")
    assert (names["COUNT"], names["CALLS"], names["TALLY"]) == (1, ["x"], {"a": 1})
    assert compute_digest(names["answer"]) == before


def test_a_constant_reassigned_in_a_notebook_counts() -> None:
    from proctor.core.identity import compute_digest

    names = define_answer("PROMPT = 'a'\nSHOTS = ['x']\ndef answer(q): return PROMPT + SHOTS[0]")
    before = compute_digest(names["answer"])
    names["PROMPT"] = "b"
    between = compute_digest(names["answer"])
    names["SHOTS"].append("y")
    assert len({before, between, compute_digest(names["answer"])}) == 3


def test_using_a_client_or_an_environment_does_not_change_the_identity(tmp_path: Path) -> None:
    """Libraries fill their caches at the first call."""
    import jinja2
    import openai

    from proctor.core.identity import compute_digest

    (tmp_path / "a.j2").write_text("{{ q }}")
    names = define_answer("def answer(q):\n    client.chat\n    return env.get_template('a.j2').render(q=q)")
    names["client"] = openai.OpenAI(api_key="sk-none")
    names["env"] = jinja2.Environment(loader=jinja2.FileSystemLoader(tmp_path))
    before = compute_digest(names["answer"])
    assert names["answer"]("hi") == "hi"
    assert compute_digest(names["answer"]) == before


def test_no_user_code_runs() -> None:
    """Properties, reprs, iterators and attribute hooks are not called."""
    from proctor.core.identity import compute_digest

    names = define_answer(
        "RAN = []\n"
        "class Trap:\n"
        "    def __init__(self): self.x = 1\n"
        "    def __repr__(self): return str(RAN.append('repr'))\n"
        "    def __iter__(self): return iter([RAN.append('iter')])\n"
        "    def __eq__(self, other): return bool(RAN.append('eq'))\n"
        "    def __hash__(self): return RAN.append('hash') or 1\n"
        "    @property\n"
        "    def complete(self): return RAN.append('property')\n"
        "    def __getattr__(self, name): return RAN.append(name)\n"
        "class Table(dict):\n"
        "    def items(self): return [RAN.append('items')]\n"
        "    def __len__(self): return RAN.append('len') or 0\n"
        "    def __iter__(self): return iter([RAN.append('iter')])\n"
        "TRAP = Trap()\nTABLE = Table(a=1)\ndef answer(q): return TRAP, TABLE\n"
    )
    assert compute_digest(names["answer"]) == compute_digest(names["answer"])
    assert names["RAN"] == []


def test_instructions_agree_with_dis() -> None:
    """For every function of a large module."""
    import argparse
    import dis
    import inspect
    import typing
    from types import CodeType

    from proctor.core.identity.code import _NO_EFFECT, iterate_steps

    named = {*dis.hasname, *dis.hasconst, *dis.hasfree}

    def check(code: CodeType) -> int:
        results = [
            (step.opname, step.argval if step.opcode in named else step.arg or 0)
            for step in dis.get_instructions(code)
            if step.opname not in (*_NO_EFFECT, "KW_NAMES")
        ]
        mine = [(step.name, step.value) for step in iterate_steps(code) if step.name != "KW_NAMES"]
        assert mine == results
        return 1 + sum(check(each) for each in code.co_consts if isinstance(each, CodeType))

    modules = (argparse, inspect, typing, dis)
    assert sum(check(compile(inspect.getsource(each), "x", "exec")) for each in modules) > 500


def test_a_call_chain_deeper_than_the_stack_is_followed() -> None:
    from proctor.core.identity import compute_identity

    chain = "".join(f"def f{n}(q): return f{n + 1}(q)\n" for n in range(1500))
    first, other = (define_answer(f"{chain}def f1500(q): return q + {end!r}\n")["f0"] for end in "ab")
    assert compute_identity(first).digest == compute_identity(first).digest
    assert compute_identity(first).digest != compute_identity(other).digest
    assert compute_identity(first).uncovered == ()


HOME_READS = {
    "expanduser": 'import os\n\ndef answer(q):\n    return open(os.path.expanduser("~/prompt.txt")).read()\n',
    "expandvars": 'import os\n\ndef answer(q):\n    return open(os.path.expandvars("$HOME/prompt.txt")).read()\n',
    "joined": (
        'import os\n\ndef answer(q):\n    path = os.path.join(os.path.expanduser("~"), "prompt.txt")\n'
        "    return open(path).read()\n"
    ),
    "pathlib": (
        'from pathlib import Path\n\ndef answer(q):\n    return (Path("~").expanduser() / "prompt.txt").read_text()\n'
    ),
    "Path.home": 'from pathlib import Path\n\ndef answer(q):\n    return (Path.home() / "prompt.txt").read_text()\n',
    "unknown variable": 'import os\n\ndef answer(q):\n    return open(os.path.expandvars("$NOT_SET/a.txt")).read()\n',
}


def test_files_in_the_home_folder_are_covered_or_named(tmp_path: Path) -> None:
    """With `expanduser`, `expandvars` or joined paths: a change is noticed, or the target has a warning."""
    home = tmp_path / "home"
    prompts = [{str(home / "prompt.txt"): text} for text in ("one", "two")]
    projects = [
        (tmp_path / name, [{"target.py": source} | prompt for prompt in prompts]) for name, source in HOME_READS.items()
    ]
    looks = dict(zip(HOME_READS, look_at(projects, HOME=str(home)), strict=True))
    covered = {name for name, (before, after) in looks.items() if before[0] != after[0]}
    named = {name for name, (before, _) in looks.items() if before[1]}
    assert covered >= {"expanduser", "expandvars", "joined", "pathlib"}
    assert covered | named == set(HOME_READS)
