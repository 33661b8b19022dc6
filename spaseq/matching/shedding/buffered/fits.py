"""Which queries the lazy evaluator runs under a bound: those of which it is rows that make the work."""

from __future__ import annotations

from collections.abc import Iterator

from spaseq.automaton.pattern import SequencePattern
from spaseq.automaton.show import show
from spaseq.effort import Policy
from spaseq.language.syntax import Emit
from spaseq.matching.host import emitted
from spaseq.matching.lazy.plans import plans
from spaseq.matching.obstacles import Obstacle
from spaseq.matching.shedding.buffered.classes import sheddable


def obstacles(pattern: SequencePattern, policy: Policy = Policy.SHARP) -> Iterator[Obstacle]:
    """What a query that fits would have to be without so that buffered events could be shed.

    Of a Kleene there are as many matches as sets of events: that is for who counts partial matches.
    """
    if policy is Policy.RANDOM_INPUT:
        yield Obstacle("events are not passed over", f"the policy {policy}")
    query = pattern.query
    if emitted(pattern) is not Emit.ALL:
        yield Obstacle("no match is preferred to another", f"EMIT {query.emit}")
    alternatives = plans(pattern)
    for item in {item.kleene.id: item for one in alternatives for item in one.items if item.kleene}.values():
        assert item.kleene is not None
        yield Obstacle("nothing is repeated", show(item.kleene))
    if not sheddable(alternatives):
        yield Obstacle("some element but the last is not negated", show(pattern.root))
