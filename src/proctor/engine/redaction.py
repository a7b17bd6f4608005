"""Redact results before they reach the history."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import hashlib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures.thread import ThreadPoolExecutor
from typing import Any

import msgspec

from proctor.core.redaction.redact import Redaction, may_hold_secret, may_hold_secrets
from proctor.history.payload import decode_result, encode_result
from proctor.models import model_calls as recall
from proctor.ports import ResultWriter
from proctor.records import codec
from proctor.records.formatting import format_count
from proctor.records.run import RunMetadata, RunOptions
from proctor.records.sample import CLUSTER
from proctor.records.score import Score, make_passed_scores
from proctor.records.trial import EvalResult, PositionedResult, Verdict

# Workers wait while this many characters are queued.
MAX_QUEUED_CHARACTERS = 5_000_000


class BackgroundQueue:
    """Runs work in order in one thread; each work item returns a function to call in the loop.

    An error of a work item is raised by `is_full` and by `close`.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        # The context passes warnings of the thread to the run.
        self._context = contextvars.copy_context()
        self._thread = ThreadPoolExecutor(1, "proctor-redaction")
        self._queue: deque[tuple[int, Future[Callable[[], None]]]] = deque()

    def submit(self, size: int, work: Callable[..., Callable[[], None]], *args: Any) -> None:
        """Queue work of this size; return immediately."""
        future = self._thread.submit(self._context.copy().run, work, *args)
        self._queue.append((size, future))
        future.add_done_callback(self._on_done)

    def is_full(self) -> bool:
        self._deliver(raise_errors=True)
        return sum(size for size, _ in self._queue) > MAX_QUEUED_CHARACTERS

    def close(self) -> None:
        """Wait for all work and deliver it."""
        self._thread.shutdown()
        self._deliver(raise_errors=True)

    def _on_done(self, _: object) -> None:
        deliver = functools.partial(self._deliver, raise_errors=False)
        self._loop.call_soon_threadsafe(deliver, context=self._context)

    def _deliver(self, *, raise_errors: bool) -> None:
        """Call the returned functions of finished work, in the order of submission."""
        while self._queue and self._queue[0][1].done():
            future = self._queue[0][1]
            if future.exception() is not None and not raise_errors:
                return
            self._queue.popleft()
            future.result()()


# Simple results that arrive in one iteration of the loop are checked in batches of this size.
BATCH_SIZE = 64
# Checking a larger result, in characters, may take more than some milliseconds.
LARGE = 50_000
_HEX_TO_LETTERS = str.maketrans("0123456789abcdef", "abcdefghijklmnop")
_SIMPLE = frozenset({str, int, float, bool, type(None)})
# The fields of a run that users write; names in them may mark values as secret.
_USER_FIELDS = ("dataset", "target", "tags", "warnings", "provenance")


