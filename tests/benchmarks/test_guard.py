"""The guard runs on small inputs, and says what is slower, and what could not be measured and why."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.benchmarks.__main__ import main
from tests.benchmarks.guard import ROOT, Result, compare
from tests.benchmarks.guard_figures import FIGURES, Taken, measure

_QUICK = ("paths",)
_IN_GIT = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="a revision needs git's repository")


@pytest.mark.parametrize("name", _QUICK)
def test_figure(name: str) -> None:
    taken = measure(name, quick=True)
    assert taken.answers > 0
    assert len(taken.code) == len(taken.peer) == 1


@pytest.mark.few(0, ci=4)
@pytest.mark.parametrize("name", [name for name in FIGURES if name not in _QUICK])
def test_other_figures(name: str) -> None:
    assert measure(name, quick=True).answers > 0


def test_ratio_is_the_median_of_all_pairs() -> None:
    first, second = Taken("", [1, 2], [2, 2], 7), Taken("", [1, 1], [3, 4], 7)
    found = Result.of([first, second])
    assert (found.ratio, found.runs, found.answers) == (2.5, 4, 7)
    assert 0 < found.spread < 1


def test_no_ratio_where_a_process_failed_or_answers_differ() -> None:
    taken = Taken("", [1], [1], 7)
    assert Result.of([taken, "ImportError: x"]).error == "ImportError: x"
    assert "[7, 8]" in Result.of([taken, Taken("", [1], [1], 8)]).error
    assert str(Result.of(["ImportError: x"])) == "–"


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (Result(1.9, answers=7), "0.95"),
        (Result(1.8, answers=7), "0.90  < 0.95"),
        (Result(1.9, answers=8), "–  answers differ: 7 and 8"),
        (Result(error="ImportError: x"), "–  new: ImportError: x"),
    ],
)
def test_comparison(new: Result, expected: str) -> None:
    assert compare(Result(2.0, answers=7), new) == expected


@pytest.mark.slow
@_IN_GIT
def test_against_a_revision(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["guard", "--only", "paths", "--against", "HEAD", "--quick", "--json", str(tmp_path / "guard.json")])
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("paths")
    assert "→" in line
    (figure,) = json.loads((tmp_path / "guard.json").read_text(encoding="utf-8"))["figures"]
    assert figure["old"]["answers"] == figure["new"]["answers"] > 0
    assert figure["old"]["error"] == figure["new"]["error"] == ""


@_IN_GIT
def test_an_unknown_revision_is_named() -> None:
    with pytest.raises(SystemExit, match="no-such-revision"):
        main(["guard", "--against", "no-such-revision"])
