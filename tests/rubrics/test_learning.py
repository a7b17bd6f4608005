"""Learned rubrics: proposed, merged if similar, and validated with known scores."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from proctor import Message, ModelRequest, ModelResponse, Sample, Session, load_rubrics
from proctor.cli.main import run_cli
from proctor.core.stats.ranks import kendall_interval
from proctor.engine.start import RunControls
from proctor.errors import CallFailed, ConfigError, StopRun
from proctor.evaluators.judges.fence import Fence, MarkedForm
from proctor.evaluators.judges.propose_rubrics import Proposal, ProposedRubrics, merge_proposals
from proctor.records import codec
from proctor.wiring.open_history import open_history
from proctor.wiring.scoring.learning import build_contrasts, learn_rubrics, split_sessions
from proctor.wiring.scoring.manifest import ScoredSession, Scoring, read_manifest

PROPOSED = [
    {"name": "Evidence", "description": "Does it show proof of what it says?",
     "scoring_criteria": "1: none\n5: all"},
    {"name": "Proof", "description": "Does it show proof of what it says it did?",
     "scoring_criteria": "1: none\n5: all"},
    {"name": "Brevity", "description": "How many needless words stand in the answers?",
     "scoring_criteria": "1: many\n5: none"},
]  # fmt: skip


class Teacher:
    """Proposes rubrics; as a judge it knows the quality that is written in a session."""

    model, supports_json_schema = "test:teacher", True

    def __init__(self, knows: bool = True, proposes: Any = PROPOSED) -> None:
        self.knows, self.proposes = knows, proposes
        self.usage: list[str] = []

    async def complete(self, request: ModelRequest, *, timeout: float | None = None) -> ModelResponse:
        text = "\n".join(str(message.content) for message in request.messages)
        self.usage.append(text)
        if "<<<BETTER" in text:
            return ModelResponse(json.dumps({"rubrics": self.proposes}), self.model)
        quality = int(text.partition("quality ")[2].partition(".")[0])
        said = quality if self.knows else 1 + hash(str(quality * 7919)) % 5
        return ModelResponse(json.dumps({"reason": "seen", "score": said}), self.model)


def known(count: int, **metadata: Any) -> list[ScoredSession]:
    """Sessions that contain their quality, from 1 to 5, with these known scores."""
    return [
        ScoredSession(
            Sample(
                f"s{n}",
                "",
                metadata={
                    "output": "x",
                    "session": Session([Message("user", f"Session {n} has quality {1 + n % 5}.")]),
                    **metadata,
                },
            ),
            1 + n % 5,
        )
        for n in range(count)
    ]


def learned(sessions: list[ScoredSession], model: Any, **options: Any) -> Any:
    return asyncio.run(
        learn_rubrics(
            sessions,
            model,
            history=open_history(False),
            controls=RunControls(),
            embedder="lexical",
            **{"scoring": Scoring(cache=False), **options},
        )
    )


def test_rubrics_are_learned_and_checked_on_other_sessions() -> None:
    """Valid rubrics agree with people; the file says how well."""
    teacher = Teacher()
    found = learned(known(100), teacher)
    assert [one.name for one in found.rubrics] == ["Evidence", "Brevity"]
    assert found.total.n == 30
    assert found.total.tau == pytest.approx(1.0)
    assert found.total.verdict == "agrees with the known scores"
    first = found.rubrics.rubrics[0]
    assert first.metadata["proposed"] == 10
    assert first.metadata["merged"] == ["Proof"]
    assert first.metadata["validation"]["n"] == 30
    assert found.rubrics.metadata["learned"]["held_out"] == 30
    again = load_rubrics(json.loads(codec.encode(found.rubrics)))
    assert codec.encode(again) == codec.encode(found.rubrics)


def test_a_model_sees_no_names_that_are_only_for_the_code() -> None:
    """The schema of a proposal is part of the question."""
    schema = MarkedForm(ProposedRubrics, Fence({"better": "x"})).schema
    assert '"_' not in json.dumps(schema)
    assert schema["title"] == "ProposedRubrics"


def test_held_out_sessions_are_not_shown_to_the_model() -> None:
    """No session is shown twice, and better ones are separated from worse ones."""
    sessions = known(40)
    learn, check = split_sessions(sessions, 0.3, seed=0)
    assert (len(learn), len(check)) == (28, 12)
    assert not {one.sample.id for one in learn} & {one.sample.id for one in check}
    contrasts = build_contrasts(learn, rounds=99)
    for contrast in contrasts:
        assert len(contrast.better) == len(contrast.worse) <= 3
    assert "quality 5." in contrasts[0].better[0]
    assert "quality 1." in contrasts[0].worse[0]
    assert len(build_contrasts(learn, rounds=2)) == 2


def test_sessions_of_one_cluster_stay_together() -> None:
    """Otherwise the check would use sessions that were learned from."""
    sessions = [ScoredSession(Sample(f"s{n}", "", metadata={"cluster": f"c{n // 4}"}), n) for n in range(40)]
    learn, check = split_sessions(sessions, 0.3, seed=1)
    assert not {one.sample.cluster for one in learn} & {one.sample.cluster for one in check}
    assert len(check) == 12


def test_too_few_sessions_prove_nothing_and_the_result_says_so() -> None:
    """Below ten no claim, below thirty a word on the interval."""
    few = learned(known(20), Teacher())
    assert few.total.verdict == "too few sessions for a check: at least 10 are needed"
    assert few.total.interval is None
    some = learned(known(50), Teacher())
    assert some.total.note == "fewer than 30 sessions: the true interval is wider"
    none = learned(known(20), Teacher(), held_out_share=0.0)
    assert none.total.verdict == "not checked: no session was held out"


def test_rubrics_that_do_not_agree_are_reported_as_such() -> None:
    """The judge gives all sessions the same score, or the opposite one."""

    class Same(Teacher):
        async def complete(self, request: Any, *, timeout: float | None = None) -> Any:
            answer = await super().complete(request)
            if "<<<BETTER" in self.usage[-1]:
                return answer
            score = json.loads(answer.text)["score"] if self.knows else 0
            answer_text = {"reason": "x", "score": 6 - score if self.knows else 3}
            return ModelResponse(json.dumps(answer_text), self.model)

    assert "all scores of one side are equal" in learned(known(60), Same(knows=False)).total.verdict
    reversed_ = learned(known(60), Same(knows=True))
    assert reversed_.total.verdict == "orders the sessions in reverse"


def test_unsuitable_sessions_are_refused() -> None:
    """Too few sessions, equal scores, a model that proposes nothing."""
    with pytest.raises(ConfigError, match="2 sessions to learn from"):
        learned(known(3), Teacher())
    same = [ScoredSession(one.sample, 3.0) for one in known(20)]
    with pytest.raises(ConfigError, match="all scores or all texts are equal"):
        learned(same, Teacher())
    with pytest.raises(CallFailed, match="no rubric was proposed"):
        learned(known(40), Teacher(proposes=[]))
    blank = [{"name": " ", "description": "x", "scoring_criteria": "y"}]
    with pytest.raises(CallFailed, match="no rubric was proposed"):
        learned(known(40), Teacher(proposes=blank))


def test_near_duplicates_become_one_and_names_stay_apart() -> None:
    """The ones that came up most often come first; equal names get a number."""
    made = [
        Proposal("Tone", "Is the agent polite to the user?", "1: no"),
        Proposal("Tone", "How many calls of tools were needless?", "1: no"),
        Proposal("Tools", "How many calls of tools were needless ones?", "1: no"),
    ]
    found = asyncio.run(merge_proposals(made, max_count=5, embedder="lexical"))
    assert [(one.id, one.metadata["proposed"]) for one in found] == [("tone", 2), ("tone_2", 1)]
    assert len(asyncio.run(merge_proposals(made, max_count=1, embedder="lexical"))) == 1
    cost = [Proposal("Cost", "What did the agent spend?", "1: much")]
    (rubric,) = asyncio.run(merge_proposals(cost, max_count=1, embedder="lexical"))
    assert (rubric.id, rubric.name) == ("cost_2", "Cost")


def write_logs(folder: Path, count: int) -> Path:
    entries = []
    for n in range(count):
        chat = [{"role": "user", "content": f"Session {n} has quality {1 + n % 5}."}]
        (folder / f"s{n}.json").write_text(json.dumps(chat))
        entries.append({"path": f"s{n}.json", "score": 1 + n % 5})
    path = folder / "manifest.json"
    path.write_text(json.dumps({"sessions": entries}))
    return path


def test_a_manifest_names_sessions_and_scores(tmp_path: Path) -> None:
    """Paths from its own folder; the same id in two files is two sessions."""
    path = write_logs(tmp_path, 3)
    assert [(one.sample.id, one.score) for one in read_manifest(path)] == [
        ("s0", 1.0), ("s1", 2.0), ("s2", 3.0),
    ]  # fmt: skip
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "s0.json").write_bytes((tmp_path / "s1.json").read_bytes())
    paths = ["s0.json", "more/s0.json"]
    path.write_text(json.dumps([{"path": one, "score": 1} for one in paths]))
    assert [one.sample.id for one in read_manifest(path)] == ["s0", "s0~2"]


def test_every_fault_of_a_manifest_is_named(tmp_path: Path) -> None:
    """Keys, scores, files and ids."""
    write_logs(tmp_path, 1)
    entries = [
        {"path": "s0.json", "scor": 1},
        {"path": "s0.json", "score": "high"},
        {"path": "s0.json", "score": float("inf")},
        {"path": "none.json", "recorded": "reward"},
        {"path": "s0.json", "recorded": "reward"},
        {"path": "s0.json", "score": 1, "id": "other"},
        "s0.json",
        {"score": 2},
    ]
    path = tmp_path / "m.json"
    path.write_text(json.dumps(entries, indent=1))
    with pytest.raises(ConfigError) as refused:
        read_manifest(path)
    message = str(refused.value)
    assert "m.json:2, [0]: unknown key 'scor'" in message
    path.write_text(json.dumps({"sessions": entries}, indent=1))
    with pytest.raises(ConfigError, match=r"m.json:3, sessions\[0\]: unknown key 'scor'"):
        read_manifest(path)
    for what in ("did you mean 'score'", "a score must be a finite number, got 'high'", "no session has",
                 "no session has the id 'other'", "add 'path', the session file", "must be {path, score}",
                 "not found", "a score must be a finite number, got inf"):  # fmt: skip
        assert what in message, message
    path = tmp_path / "m.yaml"
    path.write_text("a: [")
    with pytest.raises(ConfigError, match="not valid YAML"):
        read_manifest(path)
    path.write_text("{}")
    with pytest.raises(ConfigError, match="a list of sessions"):
        read_manifest(path)
    with pytest.raises(ConfigError, match=r"file not found: .*none\.yaml"):
        read_manifest(tmp_path / "none.yaml")


TEACHER = Teacher()


def test_the_command_writes_a_valid_rubric_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says how well each rubric agrees with people."""
    monkeypatch.chdir(tmp_path)
    write_logs(tmp_path, 60)
    command = ["sessions", "learn", "--manifest", "manifest.json", "--embedder", "lexical",
               "--model", "tests.rubrics.test_learning:TEACHER"]  # fmt: skip
    assert run_cli([*command, "--output", "rubrics.json"]) == 0
    answer = capsys.readouterr().out
    assert "total: tau 1.00 over 18 held-out sessions, 95% interval 1.00 to 1.00" in answer
    assert len(load_rubrics("rubrics.json")) == 2
    assert run_cli([*command, "--output", "rubrics.yaml"]) == 2


