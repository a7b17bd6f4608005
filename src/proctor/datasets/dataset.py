"""A dataset in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar, overload

from proctor.datasets.census import Census, duplicate_id
from proctor.datasets.faults import WHOLE, Fault, many_bad
from proctor.datasets.formats import open_file
from proctor.datasets.record import RecordReader, Rules, item_rows, sample_faults
from proctor.records.run import DatasetInfo
from proctor.records.sample import Sample, kind_of

InputT = TypeVar("InputT")
ExpectedT = TypeVar("ExpectedT")
LoadedInputT = TypeVar("LoadedInputT")
LoadedExpectedT = TypeVar("LoadedExpectedT")


class Dataset(Generic[InputT, ExpectedT]):
    """Samples held in memory: a fixed sequence in which every id is used once.

    >>> sums = Dataset([Sample("1", "2 + 2", "4"), Sample("2", "3 + 3", "6")], name="sums")
    >>> len(sums), sums[1].expected, sums[:1]
    (2, '6', Dataset(1 sample, name='sums'))
    """

    def __init__(self, samples: Iterable[Sample[InputT, ExpectedT]], name: str = "memory") -> None:
        self._samples = tuple(samples)
        self._name = name
        self._info: DatasetInfo | None = None
        self._null_input = False
        faults = list(_faults(self._samples))
        if faults:
            raise many_bad(name, faults)

    @overload
    @staticmethod
    def load(
        path: str | Path,
        input_type: type[LoadedInputT],
        expected_type: type[LoadedExpectedT],
        *,
        mapping: Mapping[str, str] | None = None,
        generate_ids: bool = False,
        format: str | None = None,
    ) -> Dataset[LoadedInputT, LoadedExpectedT]: ...
    @overload
    @staticmethod
    def load(
        path: str | Path,
        input_type: Any = Any,
        expected_type: Any = Any,
        *,
        mapping: Mapping[str, str] | None = None,
        generate_ids: bool = False,
        format: str | None = None,
    ) -> Dataset[Any, Any]: ...
    @staticmethod
    def load(
        path: str | Path,
        input_type: Any = Any,
        expected_type: Any = Any,
        *,
        mapping: Mapping[str, str] | None = None,
        generate_ids: bool = False,
        format: str | None = None,  # noqa: A002 - the word people use
    ) -> Dataset[Any, Any]:
        """Load a whole JSONL, JSON, CSV or TSV file; everything wrong in it is one error.

        Values are read into the given types; `mapping` and `generate_ids` are as in
        `JSONLDataset`. The ending and the content tell the format, unless `format` names it:
        "jsonl", "json", "csv" or "tsv".
        """
        rules = Rules(
            input_type=input_type, expected_type=expected_type, mapping=mapping, generate_ids=generate_ids
        )
        return _known(*open_file(path, rules, format).stream.load())

    @staticmethod
    def of(
        items: Iterable[Any],
        input_type: Any = Any,
        expected_type: Any = Any,
        *,
        mapping: Mapping[str, str] | None = None,
        name: str = "memory",
        generate_ids: bool = False,
    ) -> Dataset[Any, Any]:
        """A dataset from dicts, samples, or objects with the fields of a sample.

        >>> Dataset.of([{"id": 1, "input": "2 + 2", "expected": "4"}])[0].id
        '1'
        """
        rules = Rules(
            input_type=input_type, expected_type=expected_type, mapping=mapping, generate_ids=generate_ids
        )
        reader = RecordReader(rules)
        samples: list[Sample[Any, Any]] = []
        census = Census(item_rows(tuple(items), reader), reader)
        return _known(samples, census.take(DatasetInfo(name), _place, samples))

    @property
    def samples(self) -> tuple[Sample[InputT, ExpectedT], ...]:
        """All samples, in order."""
        return self._samples

    @property
    def name(self) -> str:
        """What people call this dataset."""
        return self._name

    @property
    def info(self) -> DatasetInfo:
        """Name, source, length and fingerprint."""
        return self.inspect()

    def inspect(self) -> DatasetInfo:
        """Check that the content can be kept as JSON, and describe it; done once."""
        if self._info is None:
            reader = RecordReader(Rules(null_input=self._null_input))
            census = Census(item_rows(self._samples, reader), reader)
            self._info = census.take(DatasetInfo(self._name), _place)
        return self._info

    def __len__(self) -> int:
        return len(self._samples)

    def __iter__(self) -> Iterator[Sample[InputT, ExpectedT]]:
        return iter(self._samples)

    @overload
    def __getitem__(self, index: int) -> Sample[InputT, ExpectedT]: ...
    @overload
    def __getitem__(self, index: slice) -> Dataset[InputT, ExpectedT]: ...
    def __getitem__(self, index: int | slice) -> Sample[InputT, ExpectedT] | Dataset[InputT, ExpectedT]:
        if isinstance(index, slice):
            return _checked_before(self._samples[index], self._name, self._null_input)
        return self._samples[index]

    def __eq__(self, other: object) -> bool:
        return self._samples == other._samples if isinstance(other, Dataset) else NotImplemented

    def __repr__(self) -> str:
        count = f"{len(self)} sample" + ("" if len(self) == 1 else "s")
        return f"Dataset({count}, name={self._name!r})"


def _known(samples: Iterable[Sample[Any, Any]], info: DatasetInfo) -> Dataset[Any, Any]:
    """A dataset whose description is known, because it was read and checked on the way."""
    held = tuple(samples)
    dataset = _checked_before(held, info.name, any(sample.input is None for sample in held))
    dataset._info = info
    return dataset


def _checked_before(samples: tuple[Sample[Any, Any], ...], name: str, null_input: bool) -> Dataset[Any, Any]:
    """A dataset of samples that were checked; only a declared type lets null be an input."""
    dataset: Dataset[Any, Any] = Dataset((), name)
    dataset._samples = samples
    dataset._null_input = null_input
    return dataset


def _faults(samples: Iterable[Any]) -> Iterator[tuple[str, Fault]]:
    first_at: dict[str, int] = {}
    for index, sample in enumerate(samples):
        if not isinstance(sample, Sample):
            what = f"expected a Sample, found {kind_of(sample)}"
            yield _place(index), Fault("", what, "make a dataset of other things with Dataset.of")
            continue
        faults = sample_faults(sample)
        yield from ((_place(index), fault) for fault in faults)
        if not faults and first_at.setdefault(sample.id, index) != index:
            yield _place(index), duplicate_id(sample.id, _place(first_at[sample.id]))


def _place(index: int) -> str:
    return "all items" if index == WHOLE else f"item {index}"
