"""Every way for a function to reach a prompt: its identity notices an edit, or a warning names it.

Each case is one project. Its prompts are edited, and the target is examined before and after.
"""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

from proctor.core.identity import compute_identity
from proctor.core.imports import import_object
from tests.core.test_identity_of_projects import Files, Look, look_at
from tests.tables import each_row

# All the places that hold a prompt; every one of them is edited.
PROMPTS: Files = {
    "prompts.py": "SYSTEM = 'one'\ndef __getattr__(name): return 'one'",
    "pack/__init__.py": "",
    "pack/texts.py": "SYSTEM = 'one'",
    "pack/a.txt": "one",
    "pack/__main__.py": "SYSTEM = 'one'",
    "texts/a.txt": "one",
    "texts/deep/b.txt": "one",
    "hidden/.a.txt": "one",
    "script.py": "SYSTEM = 'one'",
    "chained.py": "from prompts import SYSTEM",
    "lazy.py": (
        "import importlib\nimport importlib.util\nfrom pathlib import Path\n"
        "HERE = Path(__file__).parent\n"
        "def by_name(): return importlib.import_module('prompts').SYSTEM\n"
    ),
    "lazy_texts.py": (
        "from pathlib import Path\nTEXTS = [p.read_text() for p in (Path(__file__).parent / 'texts').glob('*.txt')]\n"
    ),
    "lazy_computed.py": "from importlib import import_module as load\ndef f(q): return load(q)",
}
EDITED: Files = {name: text.replace("one", "two") for name, text in PROMPTS.items()}