class RedactingWriter:
    """Removes secrets from results before another writer stores them.

    Simple results wait for the next iteration of the loop and are checked together, which is much faster. Large results
    are checked in a thread, so that other trials continue. An output or response that contains a secret is not cached,
    because its reuse would score redacted text. A secret in the request does not prevent it: the request is stored
    redacted.
    """

    def __init__(
        self, writer: ResultWriter, redaction: Redaction, *, is_immediate: bool, evaluators: Iterable[str] = ()
    ) -> None:
        self._writer = writer
        self._redaction = redaction
        self._is_immediate = is_immediate
        self._passed_scores = make_passed_scores(evaluators)
        self._batch_size = 1 if is_immediate else BATCH_SIZE
        self._batch: list[PositionedResult] = []
        self._texts: list[str] = []
        self._background_queue: BackgroundQueue | None = None
        self.uncached_count = 0

    def add(self, position: int, result: EvalResult, verdict: Verdict | None = None) -> None:
        """Pass on a result, redacted, with the verdict on the original."""
        text = None if self._redaction.personal else _join_texts(result, self._passed_scores)
        if text is None or len(text) > LARGE:
            self._add_redacted(position, result, verdict)
            return
        self._batch.append((position, result, verdict or result.verdict()))
        texts = self._texts
        texts.append(text)
        count = len(texts)
        if count >= self._batch_size:
            self.flush()
        elif count == 1:
            asyncio.get_running_loop().call_soon(self.flush)

    def add_batch(self, batch: Sequence[PositionedResult]) -> None:
        """Pass on results, redacted."""
        for finished in batch:
            self.add(*finished)

    def flush(self) -> None:
        """Pass on the batched results."""
        batch, texts = self._batch, "\n".join(self._texts)
        self._batch, self._texts = [], []
        if not batch:
            return
        if not may_hold_secret(texts):
            self._writer.add_batch(batch)
            return
        for position, result, verdict in batch:
            self._add_redacted(position, result, verdict)

    def close(self) -> None:
        """Pass on all waiting results."""
        try:
            self.flush()
        finally:
            if self._background_queue is not None:
                self._background_queue.close()

    def is_lagging(self) -> bool:
        """True if results come faster than they can be checked or stored."""
        return (self._background_queue is not None and self._background_queue.is_full()) or self._writer.is_lagging()

    def cache_output(self, key: str, created_at: str, reply: bytes) -> None:
        """Cache an output, unless it contains a secret."""
        self._run(len(reply), self._prepare_cached, key, created_at, reply)

    def _add_redacted(self, position: int, result: EvalResult, verdict: Verdict | None) -> None:
        data = _encode(result)
        self._run(len(data), self._prepare_result, position, result, data, verdict or result.verdict())

    def _run(self, size: int, work: Callable[..., Callable[[], None]], *args: Any) -> None:
        """Do the work here, or in a thread if it is large; then call the function it returns."""
        if size <= LARGE or self._is_immediate:
            work(*args)()
            return
        self._background_queue = self._background_queue or BackgroundQueue()
        self._background_queue.submit(size, work, *args)

    def _prepare_result(self, position: int, result: EvalResult, data: bytes, verdict: Verdict) -> Callable[[], None]:
        redaction = Redaction(personal=self._redaction.personal)
        safe = redact_result(result, redaction, data)

        def add() -> None:
            self._redaction.counts += redaction.counts
            self._writer.add(position, safe, verdict)

        return add

    def _prepare_cached(self, key: str, created_at: str, reply: bytes) -> Callable[[], None]:
        safe = _redact_cached(reply, Redaction(personal=self._redaction.personal))
        if safe is None:
            return self._count_uncached
        return functools.partial(self._writer.cache_output, key, created_at, safe)

    def _count_uncached(self) -> None:
        self.uncached_count += 1


def _redact_cached(reply: bytes, redaction: Redaction) -> bytes | None:
    """Redact the request of a cached response; None if the response itself contains a secret."""
    if not redaction.may_find(reply.decode(errors="replace")):
        return reply
    plain: dict[str, Any] = msgspec.json.decode(reply)
    if recall.read_stored_call(reply) is None:
        return reply if redaction.value(plain) is plain else None
    # The key is a digest of the original request; the stored request is for people.
    request = plain.pop("request")
    if redaction.value(plain) is not plain:
        return None
    safe = redaction.value(request)
    return reply if safe is request else codec.encode({**plain, "request": safe})


def create_redaction(options: RunOptions) -> Redaction | None:
    """Create the redaction that the options request, if any."""
    if options.redact == "nothing":
        return None
    return Redaction(personal=options.redact == "personal")


@contextlib.contextmanager
def redacting_writer(
    writer: ResultWriter,
    redaction: Redaction | None,
    *,
    is_immediate: bool = False,
    warnings: list[str] | None = None,
    evaluators: Iterable[str] = (),
) -> Iterator[ResultWriter]:
    """Wrap a writer in a redaction, if there is one; `is_immediate` checks each result separately.

    `warnings` receives the number of outputs and responses that were not cached. `evaluators` are the names of the
    evaluators of all samples.
    """
    if redaction is None:
        yield writer
        return
    redacting = RedactingWriter(writer, redaction, is_immediate=is_immediate, evaluators=evaluators)
    try:
        yield redacting
    finally:
        redacting.close()
        if redacting.uncached_count and warnings is not None:
            warnings.append(
                "answers that were not cached, because they contain secrets or personal data: "
                f"{redacting.uncached_count}; a later run requests them again"
            )


def redact_result(result: EvalResult, redaction: Redaction, data: bytes | None = None) -> EvalResult:
    """Redact a result; return it unchanged if it contains no secret.

    Ids and names stay, because they identify results. A cluster with a secret gets a new name.
    `data` is the result as JSON, if it is already encoded.
    """
    text = (_encode(result) if data is None else data).decode()
    if not redaction.may_find(text) or not (redaction.personal or may_hold_secrets(text)):
        return result
    plain: dict[str, Any] = msgspec.json.decode(encode_result(result)[0])
    before = redaction.counts.total()
    trial, names = plain["trial"], {"configuration": result.trial.configuration}
    sample_id = trial["sample"].pop("id")
    cluster = trial["sample"].get("metadata", {}).get(CLUSTER)
    trial = {**redaction.value({**trial, "configuration": ""}), **names}
    plain["trial"] = {**trial, "sample": _restore_names(trial["sample"], sample_id, cluster)}
    for part in ("scores", "sessions"):
        plain[part] = {name: redaction.value(value) for name, value in plain.get(part, {}).items()}
    return result if redaction.counts.total() == before else decode_result(codec.encode(plain))


