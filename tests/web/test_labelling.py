"""The labelling page of the server: who may store a label, what is shown, and how labels are taken back."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from proctor import Score, SQLiteHistory, evaluate
from proctor.errors import HistoryError
from proctor.validity.drawing import draw, list_judged_outputs
from tests.web.test_server import ask, serving

NEXT = "/label/next?evaluator=judge&annotator=ana&size=6"


def judge(output: str) -> Score:
    """Pass every second output, with a reason that must not reach an annotator."""
    return Score(float(int(output) % 2), int(output) % 2 == 1, "SECRET REASON")


def strict(output: str) -> Score:
    return Score(0.0, output == "nothing", "ANOTHER SECRET")


class Client:
    """A page of the viewer that knows the server's token."""

    def __init__(self, port: int, history: SQLiteHistory) -> None:
        self.port, self.history = port, history
        self.run_id = history.find("latest").run_id
        self.path = f"/api/runs/{self.run_id}"
        [self.token] = re.findall(r'name="proctor-token" content="([\w-]{32})"', ask(port, "/")[2].decode())

    def get(self, path: str) -> Any:
        status, _, body = ask(self.port, self.path + path)
        assert status == 200, body
        return json.loads(body)

    def post(self, body: bytes | dict[str, Any], token: str | None = None, **headers: str) -> tuple[int, Any]:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = {
            "Content-Type": "application/json",
            "X-Proctor-Token": self.token if token is None else token,
            **headers,
        }
        status, _, answer = ask(self.port, f"{self.path}/labels", "POST", content, **sent)
        return status, json.loads(answer) if answer.startswith(b"{") else answer

    def label(self, action: str, item: str = "", **fields: Any) -> Any:
        settings = {"evaluator": "judge", "annotator": "ana", "size": 6}
        status, state = self.post({**settings, "action": action, "item": item, **fields})
        assert status == 200, state
        return state


@contextmanager
def labelling(path: Path) -> Iterator[Client]:
    """A viewer of a run of 20 numbers with two evaluators."""
    history = SQLiteHistory(path)
    samples = [{"id": f"s{i:02}", "input": str(i), "expected": "odd"} for i in range(20)]
    evaluate(lambda text: text, samples, [judge, strict], history=history, name="numbers", progress=False)
    with serving(history) as port:
        yield Client(port, history)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with labelling(tmp_path / "h.db") as client:
        yield client


@pytest.fixture(scope="module")
def shared_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """For tests that store nothing, or do not mind the labels of others."""
    with labelling(tmp_path_factory.mktemp("labelling") / "h.db") as client:
        yield client


def test_an_output_comes_without_any_verdict(shared_client: Client) -> None:
    """The answer has an id, the sample, its texts and the progress, and nothing else; whatever the strategy."""
    for strategy in ("random", "stratified", "disagreement"):
        state = shared_client.get(f"{NEXT}&strategy={strategy}")
        output = state.pop("output")
        assert state == {"total": 6, "labelled": 0, "skipped": 0, "comment": ""}
        number = str(int(output["sample_id"][1:]))
        texts = [("input", number), ("expected", "odd"), ("output", number)]
        assert output == {
            "id": output["id"],
            "sample_id": output["sample_id"],
            "position": 1,
            "texts": [{"title": title, "value": value} for title, value in texts],
        }
        assert re.fullmatch("[0-9a-f]{16}", output["id"])


def test_labels_continue_the_draw_of_the_terminal_for_each_annotator(client: Client) -> None:
    """In the same order, with the same probability; another annotator starts at the first output."""
    outputs = list(list_judged_outputs(client.run_id, client.history.results(client.run_id), "judge"))
    state = client.get(NEXT)
    for drawn in draw(outputs, "random", 6)[:3]:
        assert state["output"]["sample_id"] == drawn.output.item.sample_id
        state = client.label("fail", state["output"]["id"], comment=" odd ")
    assert (state["labelled"], state["output"]["position"]) == (3, 4)
    assert client.get(NEXT) == state
    assert client.get(NEXT.replace("ana", "ben"))["output"]["position"] == 1
    labels = client.history.labels()
    assert {(x.annotator, x.passed, x.comment, x.probability) for x in labels} == {("ana", False, "odd", 0.3)}
    assert client.get("/label")["labelled"] == [{"evaluator": "judge", "annotator": "ana", "n": 3}]


def test_undo_takes_back_the_last_label_with_its_comment(client: Client) -> None:
    """Of this annotator only; without a label there is nothing to take back."""
    first = client.get(NEXT)["output"]["id"]
    second = client.label("pass", first)["output"]["id"]
    state = client.label("skip", second, comment="which?")
    assert (state["labelled"], state["skipped"]) == (1, 1)
    client.label("pass", client.get(NEXT.replace("ana", "ben"))["output"]["id"], annotator="ben")
    state = client.label("undo")
    assert (state["output"]["id"], state["comment"], state["labelled"]) == (second, "which?", 1)
    assert client.label("undo")["output"]["id"] == first
    assert [x.annotator for x in client.history.labels()] == ["ben"]
    status, answer = client.post({"evaluator": "judge", "annotator": "ana", "action": "undo"})
    assert (status, answer["error"]) == (400, "there is no label to take back")


