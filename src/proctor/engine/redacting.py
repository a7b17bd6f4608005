"""Between a run and its history: what must not be stored is taken out, in this one place."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import hashlib
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures.thread import ThreadPoolExecutor
from typing import Any

import msgspec

from proctor.core.redaction.redact import Redaction, may_hold_secret, may_hold_secrets
from proctor.history.payload import read, written
from proctor.models import asking as recall
from proctor.ports import ResultWriter
from proctor.records import codec
from proctor.records.run import RunMetadata, RunOptions
from proctor.records.sample import CLUSTER
from proctor.records.trial import EvalResult, Verdict

# So much may wait, in characters, before no more should come.
MOST_WAITING = 5_000_000


class Aside:
    """Does pieces of work one after the other in a thread of its own.

    What each gives is a function, which is called in the loop: there nothing else happens
    meanwhile. One that fails says so when `full` is asked, and at the end.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        # Warnings of the run are found by it, also from the thread.
        self._context = contextvars.copy_context()
        self._thread = ThreadPoolExecutor(1, "proctor-redaction")
        self._waiting: deque[tuple[int, Future[Callable[[], None]]]] = deque()

    def do(self, size: int, work: Callable[..., Callable[[], None]], *args: Any) -> None:
        """Take work of a size; returns at once."""
        future = self._thread.submit(self._context.copy().run, work, *args)
        self._waiting.append((size, future))
        future.add_done_callback(self._tell)

    def full(self) -> bool:
        """True if so much waits that no more should come."""
        self._hand_on(failed=True)
        return sum(size for size, _ in self._waiting) > MOST_WAITING

    def close(self) -> None:
        """Wait for all of it, and hand it on."""
        self._thread.shutdown()
        self._hand_on(failed=True)

    def _tell(self, _: object) -> None:
        hand_on = functools.partial(self._hand_on, failed=False)
        self._loop.call_soon_threadsafe(hand_on, context=self._context)

    def _hand_on(self, *, failed: bool) -> None:
        """Call what is done, in the order in which it came, and raise what went wrong if asked."""
        while self._waiting and self._waiting[0][1].done():
            future = self._waiting[0][1]
            if future.exception() is not None and not failed:
                return
            self._waiting.popleft()
            future.result()()


# So many simple results are looked at together, if they come in one turn of the loop.
TOGETHER = 64
# To look at a larger one, in characters, may take more than some milliseconds.
LARGE = 50_000
_LETTERS = str.maketrans("0123456789abcdef", "abcdefghijklmnop")
_SIMPLE = frozenset({str, int, float, bool, type(None)})
# Of a run's parts those that hold what users wrote, and in which names may say what is secret.
_OF_A_RUN = ("dataset", "target", "tags", "warnings", "provenance")


