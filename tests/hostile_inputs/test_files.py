"""Files that unpack or unfold into something enormous are refused with a message."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

import proctor
from proctor import CSVDataset, Dataset, SQLiteHistory, evaluate, question_format
from proctor.cli.options import parse_value as value
from proctor.core import resources as gzip_reader
from proctor.core.yaml_text import MAX_DEPTH, InvalidYAML, load_yaml
from proctor.errors import ConfigError, DatasetError, ModelError
from proctor.evaluators.rubric_files import load_rubrics
from proctor.models.prices import Prices
from proctor.models.prompts import parse_prompt_file
from proctor.sessions.importers.session_files import SessionFiles
from proctor.wiring import config
from proctor.wiring.scoring.manifest import _read_entries as read_manifest_entries

# Nine levels of ten aliases each: a billion values in 500 characters.
LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 10)
)
MERGES = "m0: &m0 {k: v}\n" + "".join(
    f"m{level}: &m{level} {{<<: [{', '.join([f'*m{level - 1}'] * 10)}]}}\n" for level in range(1, 10)
)


@pytest.mark.parametrize("bomb", [LAUGHS, MERGES], ids=["aliases", "merge keys"])
def test_yaml_aliases_that_unfold_into_millions_are_refused(bomb: str) -> None:
    """A document is measured with its aliases expanded, before anything walks through it."""
    with pytest.raises(InvalidYAML, match="aliases expand into more than 200,000 values"):
        load_yaml(bomb)


def test_yaml_that_contains_itself_is_refused() -> None:
    """An alias inside its own anchor would never end."""
    with pytest.raises(InvalidYAML, match="contains itself"):
        load_yaml("a: &a {b: *a}")


def test_yaml_nested_too_deeply_is_refused() -> None:
    for depth in (MAX_DEPTH + 1, 100_000):
        with pytest.raises(InvalidYAML, match="nested more than 200 levels"):
            load_yaml("[" * depth + "]" * depth)


@pytest.mark.parametrize("opening", ["{", "[", "- ", "{a: ", "? "])
def test_scanning_stops_where_yaml_is_nested_too_deeply(opening: str) -> None:
    """What follows the level that is refused is never scanned: not even a fault there is found."""
    with pytest.raises(InvalidYAML, match="nested more than 200 levels"):
        load_yaml(opening * 1000 + "\t@")


def test_an_alias_used_a_few_times_is_fine() -> None:
    assert load_yaml("a: &a {x: 1}\nb: {<<: *a, y: 2}\nc: [*a, *a]") == {
        "a": {"x": 1},
        "b": {"x": 1, "y": 2},
        "c": [{"x": 1}, {"x": 1}],
    }


def test_every_reader_of_yaml_refuses_the_bomb(tmp_path: Path) -> None:
    for name in ("eval.yaml", "rubrics.yaml", "prices.yaml"):
        (tmp_path / name).write_text(LAUGHS)
    with pytest.raises(ConfigError, match="aliases expand"):
        config.load_eval_file(tmp_path / "eval.yaml")
    with pytest.raises(ConfigError, match="aliases expand"):
        load_rubrics(tmp_path / "rubrics.yaml")
    with pytest.raises(ModelError, match="aliases expand"):
        Prices.load(tmp_path / "prices.yaml")
    with pytest.raises(ModelError, match="aliases expand"):
        parse_prompt_file(f"---\nkey: a\n{LAUGHS}---\nHello\n", "prompt.md")


def test_no_other_module_loads_yaml_of_users() -> None:
    unchecked = [
        f"{path.name}: {line.strip()}"
        for path in Path(proctor.__file__).parent.rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if "yaml.safe_load(" in line and "resources.text(" not in line
    ]
    assert unchecked == []


def test_a_manifest_that_is_a_bomb_is_refused(tmp_path: Path) -> None:
    (tmp_path / "manifest.yaml").write_text(LAUGHS)
    with pytest.raises(ConfigError, match="aliases expand"):
        read_manifest_entries(tmp_path / "manifest.yaml")


def test_an_option_that_is_a_bomb_stays_a_text() -> None:
    assert value("{a: &a [*a]}") == "{a: &a [*a]}"


def test_a_gzip_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that unpacks into 200 times its size is not read to its end."""
    monkeypatch.setattr(gzip_reader, "MIN_LIMIT_BYTES", 1_000_000)
    bomb = tmp_path / "log.jsonl.gz"
    bomb.write_bytes(gzip.compress(b" " * 20_000_000))
    with pytest.raises(DatasetError, match="unpacks into more than"):
        list(SessionFiles(bomb))


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.json.gz", "a.csv.gz"])
def test_a_gzip_bomb_is_refused_as_a_dataset_too(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One reader with one limit: a megabyte, or 200 times the size of the file."""
    monkeypatch.setattr(gzip_reader, "MIN_LIMIT_BYTES", 1_000_000)
    bomb = tmp_path / name
    bomb.write_bytes(gzip.compress(b"id,input\n" + b" " * 20_000_000))
    with pytest.raises(DatasetError, match=r"unpacks into more than .* MB, more than 200 times"):
        Dataset.load(bomb)


def test_an_ordinary_gzip_file_is_read(tmp_path: Path) -> None:
    log = tmp_path / "log.json.gz"
    log.write_bytes(gzip.compress(b'[{"role": "user", "content": "' + b"Hello " * 50_000 + b'"}]'))
    assert [session.input for session in SessionFiles(log)] == ["Hello " * 50_000]


def test_a_run_has_a_hundred_tags_at_most(tmp_path: Path) -> None:
    tags = {f"tag{number}": "x" for number in range(100_000)}
    with pytest.raises(ConfigError, match="at most 100 tags are allowed, got 100,000"):
        evaluate(str.upper, [{"id": "a", "input": "a"}], [question_format], tags=tags, history=tmp_path / "h.db")
    with pytest.raises(ConfigError, match="at most 100 tags are allowed, got 100,000"):
        SQLiteHistory(tmp_path / "h.db").runs(tags=tags)


def test_a_table_with_too_many_columns_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("a," * 500_000 + "\n")
    with pytest.raises(DatasetError, match="500,001 columns, at most 10,000 are allowed"):
        list(CSVDataset(tmp_path / "data.csv"))