HEAD = """
import builtins, glob, importlib, importlib.metadata, importlib.resources, importlib.util
import inspect, operator, os, pkgutil, runpy, sys
from importlib import import_module, import_module as load, resources
from pathlib import Path
HERE = Path(__file__).parent
NAME = 'prompts'
def helper(): return 1
"""
OTHER_NAMES = "OPEN = open\nLOADERS = {'py': importlib.import_module}\n"
# The prompt can be found from the code alone: the identity covers it, without a warning.
COVERED = {
    "import_module of a constant": "return importlib.import_module('prompts').SYSTEM",
    "import_module by its bare name": "return import_module('prompts').SYSTEM",
    "import_module by another name": "return load('prompts').SYSTEM",
    "import_module in a local variable": "f = importlib.import_module\n    return f('prompts')",
    "import_module by getattr": "return getattr(importlib, 'import_module')('prompts').SYSTEM",
    "import_module of a global": "return importlib.import_module(NAME).SYSTEM",
    "import_module by keyword": "return importlib.import_module(name='prompts').SYSTEM",
    "import_module of a submodule": "return importlib.import_module('pack.texts').SYSTEM",
    "import_module of a relative name": "return importlib.import_module('.texts', 'pack').SYSTEM",
    "import_module that imports a prompt": "return importlib.import_module('chained').SYSTEM",
    "import_module imported inside": ("from importlib import import_module as get\n    return get('prompts').SYSTEM"),
    "import_module in a nested function": (
        "def inner(): return importlib.import_module('prompts').SYSTEM\n    return inner()"
    ),
    "__import__ of a constant": "return __import__('prompts').SYSTEM",
    "builtins.__import__": "return builtins.__import__('prompts').SYSTEM",
    "__import__ with a list of names": ("return __import__('pack', fromlist=['texts']).texts.SYSTEM"),
    "sys.modules": "import prompts\n    return sys.modules['prompts'].SYSTEM",
    "sys.modules.get": "return sys.modules.get('prompts').SYSTEM",
    "vars of a module": "import prompts\n    return vars(prompts)['SYSTEM']",
    "run_module": "return runpy.run_module('prompts')['SYSTEM']",
    "run_module of a package": "return runpy.run_module('pack')['SYSTEM']",
    "run_path": "return runpy.run_path('script.py')['SYSTEM']",
    "run_path of a script that imports": "return runpy.run_path(str(HERE / 'chained.py'))",
    "a module from a file": (
        "spec = importlib.util.spec_from_file_location('x', HERE / 'chained.py')\n"
        "    return spec.loader.load_module().SYSTEM"
    ),
    "pkgutil.get_data": "return pkgutil.get_data('pack', 'a.txt')",
    "resources.files": "return resources.files('pack').joinpath('a.txt').read_text()",
    "resources.files and a slash": ("return (importlib.resources.files('pack') / 'a.txt').read_text()"),
    "resources.read_text": "return resources.read_text('pack', 'a.txt')",
    "resources with a computed name": ("return (resources.files('pack') / f'{q}.txt').read_text()"),
    "glob of a folder": "return [p.read_text() for p in (HERE / 'texts').glob('*.txt')]",
    "sorted glob": "return [p.read_text() for p in sorted(Path('texts').glob('*.txt'))]",
    "glob in a loop": (
        "out = ''\n    for p in Path('texts').glob('*.txt'):\n        out += p.read_text()\n    return out"
    ),
    "rglob from the code": "return [p.read_text() for p in HERE.rglob('b.txt')]",
    "glob with two stars": "return [p.read_text() for p in HERE.glob('**/b.txt')]",
    "iterdir": "return [p.read_text() for p in (HERE / 'texts').iterdir() if p.is_file()]",
    "os.listdir": ("return [open(os.path.join('texts', n)).read() for n in os.listdir('texts')]"),
    "glob.glob": "return [open(p).read() for p in glob.glob('texts/*.txt')]",
    "glob.glob below the code": (
        "return [open(p).read() for p in glob.glob(str(HERE / '**' / 'b.txt'), recursive=True)]"
    ),
    "a function imported inside": ("from glob import glob as g\n    return [open(p).read() for p in g('texts/*.txt')]"),
    "os.scandir": "return [open(e.path).read() for e in os.scandir('texts') if e.is_file()]",
    "a module that imports by name": "import lazy\n    return lazy.by_name()",
    "a module that lists a folder": "import lazy_texts\n    return lazy_texts.TEXTS",
    "import_module in a try block": (
        "try:\n        m = importlib.import_module('prompts')\n"
        "    except ImportError:\n        m = None\n    return m.SYSTEM"
    ),
    "import_module in a lambda": "return (lambda: import_module('prompts').SYSTEM)()",
    "linecache": "import linecache\n    return linecache.getlines('texts/a.txt')",
    "a hidden file in a folder": "return Path('hidden', f'.{q}.txt').read_text()",
    "a name in a subfolder": "return (HERE / 'texts' / f'{q}.txt').read_text()",
    "a name two subfolders down": "return (HERE / 'texts' / 'deep' / f'{q}.txt').read_text()",
    "a computed subfolder": "return (HERE / q / 'a.txt').read_text()",
    "a computed subfolder in a text": "return open(f'{HERE}/{q}/a.txt').read()",
    "a computed name that may hold a folder": "return (HERE / f'{q}.txt').read_text()",
}
# Only a run can tell which prompt it is: a warning names that.
NAMED = {
    "import_module of a parameter": "return importlib.import_module(q).SYSTEM",
    "import_module of a computed name": "return importlib.import_module('p' + q).SYSTEM",
    "import_module by another name, computed": "return load(q).SYSTEM",
    "import_module as a value": "return list(map(importlib.import_module, [q]))",
    "import_module as a value, imported inside": (
        "from importlib import import_module as get\n    return list(map(get, [q]))"
    ),
    "import_module out of a table": "return LOADERS['py'](q)",
    "import_module in a branch": "f = import_module if q else load\n    return f(q).SYSTEM",
    "import_module in an attribute": ("class A: pass\n    a = A()\n    a.load = import_module\n    return a.load(q)"),
    "import_module as a default": "def f(n, get=import_module): return get(n)\n    return f(q)",
    "import_module in a closure": ("get = import_module\n    def inner(): return get(q)\n    return inner()"),
    "a module that imports a computed name": "import lazy_computed\n    return lazy_computed.f(q)",
    "linecache of a parameter": "import linecache\n    return linecache.getlines(q)",
    "every name in sys.modules": "return [m for m in sys.modules.values() if m]",
    "__import__ of a parameter": "return __import__(q).SYSTEM",
    "sys.modules of a parameter": "return sys.modules[q].SYSTEM",
    "sys.modules as a value": "m = dict(sys.modules)\n    return m[q]",
    "run_module of a parameter": "return runpy.run_module(q)",
    "run_path of a parameter": "return runpy.run_path(q)",
    "pkgutil.get_data of a parameter": "return pkgutil.get_data(q, 'a.txt')",
    "pkgutil.iter_modules": "return list(pkgutil.iter_modules([q]))",
    "resources of a parameter": "return resources.files(q).joinpath('a.txt').read_text()",
    "files of a distribution": "return importlib.metadata.files(q)",
    "entry points": "return importlib.metadata.entry_points(group=q)",
    "exec of a file": "d = {}\n    exec(open('script.py').read(), d)\n    return d['SYSTEM']",
    "eval of a text": "return eval(q)",
    "builtins.eval": "return builtins.eval(q)",
    "compile of a text": "return compile(q, 'x', 'exec')",
    "open by another name": "return OPEN(q).read()",
    "glob in a folder of a parameter": "return [str(p) for p in q.glob('*.txt')]",
    "os.walk of a parameter": "return list(os.walk(q))",
    "os.scandir of a parameter": "return list(os.scandir(q))",
    "os.listdir as a value": "return list(map(os.listdir, [q]))",
    "glob.glob of a parameter": "return glob.glob(q)",
    "the module of a frame": "return sys._getframe(1).f_globals[q]",
    "the globals of a function": "return helper.__globals__[q]",
    "inspect.getmodule": "return inspect.getmodule(helper).X",
    "a module from a file of a parameter": (
        "return importlib.util.spec_from_file_location('x', q).loader.load_module()"
    ),
}
# Prompts in the module of the target itself.
OWN_MODULE = {
    "globals()": "return globals()['PROMPT']",
    "globals().get": "return globals().get('PROMPT')",
    "globals() in a variable": "g = globals()\n    return g['PROMPT']",
    "globals() with a computed key": "return globals()[q]",
    "globals() as keywords": "return '{PROMPT}'.format(**globals())",
    "globals() in a comprehension": "return [globals()[k] for k in ['PROMPT']]",
    "vars of its module": "return vars(sys.modules[__name__])['PROMPT']",
    "getattr of its module": "return getattr(sys.modules[__name__], 'PROMPT')",
    "getattr of its module, computed": "return getattr(sys.modules[__name__], q)",
    "an attribute of its module": "return sys.modules[__name__].PROMPT",
    "its module in a variable": "me = sys.modules[__name__]\n    return me.PROMPT",
    "attrgetter": "return operator.attrgetter('PROMPT')(sys.modules[__name__])",
    "an imported module of its own name": "return importlib.import_module(__name__).PROMPT",
}
# Prompts in a module that is imported when the target's module is.
OTHER_MODULE = {
    "__dict__": "return prompts.__dict__['SYSTEM']",
    "vars": "return vars(prompts)['SYSTEM']",
    "a module's __getattr__": "return prompts.OTHER",
    "sys.modules of a loaded module": "return sys.modules['prompts'].SYSTEM",
    "attrgetter of a module": "return operator.attrgetter('SYSTEM')(prompts)",
    "reload": "return importlib.reload(prompts).SYSTEM",
}