class Redacting:
    """A writer before another one, which gets results without secrets.

    Simple results wait for the loop's next turn and are looked at together, which takes a fraction
    of the time. Large ones are looked at in a thread: meanwhile other trials go on, and none runs
    out of time for it. An output or answer that holds a secret is not kept for reuse: in its place
    something else would be scored. What was asked is no reason: it is kept without the secret.
    """

    def __init__(self, writer: ResultWriter, redaction: Redaction, *, at_once: bool) -> None:
        self._add, self._keep, self._behind = writer.add, writer.keep, writer.behind
        self._redaction = redaction
        self._at_once = at_once
        self._most = 1 if at_once else TOGETHER
        self._waiting: list[tuple[int, EvalResult, Verdict | None]] = []
        self._texts: list[str] = []
        self._aside: Aside | None = None
        self.unkept = 0

    def add(self, position: int, result: EvalResult, verdict: Verdict | None = None) -> None:
        """Hand on a result, redacted; its verdict is that on what was really there."""
        texts = None if self._redaction.personal else _texts(result)
        if texts is None or len(texts) > LARGE:
            self._add_redacted(position, result, verdict)
            return
        self._waiting.append((position, result, verdict))
        self._texts.append(texts)
        if len(self._texts) >= self._most:
            self.settle()
        elif len(self._texts) == 1:
            asyncio.get_running_loop().call_soon(self.settle)

    def settle(self) -> None:
        """Hand on the results that still wait for the loop's next turn."""
        waiting, texts = self._waiting, "\n".join(self._texts)
        self._waiting, self._texts = [], []
        hand_on = self._add_redacted if may_hold_secret(texts) else self._add
        for position, result, verdict in waiting:
            hand_on(position, result, verdict)

    def close(self) -> None:
        """Hand on all results that still wait."""
        try:
            self.settle()
        finally:
            if self._aside is not None:
                self._aside.close()

    def behind(self) -> bool:
        """True if results come faster than they can be looked at or kept."""
        return (self._aside is not None and self._aside.full()) or self._behind()

    def keep(self, key: str, created_at: str, reply: bytes) -> None:
        """Hand on an output to be reused, unless it holds what must not be stored."""
        self._do(len(reply), self._kept, key, created_at, reply)

    def _add_redacted(self, position: int, result: EvalResult, verdict: Verdict | None) -> None:
        data = _encoded(result)
        self._do(len(data), self._added, position, result, data, verdict or result.verdict())

    def _do(self, size: int, work: Callable[..., Callable[[], None]], *args: Any) -> None:
        """Do some work here, or aside if it is large; then what it gives."""
        if size <= LARGE or self._at_once:
            work(*args)()
            return
        self._aside = self._aside or Aside()
        self._aside.do(size, work, *args)

    def _added(self, position: int, result: EvalResult, data: bytes, verdict: Verdict) -> Callable[[], None]:
        looking = Redaction(personal=self._redaction.personal)
        without = redacted(result, looking, data)

        def add() -> None:
            self._redaction.counts += looking.counts
            self._add(position, without, verdict)

        return add

    def _kept(self, key: str, created_at: str, reply: bytes) -> Callable[[], None]:
        without = _reusable(reply, Redaction(personal=self._redaction.personal))
        if without is None:
            return self._not_kept
        return functools.partial(self._keep, key, created_at, without)

    def _not_kept(self) -> None:
        self.unkept += 1


def _reusable(reply: bytes, looking: Redaction) -> bytes | None:
    """What may be kept of an output or answer, to be given again; None if that is not the same."""
    if not looking.may_find(reply.decode(errors="replace")):
        return reply
    plain: dict[str, Any] = msgspec.json.decode(reply)
    if recall.read(reply) is None:
        return reply if looking.value(plain) is plain else None
    # An answer is found by a digest of what was really asked; the words are for people.
    asked = plain.pop("request")
    if looking.value(plain) is not plain:
        return None
    without = looking.value(asked)
    return reply if without is asked else codec.encode({**plain, "request": without})


def redaction_for(options: RunOptions) -> Redaction | None:
    """What takes out of a run's results what its options say; None if that is nothing."""
    if options.redact == "nothing":
        return None
    return Redaction(personal=options.redact == "personal")


@contextlib.contextmanager
def guarded(
    writer: ResultWriter,
    redaction: Redaction | None,
    *,
    at_once: bool = False,
    warnings: list[str] | None = None,
) -> Iterator[ResultWriter]:
    """The writer, behind a redaction if there is one; `at_once` lets no result wait for others.

    `warnings` hears how many outputs and answers were not kept for reuse.
    """
    if redaction is None:
        yield writer
        return
    kept = Redacting(writer, redaction, at_once=at_once)
    try:
        yield kept
    finally:
        kept.close()
        if kept.unkept and warnings is not None:
            warnings.append(
                "answers that were not kept for reuse, for they hold what must not be stored: "
                f"{kept.unkept}; a later run asks for them again"
            )


def redacted(result: EvalResult, redaction: Redaction, data: bytes | None = None) -> EvalResult:
    """A result without what must not be stored; itself if there is nothing.

    Ids and names stay: by them results are told apart. A cluster that must not be stored becomes
    another one for each. `data` is the result as JSON, if that is known.
    """
    text = (_encoded(result) if data is None else data).decode()
    if not redaction.may_find(text) or not (redaction.personal or may_hold_secrets(text)):
        return result
    plain: dict[str, Any] = msgspec.json.decode(written(result)[0])
    before = redaction.counts.total()
    trial, names = plain["trial"], {"configuration": result.trial.configuration}
    sample_id = trial["sample"].pop("id")
    cluster = trial["sample"].get("metadata", {}).get(CLUSTER)
    trial = {**redaction.value({**trial, "configuration": ""}), **names}
    plain["trial"] = {**trial, "sample": _told_apart(trial["sample"], sample_id, cluster)}
    for part in ("scores", "sessions"):
        named = plain.get(part, {})
        plain[part] = {name: redaction.value(value) for name, value in named.items()}
    return result if redaction.counts.total() == before else read(codec.encode(plain))


