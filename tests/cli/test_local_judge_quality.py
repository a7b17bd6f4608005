"""What local models are worth as judges: measured counts, and one text wherever it is shown."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from benchmarks.quality.local_judges import preference_figure, read_answers, read_pairs, verdict_figure

from proctor.metrics.warnings import MEASUREMENTS, JudgeMeasurement, describe_judge, warn_local_judges
from proctor.models import weights
from proctor.records.run import EvaluatorSpec, RunMetadata
from tests.cli.project import Project

DOCS = Path(__file__).parents[2] / "docs" / "judges.md"


def test_a_verdict_that_cannot_be_read_is_no_agreement() -> None:
    """9 right answers passed, 10 - 4 - 2 wrong ones failed: 13 of 20, Wilson 43–82%."""
    measured = JudgeMeasurement("D", 10, 9, 1, 10, 4, 2)
    assert (measured.n, measured.agreed, measured.unread) == (20, 13, 3)
    assert [round(end, 3) for end in measured.interval] == [0.433, 0.819]
    assert measured.summary == (
        "agrees with people on 13 of 20 answers of D (65%, 95% interval 43–82%; a constant "
        "verdict: 50%): not shown to be better than a constant verdict, so do not rely on its "
        "scores. It passed 9 of 10 right answers and 4 of 10 wrong ones; 3 of 20 verdicts could "
        "not be read"
    )


def test_a_measurement_that_was_stopped_says_that_its_interval_is_a_rough_guide() -> None:
    """The stop may have depended on the verdicts, which a 95% interval does not allow for."""
    stopped = JudgeMeasurement("D", 10, 9, 1, 10, 4, 2, planned=60)
    assert stopped.summary.endswith(
        "could not be read. The measurement was stopped by hand after 20 of 60 answers, so the interval "
        "is only a rough guide"
    )
    assert all("stopped by hand after 14" in measured.summary for measured in MEASUREMENTS.values())


@pytest.mark.parametrize(
    ("right_passed", "wrong_passed", "beats_constant"),
    [(10, 10, False), (0, 0, False), (8, 2, True), (7, 4, False), (0, 10, False)],
)
def test_a_constant_verdict_is_never_called_better_than_itself(
    right_passed: int, wrong_passed: int, beats_constant: bool
) -> None:
    """16 of 20 (from 58%) is better; 13 of 20 (from 43%), all pass, all fail and reversed not."""
    measured = JudgeMeasurement("D", 10, right_passed, 0, 10, wrong_passed, 0)
    assert measured.beats_constant is beats_constant
    conclusion = "%): better than a constant verdict." in measured.summary
    assert conclusion is beats_constant


def test_every_local_language_model_has_been_measured() -> None:
    """As many right as wrong answers, so that a constant verdict agrees on half."""
    chat_models = {name for name, model in weights.CATALOGUE.items() if model.files[0].name.endswith(".gguf")}
    assert set(MEASUREMENTS) == chat_models
    for measured in MEASUREMENTS.values():
        assert measured.right == measured.wrong >= 5
        assert measured.right_passed + measured.right_unread <= measured.right
        assert measured.wrong_passed + measured.wrong_unread <= measured.wrong


def test_only_local_models_are_described() -> None:
    """Not a model of another provider with the same name, nor a file."""
    assert describe_judge("local:smollm2")
    assert describe_judge("smollm2") == describe_judge("openai:smollm2") == ""
    assert describe_judge("local:smollm2.gguf") == describe_judge("local:minilm") == ""


@pytest.mark.parametrize("name", MEASUREMENTS)
def test_command_warning_and_documentation_show_the_same_text(project: Project, name: str) -> None:
    """All take it from `MEASUREMENTS`."""
    text = MEASUREMENTS[name].summary
    assert f"      as a judge: {text}\n" in project.proctor("models").out
    local = project.proctor("models", "--json").json["local"]
    assert [model["as_judge"] for model in local if model["name"] == name] == [text]
    spec = EvaluatorSpec("polite", "llm_judge", {"adapter": f"local:{name}"})
    run = RunMetadata("r", "r", datetime.now(UTC), evaluators=(spec,))
    assert list(warn_local_judges(run)) == [f"polite is judged by local:{name}, which {text}"]
    documented = re.sub(r"\s+", " ", DOCS.read_text(encoding="utf-8"))
    assert f"- `local:{name}` {text}." in documented


def test_the_benchmark_reads_which_answer_people_prefer(tmp_path: Path) -> None:
    """LLMBar has the numbers 1 and 2; a label of another kind is not read as one of them."""
    file = tmp_path / "06_judge_llmbar" / "Natural.dataset.json"
    file.parent.mkdir()
    row = {"input": "Say hi.", "output_1": "Hi.", "output_2": "No."}
    file.write_text(json.dumps([{**row, "label": 1}, {**row, "label": 2}]))
    assert [pair.preferred for pair in read_pairs(tmp_path, "Natural", 5)] == ["a", "b"]
    file.write_text(json.dumps([{**row, "label": "1"}]))
    with pytest.raises(KeyError):
        read_pairs(tmp_path, "Natural", 5)


def test_the_benchmark_takes_as_many_right_answers_as_wrong_ones(tmp_path: Path) -> None:
    """One answer to a question, the systems in turn; improper questions are left out."""
    systems = ("fid", "gpt35", "chatgpt", "gpt4", "newbing")
    rows = [
        {"question": f"q{at}", "golden_answer": "x/y", "improper": at == 0}
        | {f"answer_{system}": f"{system} {at}" for system in systems}
        | {f"judge_{system}": at % 4 == 0 for system in systems}
        for at in range(13)
    ]
    file = tmp_path / "01_qa_reference" / "evouna_tq" / "TQ.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(rows))
    answers = read_answers(tmp_path, 5)
    assert [answer.text for answer in answers] == ["gpt4 4", "fid 1", "chatgpt 8", "gpt35 2"]
    assert [answer.is_right for answer in answers] == [True, False, True, False]
    assert {answer.reference for answer in answers} == {"x or y"}


def test_the_figures_of_the_benchmark_say_what_chance_would_give() -> None:
    """A constant verdict agrees on half, a coin in both orders on a quarter."""
    verdicts = verdict_figure("m", JudgeMeasurement("D", 10, 9, 1, 10, 4, 2))
    assert (verdicts.value, verdicts.reference) == (0.65, "constant 0.500")
    pairs = preference_figure("m", "Natural", ["agreed", "flipped", "unread", "disagreed"])
    assert (pairs.value, pairs.reference) == (0.25, "coin 0.250")
    assert pairs.note.endswith("flips: 1, unread: 1")
