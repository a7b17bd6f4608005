"""`--plugin` and `--set`: evaluators and metrics of the user's own from the command line."""

from __future__ import annotations

from tests.cli.project import Project

PLUGIN = '''
from proctor import evaluator

class Polite:
    """Passes if the output has a word in it."""
    name = "polite"
    def __init__(self, word="WORD", least=1):
        self.word, self.least = word, least
    def evaluate(self, output, example, config=None):
        return 1.0 if output.count(self.word) >= self.least else 0.0

class Needy:
    name = "needy"
    def __init__(self, word):
        self.word = word
    def evaluate(self, output, example, config=None):
        return self.word in output

class Longest:
    """The length of the longest output."""
    name = "longest"
    def compute(self, results):
        return float(max(len(str(result.output)) for result in results))

def silent(results):
    return sum(not result.output for result in results)

@evaluator
def shouts(output):
    return output.isupper()

@evaluator
def short(output, *, limit=80):
    return len(output) < limit
'''
RUN = ("run", "--dataset", "data.jsonl", "--target", "app.py:shout", "--json")


def names(project: Project, *options: str) -> list[str]:
    """The evaluators of a run."""
    result = project.proctor(*options)
    assert result.code == 0, result.err
    return [item["name"] for item in result.json["metadata"]["evaluators"]]


def test_a_plugin_alone_is_registered_and_used(project: Project) -> None:
    """With no evaluator named, the plugin is the evaluator."""
    project.write("mine.py", PLUGIN)
    (project.folder / "eval.yaml").unlink()
    result = project.proctor(*RUN, "--plugin", "mine:Polite")
    assert result.code == 0, result.err
    assert [item["uses"] for item in result.json["metadata"]["evaluators"]] == ["polite"]
    assert result.json["metrics"]["polite.pass_rate"]["value"] == 1.0


def test_a_plugin_with_a_named_evaluator_is_only_registered(project: Project) -> None:
    """If an evaluator is named on the command line or in the file, only that one is used."""
    project.write("mine.py", PLUGIN)
    assert names(project, *RUN, "--plugin", "mine:Polite", "-e", "exact_match") == ["exact_match"]
    assert names(project, *RUN, "--plugin", "mine:Polite", "-e", "polite") == ["polite"]
    listed = names(project, "run", "eval.yaml", "--json", "--plugin", "mine:Polite")
    assert listed == ["exact_match", "contains"]


def test_several_plugins_and_a_module_are_all_used(project: Project) -> None:
    """Every evaluator that the plugins bring is used, those of a module in their order."""
    project.write("mine.py", PLUGIN)
    used = names(project, *RUN, "--plugin", "mine:Polite", "--plugin", "mine")
    assert used == ["polite", "shouts", "short"]


def test_a_plugin_takes_parameters_from_set(project: Project) -> None:
    """`--set` reaches an evaluator that only a plugin brought, under its own name."""
    project.write("mine.py", PLUGIN)
    result = project.proctor(
        *RUN, "--plugin", "mine:Needy", "--plugin", "mine:Polite", "--set", "needy.word=WORD 1",
        "--set", "polite.least=2",
    )  # fmt: skip
    assert result.code == 0, result.err
    value = {item["name"]: item["parameters"] for item in result.json["metadata"]["evaluators"]}
    assert value == {"needy": {"word": "WORD 1"}, "polite": {"least": 2}}


def test_all_plugins_that_cannot_be_loaded_are_named(project: Project) -> None:
    """Two wrong addresses are two problems of one error."""
    project.write("mine.py", PLUGIN)
    result = project.proctor(*RUN, "--plugin", "mine:Polit", "--plugin", "other:Thing")
    assert result.code == 2
    assert "did you mean 'Polite'?" in result.err
    assert "no module is named 'other'" in result.err


def test_a_plugin_may_be_a_metric(project: Project) -> None:
    """An object or class with `compute`, or a function of the results, is added to the metrics."""
    project.write("mine.py", PLUGIN)
    result = project.proctor(
        *RUN, "-e", "exact_match", "--plugin", "mine:Longest", "--plugin", "mine:silent",
        "--limit", "2",
    )  # fmt: skip
    assert result.code == 0, result.err
    assert result.json["metrics"]["longest"]["value"] == 6.0
    assert result.json["metrics"]["silent"]["value"] == 0.0
    assert [item["name"] for item in result.json["metadata"]["evaluators"]] == ["exact_match"]


def test_a_metric_alone_does_not_stand_for_an_evaluator(project: Project) -> None:
    """A run needs an evaluator, from the eval file of the folder or from an option."""
    project.write("mine.py", PLUGIN)
    assert names(project, *RUN, "--plugin", "mine:Longest") == ["exact_match", "contains"]
    (project.folder / "eval.yaml").unlink()
    result = project.proctor(*RUN, "--plugin", "mine:Longest")
    assert (result.code, "--evaluator" in result.err) == (2, True)


