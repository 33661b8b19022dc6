"""Our side's answers are the reference's, processes' outputs are read, tables drawn; peers run on demand."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.benchmarks.peers.ours import FORMS, WARM_UP, engine, fed, timed
from tests.benchmarks.peers.run import benchmark, process
from tests.benchmarks.peers.systems import ours
from tests.benchmarks.peers.table import Line, Run, against, agreed, markdown
from tests.benchmarks.peers.workloads import WORKLOADS, Row, Unsaid, Workload

_FEW = {workload.name: workload for workload in WORKLOADS}
_SAID = '{"matches": 3, "sum": 12, "cpu": 0.5, "wall": 0.6, "setup": 0.1}'


def _dense(workload: Workload, events: int) -> list[Row]:
    """Rows with matches in them, though few: three kinds, two keys."""
    return [(i, kind % 3, key % 2, v) for i, kind, key, v in workload.rows(events)]


@pytest.mark.parametrize(
    "name", ["any", "next", "rising", "strict", "v", "kleene", "negation", "queries-32-one-pattern"]
)
def test_our_side_is_right(name: str) -> None:
    workload = _FEW[name]
    rows = _dense(workload, 24)
    expected = fed(*engine(workload, "reference"), "columns", FORMS["columns"][0](rows))
    assert expected[0] > 0
    for form in FORMS:
        assert fed(*engine(workload), form, FORMS[form][0](rows)) == expected, form


def test_all_warm_up_alike() -> None:
    drivers = Path(__file__).with_name("drivers")
    assert f"WARM_UP = {WARM_UP};" in (drivers / "Common.java").read_text()
    for peer in ("Esper", "Flink"):
        assert "Common.WARM_UP" in (drivers / f"{peer}Driver.java").read_text()


def test_one_by_one_is_as_by_columns() -> None:
    push, rows = _FEW["push"], _dense(_FEW["push"], 24)
    said = timed(push, "push", rows)
    expected = fed(*engine(push, "reference"), "columns", FORMS["columns"][0](rows))
    assert (said["matches"], said["sum"]) == expected
    assert said.keys() == {"matches", "sum", "cpu", "wall", "setup", "p50", "p99"}


def test_a_process_says_its_result_last() -> None:
    assert Run.read(f"WARN a logger\n{_SAID}\n") == Run(3, 12, 0.5, 0.6, 0.1)
    with pytest.raises(ValueError, match="no result: 'nothing'"):
        Run.read("nothing")
    with pytest.raises(ValueError, match="no 'sum'"):
        Run.read('{"matches": 3}')


def test_a_process_that_hangs_or_fails() -> None:
    said = process([sys.executable, "-c", "import time; time.sleep(60)"], 0.2)
    assert said == Unsaid("did not end within 0.2 s")
    with pytest.raises(RuntimeError, match="ended with 3: worse"):
        process([sys.executable, "-c", "import sys; sys.stderr.write('worse'); sys.exit(3)"], 60)
    assert process([sys.executable, "-c", f"print({_SAID!r})"], 60) == Run(3, 12, 0.5, 0.6, 0.1)


def _run(cpu: float, **other: float) -> Run:
    return Run(**{**dict[str, float](matches=1_000, sum=12, cpu=cpu, wall=cpu, setup=0.1), **other})  # type: ignore[arg-type]


def _table(peers: Mapping[str, tuple[Run, ...] | Unsaid]) -> list[Line]:
    workload = _FEW["any"]
    own = Line(workload, "spaseq", "columns", 5_000, (_run(0.5), _run(0.4), _run(9.0)))
    return [own, *(Line(workload, name, "beans", 5_000, runs) for name, runs in peers.items())]


def test_table() -> None:
    lines = _table({"Esper": (_run(1.0),), "Flink CEP": (_run(4.0),), "X": Unsaid("not to be said")})
    assert agreed(lines) == (1_000, 12)
    fastest = against(lines[0], lines)
    assert fastest is not None
    assert fastest.system == "Esper"
    assert markdown(lines, "spaseq").splitlines()[2:] == [
        "| `A : B : C`, 100 | spaseq, columns | 1,000 | 10,000 | 2,000 | 2 × Esper |",
        "| `A : B : C`, 100 | Esper, beans | 1,000 | 5,000 | 1,000 |  |",
        "| `A : B : C`, 100 | Flink CEP, beans | 1,000 | 1,250 | 250 |  |",
        "| `A : B : C`, 100 | X, beans | – | – | – | not to be said |",
    ]


def test_what_differs_is_no_comparison() -> None:
    with pytest.raises(AssertionError, match="any: matches and sums differ"):
        agreed(_table({"Esper": (_run(1.0, sum=11),)}))


def test_every_workload_is_asked_in_a_form_or_says_why_not() -> None:
    for workload in WORKLOADS:
        assert ours().asked(workload)
        assert set(workload.peers) == {"esper", "flink"}
        for text in workload.peers.values():
            assert text.reason if isinstance(text, Unsaid) else text


@pytest.mark.long
def test_peers() -> None:
    """Needs Java, Maven and its network; that all found the same is asserted inside."""
    assert any(m.ratio for m in benchmark(True))