def target_source(body: str, head: str) -> str:
    """Return the source of a target with a body."""
    return f"{head}\ndef answer(q='a'):\n    {body}\n"


def make_cases() -> dict[str, tuple[Files, Files]]:
    """Return every project before and after its prompts are edited."""
    cases = {
        name: ({**PROMPTS, "target.py": target_source(body, HEAD + OTHER_NAMES)}, EDITED)
        for name, body in {**COVERED, **NAMED}.items()
    }
    for name, body in OTHER_MODULE.items():
        code = target_source(body, f"{HEAD}import prompts\n")
        cases[f"other: {name}"] = ({**PROMPTS, "target.py": code}, EDITED)
    for name, body in OWN_MODULE.items():
        item, two = (target_source(body, f"{HEAD}PROMPT = {text!r}\n") for text in ("one", "two"))
        cases[f"own: {name}"] = ({"target.py": item}, {"target.py": two})
    return cases


CASES = make_cases()
MUST_COVER = [*COVERED, *(name for name in CASES if name.startswith(("own: ", "other: ")))]


@pytest.fixture(scope="module")
def looks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Look]]:
    """The identity of every case before, unchanged, and after its prompts were edited."""
    folder = tmp_path_factory.mktemp("reached")
    projects = [(folder / str(number), [before, {}, after]) for number, (before, after) in enumerate(CASES.values())]
    return dict(zip(CASES, look_at(projects), strict=True))