def test_the_last_label_leads_to_the_card(client: Client) -> None:
    """Agreement, kappa and the corrected rate, with n; too few labels make the card weak."""
    state = client.get(NEXT)
    while state["output"]:
        number = int(state["output"]["sample_id"][1:])
        state = client.label("pass" if number % 2 else "fail", state["output"]["id"])
    assert (state["labelled"], state["total"]) == (6, 6)
    [card] = client.get("/cards")["cards"]
    assert (card["evaluator"], card["state"], card["n"]) == ("judge", "weak", 6)
    assert card["agreement"]["share"]["value"] == 1.0
    assert (card["rate"]["n"], card["rate"]["total"]) == (6, 20)
    assert "n = 6" in card["worth"]
    assert card["labels"] == "6 outputs of this run (6 random)"


def test_a_card_names_the_outputs_that_people_dispute(client: Client) -> None:
    """Ana passes two outputs and Ben fails the first of them, which the figures then leave out."""
    first = client.get(NEXT)["output"]["id"]
    client.label("pass", client.label("pass", first)["output"]["id"])
    client.label("fail", first, annotator="ben")
    [card] = client.get("/cards")["cards"]
    assert card["n"] == 1
    assert "1 disputed by the annotators and left out" in card["labels"]
    assert "may flatter the judge" in card["labels"]


@pytest.mark.parametrize(
    ("token", "headers", "status"),
    [
        ("", {}, 403),
        ("wrong", {}, 403),
        (None, {"Origin": "http://evil.example"}, 403),
        (None, {"Host": "evil.example"}, 403),
        (None, {"Content-Type": "text/plain"}, 415),
        (None, {"Content-Type": "application/json; charset=utf-8"}, 200),
    ],
)
def test_only_the_served_page_stores_a_label(
    shared_client: Client, token: str | None, headers: dict[str, str], status: int
) -> None:
    """It alone knows the token; a form or a page of another host cannot send it."""
    item = shared_client.get(NEXT)["output"]["id"]
    body = {"evaluator": "judge", "annotator": "zoe", "size": 6, "action": "pass", "item": item}
    assert shared_client.post(body, token, **headers)[0] == status
    assert len(shared_client.history.labels()) == (status == 200)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"[1]", 400),
        (b'{"annotator": "ana", "action": "delete"}', 400),
        (b'{"annotator": "", "action": "pass"}', 400),
        (b'{"annotator": "ana", "action": "pass", "size": 0}', 400),
        (b'{"annotator": "ana", "action": "pass", "item": "0123456789abcdef"}', 400),
        (b'{"annotator": "ana", "action": "pass", "evaluator": "nobody"}', 400),
        (b"x" * 64_001, 413),
    ],
)
def test_wrong_requests_store_nothing(shared_client: Client, body: bytes, status: int) -> None:
    """The answer says what is wrong, and what to do."""
    code, answer = shared_client.post(body)
    assert code == status
    assert answer["error"]
    assert answer["fix"]
    assert [x for x in shared_client.history.labels() if x.annotator == "ana"] == []


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"])
def test_labels_are_stored_by_post_only(shared_client: Client, method: str) -> None:
    """Also with the token."""
    status, headers, _ = ask(
        shared_client.port, f"{shared_client.path}/labels", method, **{"X-Proctor-Token": shared_client.token}
    )
    assert (status, headers["allow"]) == (405, "POST")


def test_a_history_that_cannot_be_written_says_so(shared_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The label is not lost silently."""

    def refuse(labels: object) -> int:
        raise HistoryError("attempt to write a readonly database", where="h.db")

    monkeypatch.setattr(shared_client.history, "add_labels", refuse)
    item = shared_client.get(NEXT)["output"]["id"]
    status, answer = shared_client.post(
        {"evaluator": "judge", "annotator": "ana", "size": 6, "action": "pass", "item": item}
    )
    assert (status, answer["error"]) == (500, "the label was not stored: attempt to write a readonly database")
    assert "--history" in answer["fix"]


def test_a_shared_viewer_proposes_no_annotator(shared_client: Client) -> None:
    """Several people would otherwise label under the name of whoever started it."""
    with serving(shared_client.history, token="secret") as port:
        _, _, body = ask(port, f"{shared_client.path}/label", Cookie="proctor_token=secret")
    assert json.loads(body)["annotator"] == ""
    assert shared_client.get("/label")["annotator"] != ""
