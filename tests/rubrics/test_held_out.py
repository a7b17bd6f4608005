"""Sessions for learning and for testing rubrics: none is in both groups."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor import Message, Sample, Session
from proctor.errors import ConfigError
from proctor.records.rubric import compute_total, read_run_columns
from proctor.wiring.scoring.learning import build_contrasts, cluster_duplicates, split_sessions
from proctor.wiring.scoring.manifest import ScoredSession, read_manifest
from tests.rubrics.test_learning import Teacher, known, learned, write_logs
from tests.rubrics.test_results import result, run, spec


def session(name: str, text: str, score: float = 1.0, **metadata: Any) -> ScoredSession:
    output = Session([Message("user", text)])
    return ScoredSession(Sample(name, "", metadata={"session": output, **metadata}), score)


@pytest.mark.parametrize(("good", "bad"), [(2, 10), (10, 2), (1, 11), (4, 8)])
def test_a_few_good_sessions_among_bad_ones_are_learned_from(good: int, bad: int) -> None:
    """Each good session is paired with a bad one; equal neighbours are left out."""
    sessions = [session(f"s{n}", f"text {n}", float(n < good)) for n in range(good + bad)]
    found = build_contrasts(sessions, rounds=5)
    fewer = min(good, bad)
    sizes = [3, 1] if fewer == 4 else [fewer]
    assert [len(one.better) for one in found] == [len(one.worse) for one in found] == sizes
    shown = {text for one in found for text in one.better}
    assert len(shown) == fewer
    goods = {f"[1] user:\n    text {n}" for n in range(good)}
    assert shown <= goods
    assert not goods & {text for one in found for text in one.worse}


def test_sessions_with_equal_texts_are_shown_once_with_their_mean() -> None:
    """Otherwise one text could be among the better and among the worse sessions."""
    sessions = [session("a", "same", 5), session("b", "same", 1), session("c", "best", 4), session("d", "worst", 2)]
    (found,) = build_contrasts(sessions, rounds=5)
    assert ("best" in found.better[0], "worst" in found.worse[0]) == (True, True)
    assert len(found.better) == len(found.worse) == 1
    alike = [session(f"s{n}", "same", n) for n in range(20)]
    with pytest.raises(ConfigError, match="the sessions have no contrast"):
        learned(alike, Teacher())


def test_similar_sessions_are_in_one_cluster() -> None:
    """Clusters are transitive; single sessions stay single."""
    sessions = [
        session("a", "one", cluster="t1"),
        session("b", "one", cluster="t2"),
        session("c", "two", cluster="t2"),
        session("d", "three"),
        session("e", "three"),
        session("f", "four"),
        session("g", "five", cluster="f"),
    ]
    found = cluster_duplicates(sessions)
    assert [one.sample.cluster for one in found] == ["t1", "t1", "t1", None, "d", None, "f"]
    assert found[5] is sessions[5]
    assert [one.sample.id for one in found] == list("abcdefg")


texts = st.sampled_from("pqrst")
names = st.none() | st.sampled_from("xyz")


@given(st.lists(st.tuples(texts, names), min_size=1, max_size=14), st.integers(0, 9))
def test_no_text_and_no_cluster_is_in_both_groups(made: list[Any], seed: int) -> None:
    sessions = [
        session(f"s{n}", text, **({} if name is None else {"cluster": name})) for n, (text, name) in enumerate(made)
    ]
    before = {one.sample.id: one.sample for one in sessions}
    learn, check = split_sessions(cluster_duplicates(sessions), 0.4, seed)
    assert len(learn) + len(check) == len(sessions)
    sides = [[before[one.sample.id] for one in side] for side in (learn, check)]
    answer = [{one.metadata["session"].events[0].content for one in side} for side in sides]
    assert not answer[0] & answer[1]
    clusters = [{one.cluster for one in side} - {None} for side in sides]
    assert not clusters[0] & clusters[1]


def test_copies_are_not_additional_evidence() -> None:
    """Five copies of each of forty sessions: tau uses the twelve held-out sessions."""
    sessions = [
        ScoredSession(msgspec.structs.replace(one.sample, id=f"{one.sample.id}-{copy}"), one.score)
        for copy in range(5)
        for one in known(40)
    ]
    found = learned(sessions, Teacher()).total
    assert (found.n, found.p) == (60, None)
    assert found.note.startswith("the sessions form 12 clusters; fewer than 30 clusters")


def test_a_session_that_is_named_twice_is_refused(tmp_path: Path) -> None:
    """By another path, by an id, or with all of its folder; both places are named."""
    write_logs(tmp_path, 3)
    chats = [{"id": f"c{n}", "messages": [{"role": "user", "content": f"{n}"}], "reward": n}
             for n in range(2)]  # fmt: skip
    (tmp_path / "chats.jsonl").write_text("".join(json.dumps(chat) + "\n" for chat in chats))
    path = tmp_path / "m.json"
    cases = [
        ([{"path": "s0.json", "score": 4},
          {"path": "./s0.json", "score": 1}], "session 's0' is a duplicate of the one"),
        ([{"path": "chats.jsonl", "id": "c1", "score": 4},
          {"path": f"../{tmp_path.name}/chats.jsonl", "recorded": "reward"}], "session 'c1' is a duplicate of the one"),
        ([{"path": "chats.jsonl", "recorded": "reward"}] * 2, "2 sessions are duplicates of those"),
    ]  # fmt: skip
    for entries, which in cases:
        path.write_text(json.dumps(entries, indent=1).replace("},\n {", "},\n\n {"))
        with pytest.raises(ConfigError) as refused:
            read_manifest(path)
        (output,) = refused.value.problems
        assert ", [1]" in str(output)
        assert f"{which} at {path}:2, [0]" in str(output)
        assert "keep one entry for each session" in refused.value.fix


def test_totals_that_are_equal_on_paper_are_equal() -> None:
    """With weights .1, .2 and .3, and on any scale; else noise would be taken for an order."""
    specs = [spec(place, place / 10) for place in (1, 2, 3)]
    columns = read_run_columns(run(*specs))
    found = {}
    for low, high in ((1, 5), (0, 1e9), (0, 1e-9), (-3, 0)):
        steps = [low + (high - low) * step / 4 for step in range(5)]
        totals: dict[int, set[float]] = {}
        for a in range(5):
            for b in range(5):
                for c in range(5):
                    scores = result("s", steps[a], steps[b], steps[c], low=low, high=high).scores
                    total = compute_total(scores, columns._replace(scale=(low, high)))
                    assert total is not None
                    totals.setdefault(a + 2 * b + 3 * c, set()).add(total.score)
        assert all(len(one) == 1 for one in totals.values())
        found[low, high] = {one.pop() for one in totals.values()}
        assert len(found[low, high]) == 25
    assert 3.0 in found[1, 5]