@each_row("case", CASES)
def test_an_edited_prompt_changes_the_identity_or_has_a_warning(case: str, looks: dict[str, list[Look]]) -> None:
    before, unchanged, after = looks[case]
    assert before == unchanged
    assert before[0] != after[0] or before[1]


@each_row("case", MUST_COVER)
def test_a_prompt_with_a_constant_name_is_covered(case: str, looks: dict[str, list[Look]]) -> None:
    """No warning is needed if the code names the module, variable or folder."""
    before, _, after = looks[case]
    assert before[0] != after[0]
    assert before[1] == []


@each_row("case", NAMED)
def test_access_by_computed_names_has_one_warning(case: str, looks: dict[str, list[Look]]) -> None:
    """It names the kind of access and the function."""
    warnings = looks[case][0][1]
    assert warnings
    assert len(set(warnings)) == len(warnings)
    assert all("answer" in warning or "lazy_computed" in warning for warning in warnings)


# Targets as people write them: nothing in them asks for a warning.
ORDINARY = {
    "a LangChain chain": """
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.output_parsers import StrOutputParser
PROMPT = ChatPromptTemplate.from_messages([("system", "Be brief."), ("user", "{q}")])
def model(messages): return "yes"
answer = {"q": RunnablePassthrough()} | PROMPT | RunnableLambda(model) | StrOutputParser()
""",
    "an OpenAI client": """
import json, logging, openai
from importlib.metadata import version
log = logging.getLogger(__name__)
client = openai.OpenAI(api_key="sk-none")
TOOLS = [{"type": "function", "function": {"name": "search"}}]
def search(query): return [query]
FUNCTIONS = {"search": search}
def answer(q):
    log.info("openai %s", version("openai"))
    reply = client.chat.completions.create(model="m", messages=[{"role": "user", "content": q}])
    for call in reply.choices[0].message.tool_calls or []:
        arguments = json.loads(call.function.arguments)
        q += str(FUNCTIONS[call.function.name](**arguments))
    return getattr(reply, "output_text", q)
""",
    "a class with __call__": """
import dataclasses, re, sys
from pathlib import Path
PATTERN = re.compile("a+")
@dataclasses.dataclass
class Agent:
    prompt: str = "Be brief."
    seen: list = dataclasses.field(default_factory=list)
    def __call__(self, q):
        fast = "numpy" in sys.modules
        return self.prompt.format(**vars(self)) + PATTERN.sub("b", q) + Path(q).suffix
answer = Agent()
""",
    "a partial": """
import functools
def ask(prompt, q, **options): return prompt + q
answer = functools.partial(ask, "Be brief.", temperature=0)
""",
    "a closure": """
def make(prompt, tools):
    def answer(q):
        chosen = [tool for tool in tools if tool.__name__ in q]
        return prompt + "".join(tool(q) for tool in chosen)
    return answer
answer = make("Be brief.", [str.upper, lambda q: q])
""",
    "modules of installed packages": """
import importlib, importlib.util, sys
from importlib import resources
def answer(q, kind="chat"):
    json = importlib.import_module("json")
    prompts = importlib.import_module("langchain_core.prompts")
    part = importlib.import_module(f"langchain_core.{kind}")
    has_numpy = importlib.util.find_spec("numpy") is not None
    text = resources.files("openai").joinpath("py.typed").read_text()
    return json.dumps([q, text, has_numpy, sys.modules["json"].__name__])
""",
    "methods that only sound alike": """
import ast, re
class Model:
    def eval(self): return self
    def compile(self, **options): return self
    def files(self, name): return [name]
model = Model()
def answer(q):
    tree = ast.parse(q)
    names = [node for node in ast.walk(tree)]
    model.eval().compile(loss="x").files("a")
    return re.compile("a").sub("b", q), locals().get("q"), vars(model).get("x"), names
""",
    "an async agent": """
import asyncio
SYSTEM = "Be brief."
async def tool(q): return q
async def answer(q):
    async with asyncio.timeout(5):
        parts = await asyncio.gather(*(tool(part) for part in q.split()))
    return SYSTEM + " ".join(parts)
""",
}


