"""Small functions of `proctor.demo`, each by an example."""

from __future__ import annotations

from proctor.demo.answerer import Bm25, answer, brief, cites_source, stem, terms, words
from proctor.records.sample import Sample


def test_bm25() -> None:
    """An index of documents, each a list of terms."""
    index = Bm25([["red", "planet"], ["blue", "planet"]])
    assert index.best(["blue", "planet"]) == 1


def test_bm25_coverage() -> None:
    """Return the share of the query's weight whose terms a document contains."""
    assert Bm25([["red", "planet"], ["blue", "planet"]]).coverage(["red", "planet"], 0) == 1.0


def test_words() -> None:
    """Return all words and numbers of a text, in lower case."""
    assert words("Halley's Comet, 1986") == ["halley's", "comet", "1986"]


def test_terms() -> None:
    """Return the stems of the words that are not stop words."""
    assert terms("Who discovered the moons?") == ["discover", "moon"]


def test_stem() -> None:
    """Return a word without its common endings."""
    assert [stem(word) for word in ("name", "names", "named", "bodies", "body", "mass")] == [
        "nam",
        "nam",
        "nam",
        "body",
        "body",
        "mass",
    ]


def test_answer() -> None:
    """Answer with the best sentence of the best passage, and cite the passage."""
    assert (
        answer("Which metal was named after Pallas?", ranking="bm25")
        == "The metal palladium was named after it. [pallas]"
    )
    assert answer("Who painted the ceiling of the Sistine Chapel?", ranking="bm25") == "I don't know"


def test_cites_source() -> None:
    """Passes if the answer cites the right passage, or nothing if there is none."""
    sample: Sample[str, str] = Sample("1", "Which metal was named after Pallas?", metadata={"context": "pallas"})
    assert (
        cites_source("Vesta is the brightest asteroid. [vesta]", sample).reason
        == "cites vesta; the answer is in pallas"
    )


def test_brief() -> None:
    """Scores brevity: 1 up to `limit` words, 0.5 at twice as many."""
    assert (brief("No."), brief("word " * 40)) == (1.0, 0.5)
