"""Datasets in memory, from an iterator, and from any other object that a user passes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar, cast, overload

from proctor.datasets.formats import open_file
from proctor.datasets.inspection import DatasetInspection, IdTable, duplicate_id_problem
from proctor.datasets.mapping import EVALUATORS
from proctor.datasets.problems import WHOLE_DATASET, dataset_error, sample_error
from proctor.datasets.record import RecordReader, Rules, check_sample, read_items, read_typed
from proctor.errors import DatasetError, Problem
from proctor.ports import DatasetLike, SampleSource
from proctor.records import codec
from proctor.records.run import DatasetInfo
from proctor.records.sample import Sample, type_name

InputT = TypeVar("InputT")
ExpectedT = TypeVar("ExpectedT")
LoadedInputT = TypeVar("LoadedInputT")
LoadedExpectedT = TypeVar("LoadedExpectedT")


FRAME_CLASS = "DataFrame"


class Dataset(Generic[InputT, ExpectedT]):
    """A fixed sequence of samples in memory with unique ids.

    >>> sums = Dataset([Sample("1", "2 + 2", "4"), Sample("2", "3 + 3", "6")], name="sums")
    >>> len(sums), sums[1].expected, sums[:1]
    (2, '6', Dataset(1 sample, name='sums'))
    """

    def __init__(self, samples: Iterable[Sample[InputT, ExpectedT]], name: str = "memory") -> None:
        self._samples = tuple(samples)
        self._name = name
        self._info: DatasetInfo | None = None
        self._null_input = False
        if problems := list(_find_problems(self._samples)):
            raise dataset_error(name, problems)

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
        format: str | None = None,  # noqa: A002 - public name
    ) -> Dataset[Any, Any]:
        """Load a JSONL, JSON, CSV or TSV file; one error reports all its problems.

        Values are converted to the given types; `mapping` and `generate_ids` are as in `JSONLDataset`. The format
        follows from the file name and the content, unless `format` names it: "jsonl", "json", "csv" or "tsv".
        """
        rules = Rules(input_type, expected_type, mapping, generate_ids)
        return _inspected_dataset(*open_file(path, rules, format).load())

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
        """Make a dataset from dicts, samples, objects with the fields of a sample, or a data frame.

        >>> Dataset.of([{"id": 1, "input": "2 + 2", "expected": "4"}])[0].id
        '1'
        """
        reader = RecordReader(Rules(input_type, expected_type, mapping, generate_ids))
        samples: list[Sample[Any, Any]] = []
        records = read_frame(items) if is_frame(items) else tuple(items)
        inspection = DatasetInspection(read_items(records, reader), reader)
        return _inspected_dataset(samples, inspection.run(DatasetInfo(name), _locate, samples))

    @property
    def samples(self) -> tuple[Sample[InputT, ExpectedT], ...]:
        """All samples, in order."""
        return self._samples

    @property
    def name(self) -> str:
        """The name of the dataset."""
        return self._name

    @property
    def info(self) -> DatasetInfo:
        """Name, source, length and fingerprint."""
        return self.inspect()

    def inspect(self) -> DatasetInfo:
        """Check that the content can be stored as JSON, and describe it; the result is cached."""
        if self._info is None:
            reader = RecordReader(Rules(null_input=self._null_input))
            inspection = DatasetInspection(read_items(self._samples, reader), reader)
            self._info = inspection.run(DatasetInfo(self._name), _locate)
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
            return _checked_dataset(self._samples[index], self._name, self._null_input)
        return self._samples[index]

    def __eq__(self, other: object) -> bool:
        return self._samples == other._samples if isinstance(other, Dataset) else NotImplemented

    def __repr__(self) -> str:
        count = f"{len(self)} sample" + ("" if len(self) == 1 else "s")
        return f"Dataset({count}, name={self._name!r})"


def _inspected_dataset(samples: list[Sample[Any, Any]], info: DatasetInfo) -> Dataset[Any, Any]:
    has_null_input = any(sample.input is None for sample in samples)
    dataset = _checked_dataset(tuple(samples), info.name, has_null_input)
    dataset._info = info
    return dataset


def _checked_dataset(samples: tuple[Sample[Any, Any], ...], name: str, null_input: bool) -> Dataset[Any, Any]:
    """Make a dataset without checking the samples again."""
    dataset: Dataset[Any, Any] = Dataset((), name)
    dataset._samples = samples
    dataset._null_input = null_input
    return dataset


def _find_problems(samples: Iterable[Any]) -> Iterator[tuple[str, Problem]]:
    first_positions: dict[str, int] = {}
    for index, sample in enumerate(samples):
        if not isinstance(sample, Sample):
            what = f"must be a Sample, got {type_name(sample)}"
            yield _locate(index), Problem("", what, "use Dataset.of for dicts and other objects")
            continue
        problems = check_sample(sample)
        yield from ((_locate(index), problem) for problem in problems)
        if not problems and (first := first_positions.setdefault(sample.id, index)) != index:
            yield _locate(index), duplicate_id_problem(sample.id, _locate(first))


def _locate(index: int) -> str:
    return "all items" if index == WHOLE_DATASET else f"item {index}"


class IteratorDataset:
    """Samples from an iterator, which can be read only once and are not held in memory.

    Each item is checked when it is read; an error names its index, from 0. `length`, if known, is the number
    of items that a run plans for; a run that gets fewer is not completed. After the pass it is the actual
    number. There is no fingerprint, so the run cannot be resumed.

    >>> stream = IteratorDataset(({"id": n, "input": n * n} for n in range(3)), length=3)
    >>> [sample.input for sample in stream]
    [0, 1, 4]
    """

    def __init__(
        self,
        iterable: Iterable[Any],
        length: int | None = None,
        *,
        input_type: Any = Any,
        expected_type: Any = Any,
        mapping: Mapping[str, str] | None = None,
        generate_ids: bool = False,
        name: str = "iterator",
    ) -> None:
        if length is not None and length < 0:
            raise DatasetError(
                f"length must be 0 or more, got {length}", where=name, fix="leave out length if it is unknown"
            )
        self._reader = RecordReader(Rules(input_type, expected_type, mapping, generate_ids))
        self._items = iter(iterable)
        self._length = length
        self._name = name
        self._started = False

    def __iter__(self) -> Iterator[Sample[Any, Any]]:
        if self._started:
            raise DatasetError(
                "this dataset was already read, and an iterator can be read only once",
                where=self._name,
                fix="create a new one, or load the samples into memory: Dataset.of(items)",
            )
        self._started = True
        return self._samples()

    def __len__(self) -> int:
        if self._length is None:
            raise TypeError(f"the length of {self._name!r} is unknown until it is read")
        return self._length

    def __repr__(self) -> str:
        return f"IteratorDataset(name={self._name!r}, length={self._length})"

    def inspect(self) -> DatasetInfo:
        """Describe the dataset without reading it: the name and, if given, the length."""
        return DatasetInfo(self._name, source="iterator", length=self._length)

    @property
    def info(self) -> DatasetInfo:
        return self.inspect()

    def _samples(self) -> Iterator[Sample[Any, Any]]:
        ids = IdTable()
        count = 0
        rows = read_items(self._items, self._reader)
        for index, sample in read_typed(rows, self._reader, self._locate):
            # Earlier items are gone, so only hashes can be compared: with a million ids, the chance of a
            # false duplicate is 1 in 30 million.
            if not ids.add(hash(sample.id)):
                problem = Problem("id", f"{sample.id!r} is already used", "give every sample a unique id")
                raise sample_error(self._locate(index), [problem])
            if sample.evaluators:
                # The metrics of a run, and so the names of its evaluators, are known before it starts.
                what = "samples of an iterator cannot have their own evaluators, because it can be read only once"
                problem = Problem(EVALUATORS, what, "load the samples into memory: Dataset.of(items)")
                raise sample_error(self._locate(index), [problem])
            yield sample
            count += 1
        self._length = count

    def _locate(self, index: int) -> str:
        return self._name if index == WHOLE_DATASET else f"{self._name}, item {index}"


class UserDataset:
    """A dataset made from any object that can be iterated repeatedly.

    The object's `info`, if it is a mapping, is stored with the run.
    """

    def __init__(self, dataset: Iterable[Any], rules: Rules | None = None) -> None:
        self._dataset = dataset
        self._reader = RecordReader(rules or Rules())
        self._name = type(dataset).__name__
        self._info: DatasetInfo | None = None

    def __iter__(self) -> Iterator[Sample[Any, Any]]:
        rows = read_items(self._dataset, self._reader)
        return (sample for _, sample in read_typed(rows, self._reader, self._locate))

    def __len__(self) -> int:
        return len(self._dataset)  # type: ignore[arg-type]  # raises TypeError if it has no length

    def __repr__(self) -> str:
        return f"UserDataset({self._dataset!r})"

    def inspect(self) -> DatasetInfo:
        """Read, check and describe the dataset; the result is cached."""
        if self._info is None:
            self._info = self._inspect()
        return self._info

    def _inspect(self) -> DatasetInfo:
        user_info = getattr(self._dataset, "info", None)
        details = codec.to_plain(dict(user_info)) if isinstance(user_info, Mapping) else {}
        info = DatasetInfo(
            str(details.get("name", self._name)), source=str(details.get("source", self._name)), details=details
        )
        return DatasetInspection(read_items(self._dataset, self._reader), self._reader).run(info, self._locate)

    @property
    def info(self) -> DatasetInfo:
        return self.inspect()

    def _locate(self, index: int) -> str:
        return self._name if index == WHOLE_DATASET else f"{self._name}, item {index}"


def make_source(
    dataset: DatasetLike,
    input_type: Any = Any,
    expected_type: Any = Any,
    *,
    mapping: Mapping[str, str] | None = None,
    generate_ids: bool = False,
    format: str | None = None,  # noqa: A002 - public name
) -> SampleSource:
    """Make a dataset from a path, records, a data frame, an Arrow table, an iterator, or any iterable object."""
    options: dict[str, Any] = {
        "input_type": input_type,
        "expected_type": expected_type,
        "mapping": mapping,
        "generate_ids": generate_ids,
    }
    rules = Rules(**options)
    if is_frame(dataset):
        return Dataset.of(cast(Iterable[Any], dataset), **options, name="DataFrame")
    if not isinstance(dataset, type) and hasattr(dataset, "to_pylist"):
        return Dataset.of(dataset.to_pylist(), **options, name="Table")  # an Arrow table
    if isinstance(dataset, SampleSource) and not isinstance(dataset, type):
        if rules != Rules():
            raise DatasetError(
                "types, mapping and generate_ids cannot be set for an existing dataset",
                where=repr(dataset),
                fix="set them when you create the dataset",
            )
        return dataset
    if isinstance(dataset, str | Path):
        return open_file(dataset, rules, format)
    if isinstance(dataset, list | tuple):
        return Dataset.of(dataset, **options)
    if isinstance(dataset, Iterator):
        return IteratorDataset(dataset, **options)
    if hasattr(dataset, "__iter__") and not isinstance(dataset, Mapping | bytes | type):
        return UserDataset(cast(Iterable[Any], dataset), rules)
    name = f"the type {dataset.__name__}" if isinstance(dataset, type) else type_name(dataset)
    raise DatasetError(
        f"{name} is not a dataset",
        fix="pass a path, a Dataset, a data frame, a list of records, an iterator, or an object that yields records",
    )


def is_frame(value: object) -> bool:
    """True if a value is a data frame of pandas or Polars; this imports neither."""
    return _library(value) != "" and type(value).__name__ in (FRAME_CLASS, "LazyFrame")


def read_frame(frame: Any) -> list[dict[str, Any]]:
    """Return the rows of a data frame as mappings; missing values (None, NaN, NaT) are left out.

    A named index is a column too. pandas stores integers as floats if a value of the column is missing; they become
    integers again.
    """
    if type(frame).__name__ != FRAME_CLASS:
        raise DatasetError(
            f"a {type(frame).__name__} has no rows yet", where=FRAME_CLASS, fix="pass its rows: dataset=frame.collect()"
        )
    columns = _pandas_columns(frame) if _library(frame) == "pandas" else _polars_columns(frame)
    names = [name for name, _ in columns]
    if repeated := [name for name, count in Counter(names).items() if count > 1]:
        problem = Problem("", f"several columns are called {repeated[0]!r}", "rename them")
        raise dataset_error(FRAME_CLASS, [(FRAME_CLASS, problem)])
    return [
        {name: cell for name, cell in zip(names, row, strict=True) if cell is not None}
        for row in zip(*(cells for _, cells in columns), strict=True)
    ]


def _library(value: object) -> str:
    library = type(value).__module__.partition(".")[0]
    return library if library in ("pandas", "polars") else ""


def _polars_columns(frame: Any) -> list[tuple[str, list[Any]]]:
    return [(name, [_clean(cell) for cell in frame[name].to_list()]) for name in frame.columns]


def _pandas_columns(frame: Any) -> list[tuple[str, list[Any]]]:
    columns = [(str(name), frame.iloc[:, at]) for at, name in enumerate(frame.columns)]
    index = frame.index
    if getattr(index, "nlevels", 1) == 1 and index.name is not None and str(index.name) not in dict(columns):
        columns.insert(0, (str(index.name), index.to_series()))
    return [(name, list(_pandas_cells(series))) for name, series in columns]


def _pandas_cells(series: Any) -> Iterator[Any]:
    cells, missing = series.tolist(), series.isna().tolist()
    were_integers = (
        any(missing)
        and not all(missing)
        and all(
            is_missing or (isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53)
            for cell, is_missing in zip(cells, missing, strict=True)
        )
    )
    for cell, is_missing in zip(cells, missing, strict=True):
        if is_missing:
            yield None
        else:
            yield int(cell) if were_integers else _clean(cell)


def _clean(cell: Any) -> Any:
    """Return a cell as a plain value: None for NaN, lists for arrays, and Python's own dates."""
    if isinstance(cell, float) and cell != cell:
        return None
    for method in ("to_pydatetime", "tolist"):
        if hasattr(cell, method):
            return getattr(cell, method)()
    return cell