@pytest.mark.parametrize("case", ORDINARY)
def test_ordinary_targets_have_no_warning(case: str, ordinary: dict[str, list[Look]]) -> None:
    first, again = ordinary[case]
    assert first == again
    assert first[1] == []


@pytest.fixture(scope="module")
def ordinary(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Look]]:
    """Every ordinary target, examined by two processes."""
    folder = tmp_path_factory.mktemp("ordinary")
    projects = [
        (folder / str(number), [{"target.py": code, "data/x.json": "{}"}, {}])
        for number, code in enumerate(ORDINARY.values())
    ]
    return dict(zip(ORDINARY, look_at(projects), strict=True))


@pytest.mark.parametrize(
    ("body", "phrases"),
    [
        ("return sqlite3.connect('p.db')", ("the database p.db (in answer)",)),
        ("return connect(database='data/p.db')", ("the database p.db (in answer)",)),
        ("import sqlite3 as driver\n    return driver.connect('p.db')", ("the database p.db (in answer)",)),
        ("return sqlite3.connect(q)", ("a database whose name is computed (in answer)",)),
        ("return sqlite3.connect(':memory:')", ()),
    ],
)
def test_a_database_has_a_warning(body: str, phrases: tuple[str, ...], tmp_path: Path) -> None:
    """Its content can change the answers, and is not part of the identity."""
    file = tmp_path / "app_with_database.py"
    file.write_text(f"import sqlite3\nfrom sqlite3 import connect\ndef answer(q):\n    {body}\n")
    assert compute_identity([import_object(f"{file}:answer")])[1] == phrases


@pytest.mark.parametrize(
    "body",
    [
        "return open(PROMPTS[q]).read()",
        "return Path(PROMPTS[q]).read_text()",
        "return FILES[q].read_text()",
        "return io.open(LISTED[len(q)]).read()",
    ],
)
def test_files_listed_in_a_constant_are_covered(body: str, tmp_path: Path) -> None:
    """Every file that the key may select is part of the identity."""
    prompt = tmp_path / "picked.txt"
    prompt.write_text("one")
    file = tmp_path / "app_that_picks.py"
    file.write_text(
        "import io\nfrom pathlib import Path\nPROMPTS = {'a': 'picked.txt'}\n"
        "FILES = {'a': Path(__file__).parent / 'picked.txt'}\nLISTED = ['picked.txt']\n"
        f"def answer(q):\n    {body}\n"
    )
    before, uncovered, _ = compute_identity([import_object(f"{file}:answer")])
    prompt.write_text("two, longer")
    after = compute_identity([import_object(f"{file}:answer")]).digest
    assert uncovered == ()
    assert before != after