COMMAND = ["sessions", "learn", "--manifest", "manifest.json", "--embedder", "lexical", "--model",
           "tests.rubrics.test_learning:TEACHER", "--output", "rubrics.json"]  # fmt: skip


def test_the_command_prints_json_with_its_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Calls, cached answers, the run, notes and unreadable lines."""
    monkeypatch.chdir(tmp_path)
    write_logs(tmp_path, 60)
    damaged = tmp_path / "s1.json"
    damaged.write_text(f"{damaged.read_text()}\nnothing that could be read")
    assert run_cli([*COMMAND, "--json", "--scale", "0", "10", "--timeout", "5"]) == 0
    printed = capsys.readouterr()
    data = json.loads(printed.out)
    assert data["total"]["n"] == 18
    assert data["asked"]["answers"] == 41
    assert "s1.json:2" in printed.err
    assert load_rubrics("rubrics.json").scale == (0, 10)
    run = open_history(None).find(data["run_id"])
    assert tuple(run.evaluators[0].parameters["scale"]) == (0, 10)


def test_an_interrupted_learning_resumes_with_the_proposed_rubrics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The budget ends it after the proposals; resumed, nothing is proposed again."""
    monkeypatch.chdir(tmp_path)
    write_logs(tmp_path, 60)
    assert run_cli([*COMMAND, "--budget", "calls=8"]) != 0
    answer = capsys.readouterr().err
    assert "the budget is spent: 3 of 3 calls, after 5 calls for the proposals" in answer
    assert "raise the budget and add --check-only to the same command" in answer
    assert run_cli(COMMAND) == 2
    assert "--output rubrics.json: the file already exists" in capsys.readouterr().err
    assert "validation" not in load_rubrics("rubrics.json").metadata["learned"]
    before = len(TEACHER.usage)
    assert run_cli([*COMMAND, "--resume"]) == 0
    assert not any("<<<BETTER" in text for text in TEACHER.usage[before:])
    assert " of 36 answers reused" in capsys.readouterr().out
    assert load_rubrics("rubrics.json").metadata["learned"]["validation"]["n"] == 18
    assert run_cli([*COMMAND, "--resume", "--seed", "9"]) == 2
    assert "were learned with other settings" in capsys.readouterr().err


