"""The runs evaluator gives what the reference gives, event by event."""

from __future__ import annotations

from hypothesis import given, settings

from spaseq.matching import plan
from spaseq.matching.model import Evaluator, Found, Row
from tests.matching.random_sequences import Case, cases


def row(one: Row) -> object:
    """A row without the order in which its iterations' solutions were found."""
    iterations = {
        kleene: tuple(frozenset(frozenset(s.items()) for s in solutions) for solutions in completed)
        for kleene, completed in one.iterations.items()
    }
    return frozenset(one.binding.items()), frozenset(iterations.items())


def shown(found: list[Found]) -> dict[object, object]:
    """Matches as a comparable value."""
    assert len({match.chosen for match in found}) == len(found)
    return {match.chosen: frozenset(row(r) for r in match.rows) for match in found}


def steps(evaluator: Evaluator, case: Case) -> list[dict[object, object]]:
    """What each event yields, as the host asks for it, and last what the end of time yields."""
    out = []
    for event in case.events:
        out.append(shown(list(evaluator.advance(case.bounds.measure(event) - 1))))
        out.append(shown(list(evaluator.push(event))))
    out.append(shown(list(evaluator.advance(10**9))))
    return out


@settings(max_examples=500)
@given(cases())
def test_runs_equal_the_reference(case: Case) -> None:
    runs, reference = (
        plan.evaluator(name, case.pattern, case.context, case.bounds) for name in ("runs", "reference")
    )
    assert steps(runs, case) == steps(reference, case)