def test_a_constant_with_other_values_than_files_has_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "app_that_may_pick.py"
    file.write_text("PLACES = [None, 'a.txt']\ndef answer(q): return open(PLACES[len(q)]).read()")
    assert compute_identity([import_object(f"{file}:answer")])[1] == ("files whose names are computed (in answer)",)


PREAMBLE = """import os, shutil, tempfile
from pathlib import Path
HERE = Path(__file__).parent
WRITE, READ = "a", "r"
def save(text, mode="w"):
    with open("state.txt", mode) as file: file.write(text)
def append(text, *, mode="a"):
    with open("state.txt", mode) as file: file.write(text)
def load(text, mode, missing="w"):
    with open("state.txt", mode) as file: return file.read() or missing
"""
MODE = "mode = '{}' if q else '{}'\n    "
# Ways to write a file whose name is a constant, other than `open` with a constant mode.
WRITERS = [
    "fd, part = tempfile.mkstemp()\n    os.write(fd, b'x')\n    os.replace(part, 'state.txt')",
    "from os import rename as put\n    put(q, HERE / 'state.txt')",
    "part = HERE / 'part.tmp'\n    part.write_text(q)\n    part.replace(HERE / 'state.txt')",
    "Path(q).rename('state.txt')",
    "shutil.move(q, dst='state.txt')",
    "q.to_csv('state.txt', index=False)",
    MODE.format("a", "w") + "open('state.txt', mode).write(q)",
    MODE.format("a", "w") + "open('state.txt', mode=mode).write(q)",
    MODE.format("a", "w") + "(HERE / 'state.txt').open(mode).write(q)",
    "mode = 'r'\n    if q: mode = 'a'\n    open('state.txt', mode).write(q)",
    "mode = 'w' if q == 'x' else 'r'\n    open('state.txt', mode).write(q)",
    "open('state.txt', WRITE).write(q)",
    "save(q)",
    "append(q)",
    "q.to_csv(path_or_buf='state.txt')",
    "q.to_csv('state.txt', ';')",
    "q.write_parquet(file='state.txt', compression='zstd')",
    "Path(q).replace(target='state.txt')",
    "shutil.copytree(q, 'state.txt')",
]
READERS = [
    MODE.format("rb", "r") + "return open('state.txt', mode).read()",
    MODE.format("rb", "r") + "return (HERE / 'state.txt').open(mode).read()",
    "return open('state.txt', READ).read()",
    "shutil.copy('state.txt', os.devnull)",
    "return Path('state.txt').read_text().replace('state.txt', q)",
    "os.replace(q, 'other.txt')\n    return open('state.txt').read()",
    "mode = q.mode\n    if q == 'a': return 'b'\n    return open('state.txt', mode).read()",
    "mode = 'r' if q == 'a' else 'rb'\n    return open('state.txt', mode).read()",
    "mode = 'r' if q.get('w') else 'rb'\n    return open('state.txt', mode).read()",
    "modes = {'text': 'r', 'append': 'a'}\n    return open('state.txt', modes['text']).read()",
    "q.rename('state.txt')\n    return open('state.txt').read()",
    "return load(q, 'rb')",
]


@each_row(("body", "is_written"), [*((body, True) for body in WRITERS), *((body, False) for body in READERS)])
def test_a_file_counts_unless_the_code_writes_it(body: str, is_written: bool, tmp_path: Path) -> None:
    """A target that replaces its own file can be resumed, with a warning; a file that it reads is covered."""
    file, state = tmp_path / f"app_{zlib.crc32(body.encode())}.py", tmp_path / "state.txt"
    file.write_text(f"{PREAMBLE}def answer(q):\n    {body}\n")
    looks = []
    for content in ("one", "two, longer"):
        state.write_text(content)
        looks.append(compute_identity([import_object(f"{file}:answer")]))
    assert (looks[0][0] == looks[1][0]) is is_written
    assert any("the file state.txt, which it may write" in phrase for phrase in looks[0][1]) is is_written