def test_plugins_of_an_eval_file_may_be_metrics(project: Project) -> None:
    """`plugins:` takes what `--plugin` takes, and a threshold may name the metric."""
    project.write("mine.py", PLUGIN)
    project.write(
        "own.yaml",
        "dataset: data.jsonl\ntarget: app.py:shout\nevaluators: [polite]\n"
        "plugins: ['mine.py:Polite', 'mine.py:Longest']\nfail_under: {longest: 7}\n",
    )
    result = project.proctor("run", "own.yaml", "--plugin", "mine.py:Longest")
    assert (result.code, "longest is 6, below 7" in result.err + result.out) == (1, True)


def test_a_metric_plugin_is_computed_when_a_run_is_scored_again(project: Project) -> None:
    """`rescore` takes plugins as `run` does: a metric, or the evaluator itself."""
    project.write("mine.py", PLUGIN)
    assert project.proctor("run", "eval.yaml", "--quiet").code == 0
    result = project.proctor("rescore", "latest", "--plugin", "mine:Polite", "--plugin", "mine:Longest", "--json")
    assert result.code == 0, result.err
    assert result.json["metrics"]["longest"]["value"] == 6.0
    assert result.json["metrics"]["polite.pass_rate"]["value"] == 1.0


def test_set_overrides_a_parameter_of_the_file(project: Project) -> None:
    """The command line wins over the file, parameter by parameter."""
    project.write(
        "own.yaml",
        "dataset: data.jsonl\ntarget: app.py:shout\nevaluators:\n"
        "  - contains: {case_sensitive: false}\n"
        "  - {uses: text_count, name: size, at_least: 2, at_most: 9, of: characters}\n"
        "  - {regex_match: {pattern: '^WORD'}}\n",
    )
    result = project.proctor(
        "run", "own.yaml", "--json", "--set", "contains.case_sensitive=true",
        "--set", "size.at_most=3", "--set", "regex_match.pattern=^WORD [0-9]$",
    )  # fmt: skip
    assert result.code == 0, result.err
    value = {item["name"]: item["parameters"] for item in result.json["metadata"]["evaluators"]}
    assert value["contains"]["case_sensitive"] is True
    assert (value["size"]["at_least"], value["size"]["at_most"]) == (2, 3)
    assert value["regex_match"]["pattern"] == "^WORD [0-9]$"


def test_set_reaches_the_evaluators_of_a_field_and_negated_ones(project: Project) -> None:
    """`FIELD.EVALUATOR.PARAMETER` names one inside a field; `not-NAME` one that is turned round."""
    project.write(
        "own.yaml",
        "dataset: data.jsonl\ntarget: app.py:shout\n"
        "evaluators: [{not-contains: {case_sensitive: false}}]\n"
        "fields:\n  output:\n    - text_count: {at_most: 9, of: characters}\n",
    )
    result = project.proctor(
        "run", "own.yaml", "--json", "--set", "not-contains.case_sensitive=true",
        "--set", "output.text_count.at_most=2",
    )  # fmt: skip
    assert result.code == 0, result.err
    turned, field = result.json["metadata"]["evaluators"]
    assert "true" in str(turned["parameters"]).lower()
    assert field["parameters"]["evaluators"][0]["parameters"]["at_most"] == 2


def test_set_reaches_functions_of_a_python_file(project: Project) -> None:
    """An evaluator that a module gives as a function takes its options too."""
    project.write(
        "exam.py",
        "from app import shout as target, long_enough\n"
        "dataset = [{'id': 'a', 'input': 'hello'}]\nevaluators = [long_enough]\n",
    )
    result = project.proctor("run", "exam.py", "--json", "--set", "long_enough.least=9")
    assert result.code == 0, result.err
    assert result.json["metadata"]["evaluators"][0]["parameters"] == {"least": 9}
    assert result.json["metrics"]["long_enough.pass_rate"]["value"] == 0.0


def test_set_says_everything_that_is_wrong_at_once(project: Project) -> None:
    """Unknown evaluators and a missing parameter are listed with those that may be named."""
    result = project.proctor("run", "eval.yaml", "--set", "exact=1", "--set", "contain.x=1", "--set", "zzz.y=2")
    assert result.code == 2
    assert "EVALUATOR.PARAMETER=VALUE" in result.err
    assert "did you mean 'contains'?" in result.err
    assert "this run has no evaluator 'zzz'; choose one of: contains, exact_match" in result.err


def test_set_refuses_a_name_that_means_two_evaluators(project: Project) -> None:
    """Two evaluators of one kind are distinguished by their names."""
    project.write(
        "own.yaml",
        "dataset: data.jsonl\ntarget: app.py:shout\nevaluators:\n"
        "  - {uses: contains, name: first}\n  - {uses: contains, name: second}\n",
    )
    result = project.proctor("run", "own.yaml", "--set", "contains.case_sensitive=false")
    assert result.code == 2
    assert "first, second" in result.err
    result = project.proctor("run", "own.yaml", "--json", "--set", "first.case_sensitive=false")
    value = {item["name"]: item.get("parameters") for item in result.json["metadata"]["evaluators"]}
    assert value == {"first": {"case_sensitive": False}, "second": None}