def _encoded(result: EvalResult) -> bytes:
    """A result as JSON, to be looked at; that it can be read back is seen to where it is kept."""
    try:
        return codec.encode(result)
    except codec.UNWRITABLE:
        return written(result)[0]


def _told_apart(sample: dict[str, Any], sample_id: str, cluster: Any) -> dict[str, Any]:
    """A sample with its id, and in a cluster of its own if that must not be told."""
    metadata = sample.get("metadata", {})
    left = metadata.get(CLUSTER)
    if left != cluster and isinstance(left, str) and isinstance(cluster, str):
        metadata = {**metadata, CLUSTER: f"{left} {_code_of(cluster)}"}
        return {**sample, "id": sample_id, "metadata": metadata}
    return {**sample, "id": sample_id}


def _code_of(name: str) -> str:
    """Twelve letters for a name, the same in every run; no digits, which could look like a number.

    >>> _code_of("ann@example.com") == _code_of("ann@example.com") != _code_of("bob@example.com")
    True
    """
    digest = hashlib.blake2b(name.encode(errors="replace"), digest_size=6).hexdigest()
    return digest.translate(_LETTERS)


def _texts(result: EvalResult) -> str | None:
    """All the texts of a simple result, to be looked at without writing it as JSON first.

    None if it is not a simple one.
    """
    trial = result.trial
    sample = trial.sample
    if trial.session is not None or trial.error is not None or sample.metadata or result.sessions:
        return None
    asked, wanted, given = sample.input, sample.expected, trial.output
    if type(asked) is str and type(given) is str and (wanted is None or type(wanted) is str):
        text = f"{asked}\n{given}\n{wanted}"
    elif {type(asked), type(given), type(wanted)} <= _SIMPLE:
        text = "\n".join(value for value in (asked, given, wanted) if type(value) is str)
    else:
        return None
    for score in result.scores.values():
        if score.details:
            return None
        if score.reason:
            text = f"{text}\n{score.reason}"
    return text


def described(run: RunMetadata) -> RunMetadata:
    """What is known of a run, without secrets; values whose names say that they are one too.

    What was found is counted when the run begins, not again when it is resumed.
    """
    redaction = redaction_for(run.options)
    if redaction is None:
        return run
    try:
        plain: dict[str, Any] = msgspec.json.decode(codec.encode(run))
    except codec.UNWRITABLE:
        # The history says what cannot be written.
        return run
    changes = {part: redaction.value(plain[part], by_name=True) for part in _OF_A_RUN if part in plain}
    for part, inside in (("configurations", "options"), ("evaluators", "parameters")):
        if part in plain:
            changes[part] = [_inside(one, inside, redaction) for one in plain[part]]
    if not redaction.counts:
        return run
    counts = dict(run.redacted or redaction.counts)
    return msgspec.json.decode(codec.encode({**plain, **changes, "redacted": counts}), type=RunMetadata)


def _inside(one: dict[str, Any], part: str, redaction: Redaction) -> dict[str, Any]:
    return {**one, part: redaction.value(one.get(part, {}), by_name=True)}


def with_counts(run: RunMetadata, redaction: Redaction | None) -> RunMetadata:
    """A run that has ended, with what was taken out of its results and a warning that says so."""
    if redaction is None:
        return run
    # Warnings may quote errors; what is found in them was counted where the error was.
    quiet = Redaction(personal=redaction.personal)
    counts = Counter(run.redacted) + redaction.counts
    earlier = sentence(run.redacted)
    warnings = [quiet.text(text) for text in run.warnings if text != earlier]
    if counts:
        warnings.append(sentence(counts))
    return msgspec.structs.replace(run, warnings=tuple(warnings), redacted=dict(counts))


def sentence(counts: Mapping[str, int]) -> str:
    """What was taken out of a run, in words.

    >>> sentence({"github token": 2, "password": 1})
    'taken out before anything was stored: 2 github token, 1 password'
    """
    told = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
    return f"taken out before anything was stored: {told}"


def of_what_is_left(before: RunMetadata) -> tuple[str, ...]:
    """What must be said of a rescoring of a run from which something was taken out."""
    if not before.redacted:
        return ()
    taken = sum(before.redacted.values())
    told = f"run {before.run_id} was stored without {taken} values (secrets or personal data)"
    return (f"{told}; evaluators see the marks in their places",)