def test_rubrics_resume_only_with_their_own_sessions_and_scale() -> None:
    """Otherwise they could be checked on sessions that they were learned from, or on another scale."""
    first = learned(known(100), Teacher())
    assert learned(known(100), Teacher(), proposed=first.rubrics).total == first.total
    others = [
        ScoredSession(msgspec.structs.replace(one.sample, id=f"z{one.sample.id}"), one.score) for one in known(100)
    ]
    with pytest.raises(ConfigError, match="were learned with other settings"):
        learned(others, Teacher(), proposed=first.rubrics)
    with pytest.raises(ConfigError, match="learned for a scale from 1 to 5"):
        learned(known(100), Teacher(), proposed=first.rubrics, scale=(1, 10))


def test_a_budget_that_the_proposals_use_up_leaves_the_rubrics(tmp_path: Path) -> None:
    """They are saved before the error about the budget."""
    saved: list[Any] = []
    with pytest.raises(StopRun, match="the budget is spent"):
        learned(known(100), Teacher(), save=saved.append, scoring=Scoring(budget={"calls": 5}))
    assert [one.id for one in saved[0]] == ["evidence", "brevity"]


def test_clustered_sessions_have_no_p_value(tmp_path: Path) -> None:
    """Sixty repeats of twelve tasks are not sixty sessions; the note gives the number of clusters."""
    made = [
        ScoredSession(
            msgspec.structs.replace(one.sample, metadata={**one.sample.metadata, "cluster": str(n % 12)}), one.score
        )
        for n, one in enumerate(known(60))
    ]
    found = learned(made, Teacher(), held_out_share=0.5).total
    assert (found.n, found.p) == (30, None)
    assert found.interval is not None
    assert found.note.startswith("the sessions form 6 clusters")
    assert learned(known(100), Teacher()).total.p is not None


def test_without_held_out_sessions_the_result_says_why() -> None:
    """By choice, too few groups, or a single session."""
    none = learned(known(20), Teacher(), held_out_share=0.0)
    assert none.total.verdict == "not checked: no session was held out"
    assert (none.notes, none.run_id) == ((), None)
    assert none.rubrics.metadata["learned"]["validation"]["n"] == 0
    one_group = learned(known(20, cluster="a"), Teacher())
    assert "1 clusters or sessions are too few" in one_group.notes[0]
    alone = learned(known(20), Teacher(), held_out_share=0.05)
    assert alone.total.verdict.startswith("not checked: only one session was held out")


def test_the_interval_of_tau_needs_enough() -> None:
    """Ten items, both sides ranking something; clusters make it wider."""
    assert kendall_interval(range(9), range(9)) is None
    assert kendall_interval(range(12), [1] * 12) is None
    mixed = [0, 2, 1, 3, 5, 4, 6, 8, 7, 9, 11, 10, 12, 14, 13]
    low, high = kendall_interval(range(15), mixed) or (0, 0)
    assert 0.4 < low < 0.8 < high <= 1.0
    assert kendall_interval(range(15), mixed, clusters=["a", "b", "c"] * 5) is None
