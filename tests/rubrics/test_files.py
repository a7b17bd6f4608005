"""Rubric files: their content, and every fault with its line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor import Rubric, RubricSet, load_rubrics
from proctor.core import resources
from proctor.errors import ConfigError
from proctor.evaluators.rubric_files import SCHEMA_FILE, load_rubric
from proctor.metrics.builtin import RubricTotalMetric
from proctor.metrics.registry import MetricRegistry
from proctor.records.rubric import EVALUATOR_METRICS, RUN_METRICS, describe_unknown_keys, find_scale, find_set_problems

ONE: dict[str, Any] = {"id": "a", "name": "A", "description": "What?", "scoring_criteria": "1: no"}


def written(folder: Path, data: Any, name: str = "rubrics.json") -> Path:
    path = folder / name
    path.write_text(data if isinstance(data, str) else json.dumps(data, indent=1))
    return path


def faults(folder: Path, data: Any, name: str = "rubrics.json") -> list[str]:
    with pytest.raises(ConfigError) as refused:
        load_rubrics(written(folder, data, name))
    message = [str(problem) for problem in refused.value.problems] or [str(refused.value)]
    return [fault.replace(f"{folder}/", "") for fault in message]


def test_a_file_is_read_in_order(tmp_path: Path) -> None:
    """JSON with version, rubrics and weights; missing values get their defaults."""
    data = {"version": "1.0", "rubrics": [{**ONE, "weight": 1.5}, {**ONE, "id": "b"}]}
    found = load_rubrics(written(tmp_path, data))
    assert [(one.id, one.weight) for one in found] == [("a", 1.5), ("b", 1.0)]
    assert (found.version, found.scale, len(found)) == ("1.0", None, 2)
    assert found["b"].name == "A"


def test_yaml_is_read_like_json(tmp_path: Path) -> None:
    """A version that looks like a number stays as written; texts are stripped."""
    text = (
        "version: 1.0\nscale: [0, 10]\nmetadata:\nrubrics:\n- id: a\n  name: A\n"
        "  description: |\n    Two\n    lines\n  scoring_criteria: '0: no'\n"
    )
    found = load_rubrics(written(tmp_path, text, "r.yaml"))
    assert (found.version, found.scale) == ("1.0", (0, 10))
    assert found["a"].description == "Two\nlines"


def test_every_fault_is_named_at_once_with_its_line(tmp_path: Path) -> None:
    """Ids, weights, texts, scales and keys: all of them in the order of the lines."""
    text = """{
 "version": "",
 "rubrcs": 1,
 "rubrics": [
  {"id": "a", "name": "", "description": "x", "scoring_criteria": "y",
   "weight": 0},
  {"id": "a", "name": "B", "descripton": "x", "scoring_criteria": "y",
   "scale": [5, 1]}
 ]
}"""
    assert faults(tmp_path, text) == [
        "rubrics.json:2, version must not be empty",
        "rubrics.json:3, rubrcs: unknown key 'rubrcs'; did you mean 'rubrics'? Your own data belongs under 'metadata'",
        "rubrics.json:5, rubrics[0].name must not be empty",
        "rubrics.json:6, rubrics[0].weight must be a number greater than 0, got 0",
        (
            "rubrics.json:7, rubrics[1].descripton: unknown key 'descripton'; did you mean 'description'? "
            "Your own data belongs under 'metadata'"
        ),
        "rubrics.json:7, rubrics[1]: 'description' is missing",
        "rubrics.json:7, rubrics[1].id: another rubric has the same id 'a'",
        "rubrics.json:8, rubrics[1].scale must be the lowest and the highest score, such as [1, 5], got [5, 1]",
    ]


@pytest.mark.parametrize("weight", [0, -1, "2", True, None, float("nan"), float("inf")])
def test_a_weight_is_a_finite_number_above_0(weight: Any) -> None:
    """Anything else is a fault, also what JSON knows only by its JavaScript name."""
    data = {"version": "1", "rubrics": [{**ONE, "weight": weight}]}
    assert [at for at, _ in find_set_problems(data)] == [("rubrics", 0, "weight")]


@pytest.mark.parametrize(
    ("data", "what"),
    [
        ([], "a rubric file must be a mapping"),
        ({"version": "1", "rubrics": []}, "must have at least one rubric"),
        ({"version": "1", "rubrics": {}}, "must be a list, got a mapping"),
        ({"version": "1", "rubrics": ["a"]}, "a rubric must be a mapping"),
        ({"rubrics": [ONE]}, "'version' is missing"),
        ({"version": True, "rubrics": [ONE]}, "version must be a string"),
        ({"version": "1", "rubrics": [{**ONE, "id": 7}]}, "put it in quotes"),
        ({"version": "1", "rubrics": [{**ONE, "id": "a\nb"}]}, "must be one line"),
        ({"version": "1", "rubrics": [{**ONE, "metadata": 1}]}, "must be a mapping, got a number"),
    ],
)
def test_other_faults(tmp_path: Path, data: Any, what: str) -> None:
    (fault,) = faults(tmp_path, data)
    assert what in fault


def test_an_id_cannot_be_the_name_of_a_metric(tmp_path: Path) -> None:
    """The conflict is reported when the file is checked."""
    ids = ["a", "total_score", "tokens", "a.mean", "a.p50", "b.mean"]
    data = {"version": "1", "rubrics": [{**ONE, "id": one} for one in ids]}
    output = [fault.partition(", ")[2] for fault in faults(tmp_path, data)]
    assert output == [
        "rubrics[1].id: 'total_score' is also a metric of every run. Fix: choose another id",
        "rubrics[2].id: 'tokens' is also a metric of every run. Fix: choose another id",
        "rubrics[3].id: 'a.mean' is also a metric of 'a'. Fix: choose another id",
    ]


def test_the_numbers_of_a_run_are_known() -> None:
    """Those that are refused as ids are the ones that a run with rubrics has, no more, no less."""
    alone = set(MetricRegistry.standard()._metrics)
    assert {*alone, RubricTotalMetric.name} == set(RUN_METRICS)
    beside = set(MetricRegistry.standard(["a"])._metrics) - alone - {"a"}
    assert beside == {f"a.{name}" for name in EVALUATOR_METRICS}


def test_a_repeated_key_is_a_fault(tmp_path: Path) -> None:
    """JSON and YAML would take the last in silence."""
    text = json.dumps({"version": "1", "rubrics": [ONE]})[:-1] + ',\n"version": "2"}'
    assert faults(tmp_path, text) == ["rubrics.json:2, version: this key is repeated"]


def test_an_unreadable_file_is_named_with_its_line(tmp_path: Path) -> None:
    """Broken JSON and YAML with their line, a missing file, another kind of file, no UTF-8."""
    assert "rubrics.json:2: not valid JSON: unexpected end of file at column 1" in faults(tmp_path, '{"version":\n')[0]
    assert "r.yaml:2: not valid YAML" in faults(tmp_path, "a: 1\nb: c: d", "r.yaml")[0]
    assert "put the string in quotes" in faults(tmp_path, "b: c: d", "r.yaml")[0]
    tab = faults(tmp_path, "rubrics:\n\t- id: a", "r.yaml")[0]
    assert "the line is indented with a tab" in tab
    assert "replace tabs with spaces" in tab
    assert "a rubric file must end in" in faults(tmp_path, "x", "r.txt")[0]
    with pytest.raises(ConfigError, match="file not found"):
        load_rubrics(tmp_path / "none.json")
    (tmp_path / "latin.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="not UTF-8"):
        load_rubrics(tmp_path / "latin.json")


def test_files_that_are_made_to_do_harm_are_refused(tmp_path: Path) -> None:
    """Too deep, too large, or containing themselves: an error, not a crash."""
    assert "too deeply nested" in faults(tmp_path, "[" * 100_000)[0]
    assert "not valid YAML" in faults(tmp_path, "- " * 10_000 + "x", "deep.yaml")[0]
    assert "not valid YAML" in faults(tmp_path, "a: !!python/name:os.system", "r.yml")[0]
    assert "larger than 10,000,000 bytes" in faults(tmp_path, " " * 10_000_001)[0]
    loop = "version: '1'\nrubrics: &all\n- *all\n"
    assert "a part of the document contains itself" in faults(tmp_path, loop, "loop.yaml")[0]
    assert "a rubric file must be a mapping" in faults(tmp_path, "", "empty.yaml")[0]


def test_tabs_in_json_are_fine(tmp_path: Path) -> None:
    """YAML knows no tabs, JSON does."""
    text = json.dumps({"version": "1", "rubrics": [ONE]}, indent="\t")
    assert len(load_rubrics(written(tmp_path, text))) == 1


def test_one_rubric_by_id_has_the_scale_of_its_set(tmp_path: Path) -> None:
    """An unknown id comes with the nearest one."""
    path = written(tmp_path, {"version": "1", "scale": [0, 3], "rubrics": [ONE]})
    assert load_rubric("a", path).scale == (0, 3)
    with pytest.raises(ConfigError, match="did you mean 'safety'"):
        load_rubric("safty")
    with pytest.raises(ConfigError, match="'name' is missing"):
        load_rubric({"id": "a", "description": "x", "scoring_criteria": "y"})
    with pytest.raises(KeyError, match="unknown rubric"):
        load_rubrics(path)["b"]


def test_rubrics_can_be_given_as_objects() -> None:
    """A set, a list of rubrics, or plain data."""
    rubric = Rubric("a", "A", "What?", "1: no")
    whole = RubricSet("3", (rubric,))
    assert load_rubrics(whole) is whole
    assert load_rubrics([rubric]).rubrics == (rubric,)
    assert load_rubrics({"version": 2, "rubrics": [ONE]}).version == "2"
    assert load_rubrics([ONE])["a"] == rubric
    assert load_rubric(rubric) == rubric


def test_the_starter_set_is_complete() -> None:
    """Six rubrics, each with a description and an anchor for every score of the scale."""
    starter = load_rubrics("starter")
    assert [one.id for one in starter] == [
        "task_completion", "instruction_following", "groundedness", "tool_efficiency",
        "communication", "safety",
    ]  # fmt: skip
    for one in starter:
        assert find_scale(one, starter.scale or (0, 0)) == (1, 5)
        anchors = [line.partition(":")[0] for line in one.scoring_criteria.splitlines()]
        assert anchors == ["5", "4", "3", "2", "1"], one.id
        assert len(one.description) > 200, one.id


def test_the_schema_agrees_with_the_reader() -> None:
    """The starter set fits it, also with a further key; a weight of 0 does not."""
    import jsonschema_rs
    import yaml

    validator = jsonschema_rs.validator_for(json.loads(resources.text("schemas", SCHEMA_FILE)))
    starter = yaml.safe_load(resources.text("evaluators", "starter_rubrics.yaml"))
    assert validator.is_valid(starter)
    assert validator.is_valid({**starter, "author": "Ada"})
    assert not validator.is_valid({"version": "1", "rubrics": [{**ONE, "weight": 0}]})


def test_unknown_keys_are_stored_in_the_metadata_and_listed(tmp_path: Path) -> None:
    """With a message that names them."""
    path = tmp_path / "rubrics.yaml"
    data = {"version": "1", "author": "Ada", "rubrics": [{**ONE, "evidence_count": 3, "tags": ["a"]}]}
    path.write_text(json.dumps(data))
    rubrics = load_rubrics(path)
    (rubric,) = rubrics
    assert rubrics.metadata["author"] == "Ada"
    assert (rubric.metadata["evidence_count"], rubric.metadata["tags"]) == (3, ["a"])
    assert describe_unknown_keys(rubrics) == "rubric file: unknown key 'author' is stored in its metadata"
    assert describe_unknown_keys(rubric) == (
        "rubric 'a': unknown keys 'evidence_count', 'tags' are stored in its metadata"
    )


def test_a_misspelled_key_is_a_problem(tmp_path: Path) -> None:
    """A weight that nobody reads would change the total; it is listed with the other problems of the file."""
    text = json.dumps({"versoin": "1", "rubrics": [{**ONE, "wieght": 5}]})
    problems = faults(tmp_path, text)
    assert any("unknown key 'wieght'; did you mean 'weight'?" in problem for problem in problems)
    assert any("unknown key 'versoin'; did you mean 'version'?" in problem for problem in problems)
    assert any("add version" in problem for problem in problems)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["version", "rubrics", "id", "name", "weight", "scale", "metadata", "x"]), inner, max_size=5
        )
    ),
    max_leaves=15,
)


@given(JSON_VALUES)
def test_any_data_is_either_read_or_refused(data: Any) -> None:
    """No crash: data without faults makes a set, other data a ConfigError that lists them."""
    found = list(find_set_problems(data))
    if found:
        with pytest.raises(ConfigError) as refused:
            load_rubrics({"x": 1} if not isinstance(data, dict) else data)
        assert refused.value.problems
    else:
        assert len(load_rubrics(data)) == len(data["rubrics"])


@pytest.mark.parametrize(
    ("fault", "what"),
    [
        ({"weight": -1}, "weight must be a number greater than 0, got -1"),
        ({"weight": float("nan")}, "weight must be a number greater than 0"),
        ({"id": " "}, "id must not be empty"),
        ({"scale": (5, 1)}, "scale must be the lowest"),
        ({"name": None, "weight": "2"}, "name must be a string.*; weight must be "),
    ],
)
def test_a_rubric_made_by_hand_is_held_to_the_same(fault: dict[str, Any], what: str) -> None:
    """Refused when it is made, with all its faults, not when it is used."""
    fields = {"id": "a", "name": "A", "description": "…", "scoring_criteria": "…", **fault}
    with pytest.raises(ValueError, match=what):
        Rubric(**fields)


def test_a_set_made_by_hand_is_held_to_the_same() -> None:
    """Ids are unique, there is a version and a rubric; a list of rubrics will do."""
    one = Rubric("a", "A", "…", "…")
    assert RubricSet("1", [one]).rubrics == (one,)  # type: ignore[arg-type]
    for parts in (("1", (one, one)), ("", (one,)), ("1", ()), ("1", (one,), (3, 3))):
        with pytest.raises(ValueError, match="not a valid set of rubrics"):
            RubricSet(*parts)
