"""The local models compute with one thread of OpenBLAS, and leave the number of threads as it was."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from proctor.models import blas
from proctor.models.blas import use_one_thread

np = pytest.importorskip("numpy")


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A library with 8 threads, as the list of all numbers that were set."""
    numbers = [8]
    fake = blas._Library(lambda: numbers[-1], numbers.append)
    monkeypatch.setattr(blas, "_find_openblas", lambda _: fake)
    return numbers


def test_openblas_of_numpy_is_set_to_one_thread_and_back() -> None:
    """Inside it is 1, afterwards what it was; a numpy without OpenBLAS is left alone."""
    openblas = blas._find_openblas(str(Path(np.__file__).parent))
    if openblas is None:
        pytest.skip("numpy does not use OpenBLAS here")
    before = openblas.get_threads()
    with use_one_thread(np):
        assert openblas.get_threads() == 1
    assert openblas.get_threads() == before
    with use_one_thread(SimpleNamespace(__file__="/nowhere/numpy/__init__.py")):
        assert openblas.get_threads() == before


def test_nested_and_concurrent_callers_restore_once(library: list[int]) -> None:
    """The first caller sets 1, the last restores 8: a caller that ends earlier changes nothing for the others."""
    inside, done = threading.Barrier(2), threading.Event()

    def compute() -> None:
        with use_one_thread(np):
            inside.wait()
            done.wait()

    other = threading.Thread(target=compute)
    other.start()
    inside.wait()
    with use_one_thread(np), use_one_thread(np):
        pass
    assert library == [8, 1]
    done.set()
    other.join()
    assert library == [8, 1, 8]


def test_an_error_restores_the_threads(library: list[int]) -> None:
    with pytest.raises(ValueError, match="broken"), use_one_thread(np):
        raise ValueError("broken")
    assert library == [8, 1, 8]