def _encode(result: EvalResult) -> bytes:
    """Encode a result for the check; the history makes sure that it can be read back."""
    try:
        return codec.encode(result)
    except codec.ENCODE_ERRORS:
        return encode_result(result)[0]


def _restore_names(sample: dict[str, Any], sample_id: str, cluster: Any) -> dict[str, Any]:
    """Restore the id of a redacted sample; rename a redacted cluster so that clusters stay distinct."""
    metadata = sample.get("metadata", {})
    redacted = metadata.get(CLUSTER)
    if redacted != cluster and isinstance(redacted, str) and isinstance(cluster, str):
        metadata = {**metadata, CLUSTER: f"{redacted} {_code_name(cluster)}"}
        return {**sample, "id": sample_id, "metadata": metadata}
    return {**sample, "id": sample_id}


def _code_name(name: str) -> str:
    """Return twelve letters for a name, the same in every run; digits could be mistaken for a number.

    >>> _code_name("ann@example.com") == _code_name("ann@example.com") != _code_name("bob@example.com")
    True
    """
    digest = hashlib.blake2b(name.encode(errors="replace"), digest_size=6).hexdigest()
    return digest.translate(_HEX_TO_LETTERS)


def _join_texts(result: EvalResult, passed_scores: Mapping[str, Score]) -> str | None:
    """Return all strings of a simple result, to check it without encoding; None if it is not simple.

    `passed_scores` have no texts.
    """
    trial = result.trial
    sample = trial.sample
    if trial.session is not None or trial.error is not None or sample.metadata or result.sessions:
        return None
    prompt, expected, output = sample.input, sample.expected, trial.output
    if type(prompt) is str and type(output) is str and (expected is None or type(expected) is str):
        text = f"{prompt}\n{output}\n{expected}"
    elif {type(prompt), type(output), type(expected)} <= _SIMPLE:
        text = "\n".join(value for value in (prompt, output, expected) if type(value) is str)
    else:
        return None
    if result.scores == passed_scores:
        return text
    for score in result.scores.values():
        if score.details:
            return None
        if score.reason:
            text = f"{text}\n{score.reason}"
    return text


def redact_metadata(run: RunMetadata) -> RunMetadata:
    """Redact the metadata of a run, including values whose names mark them as secret.

    Findings are counted when the run starts, and not again when it is resumed.
    """
    redaction = create_redaction(run.options)
    if redaction is None:
        return run
    try:
        plain: dict[str, Any] = msgspec.json.decode(codec.encode(run))
    except codec.ENCODE_ERRORS:
        # The history reports values that cannot be encoded.
        return run
    changes = {field: redaction.value(plain[field], by_name=True) for field in _USER_FIELDS if field in plain}
    for field, key in (("configurations", "options"), ("evaluators", "parameters")):
        if field in plain:
            changes[field] = [{**item, key: redaction.value(item.get(key, {}), by_name=True)} for item in plain[field]]
    if not redaction.counts:
        return run
    counts = dict(run.redacted or redaction.counts)
    return msgspec.json.decode(codec.encode({**plain, **changes, "redacted": counts}), type=RunMetadata)


def add_redaction_counts(run: RunMetadata, redaction: Redaction | None) -> RunMetadata:
    """Add the number of redacted values to a finished run, and a warning that lists them."""
    if redaction is None:
        return run
    # Warnings may quote errors; their secrets were counted with the error.
    uncounted = Redaction(personal=redaction.personal)
    counts = Counter(run.redacted) + redaction.counts
    earlier_warning = describe_counts(run.redacted)
    warnings = [uncounted.text(text) for text in run.warnings if text != earlier_warning]
    if counts:
        warnings.append(describe_counts(counts))
    return msgspec.structs.replace(run, warnings=tuple(warnings), redacted=dict(counts))


def describe_counts(counts: Mapping[str, int]) -> str:
    """Describe how many values of each type were redacted.

    >>> describe_counts({"github token": 2, "password": 1})
    'redacted before storing: 2 github token, 1 password'
    """
    counts_text = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    return f"redacted before storing: {counts_text}"


def redaction_warnings(stored_run: RunMetadata) -> tuple[str, ...]:
    """Warn about rescoring a run whose stored results were redacted."""
    if not stored_run.redacted:
        return ()
    count = sum(stored_run.redacted.values())
    stored = f"run {stored_run.run_id} was stored without {format_count(count, 'value')} (secrets or personal data)"
    return (f"{stored}; evaluators see placeholders instead",)
