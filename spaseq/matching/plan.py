"""Describe in words how a query is run (``explain``)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from spaseq.automaton.compile import compile_pattern
from spaseq.automaton.draw import as_json
from spaseq.automaton.nfa import NFA
from spaseq.automaton.normal import normalise
from spaseq.automaton.pattern import AnyOrder, GpmPart
from spaseq.automaton.show import ending, label, show
from spaseq.language import as_query
from spaseq.language.syntax import Filter, Group, OwnFunction, Query, Window
from spaseq.language.syntax.printing import print_expression
from spaseq.language.syntax.terms import decimal
from spaseq.matching.obstacles import Obstacle, in_words
from spaseq.matching.planner import UnderBound, choose, under_bound
from spaseq.patterns.expressions.walk import own_calls
from spaseq.patterns.spectra.joins import covers


@dataclass(frozen=True, slots=True)
class GpmPlan:
    """How a GPM is evaluated: its route and the reason, the filters that one event decides, and the match's
    filters.
    """

    name: str
    streams: tuple[str, ...]
    route: str
    reason: str
    stateless: tuple[str, ...]
    correlated: tuple[str, ...]
    negated: bool


@dataclass(frozen=True, slots=True)
class Explanation:
    """A query's plan. ``str`` shows it to people, ``as_json`` to programs.

    ``otherwise``: better matchers, each with why it cannot run the query. ``bound``: how it keeps a bound
    (``Engine(latency=…, memory=…)``). ``functions``: the user's, by IRI, and how each is called.
    """

    sequence: str
    streams: tuple[tuple[str, str], ...]
    window: str
    partition: tuple[str, ...]
    unfiltered: tuple[str, ...]
    gpms: tuple[GpmPlan, ...]
    where: tuple[tuple[str, str], ...]
    nfa: NFA
    matcher: str
    reason: str
    otherwise: tuple[tuple[str, tuple[Obstacle, ...]], ...]
    bound: UnderBound
    functions: tuple[tuple[str, str], ...]
    warnings: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the plan as plain values."""
        return {
            "sequence": self.sequence,
            "streams": dict(self.streams),
            "window": self.window,
            "partition": {"by": list(self.partition), "shared": list(self.nfa.shared)},
            "gpms": [
                {
                    "name": gpm.name,
                    "streams": list(gpm.streams),
                    "route": gpm.route,
                    "reason": gpm.reason,
                    "stateless": list(gpm.stateless),
                    "correlated": list(gpm.correlated),
                    "negated": gpm.negated,
                }
                for gpm in self.gpms
            ],
            "where": [{"filter": text, "at": place} for text, place in self.where],
            "automaton": as_json(self.nfa),
            "matcher": {"name": self.matcher, "reason": self.reason},
            "otherwise": [
                {"matcher": name, "if": [_as_json(obstacle) for obstacle in obstacles]}
                for name, obstacles in self.otherwise
            ],
            "bound": {
                "sheds": self.bound.sheds,
                "kept": self.bound.is_kept,
                "reason": self.bound.reason,
                "all_readings": self.bound.all_readings,
                "doubts": list(self.bound.doubts),
            },
            "functions": dict(self.functions),
            "warnings": list(self.warnings),
        }

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"sequence   {self.sequence}"
        for name, iri in self.streams:
            yield f"stream     {name} <{iri}>"
        yield f"window     {self.window}"
        yield f"partition  {self._partition()}"
        for gpm in self.gpms:
            negated = ", only negated" if gpm.negated else ""
            yield f"GPM {gpm.name} on {', '.join(gpm.streams)}: {gpm.route} ({gpm.reason}){negated}"
            for text in gpm.stateless:
                yield f"    per event  FILTER({text})"
            for text in gpm.correlated:
                yield f"    per run    FILTER({text})"
        for text, place in self.where:
            yield f"WHERE FILTER({text}) {place}"
        yield from _automaton(self.nfa, "automaton")
        yield f"matcher    {self.matcher}: {self.reason}"
        for name, obstacles in self.otherwise:
            yield f"otherwise  {name}, if"
            for words in in_words(obstacles):
                yield f"    {words}"
        yield f"bound      {self.bound.reason}"
        for iri, how in self.functions:
            yield f"function   <{iri}>: {how}"
        for warning in self.warnings:
            yield f"warning    {warning}"

    def _partition(self) -> str:
        if self.partition:
            by = "by " + " ".join(f"?{name}" for name in self.partition)
            return by + "".join(f"; an event is there for ',' by {name}" for name in self.unfiltered)
        if not self.nfa.shared:
            return "none: the query runs as one group"
        shared = " ".join(f"?{name}" for name in self.nfa.shared)
        return f"none: the query runs as one group (all GPMs bind {shared}: PARTITION BY is possible)"


def explain(query: str | Query) -> Explanation:
    """Explain how a query will be run: the route of each GPM, its automaton, its matcher and why.

    Raises what ``prepare`` raises.
    """
    query = as_query(query)
    pattern = normalise(query)
    nfa = compile_pattern(pattern)
    choice = choose(pattern)
    return Explanation(
        sequence=show(pattern.root),
        streams=tuple((stream.name, stream.iri.value) for stream in query.streams),
        window=_window(query.window),
        partition=tuple(variable.name for variable in query.partition),
        unfiltered=tuple(gpm for gpm in pattern.gpms if gpm in pattern.witnesses),
        gpms=tuple(
            _gpm(part, gpm in pattern.negated)
            for gpm, part in pattern.gpms.items()
            if gpm not in pattern.witnesses
        ),
        where=tuple((print_expression(f.condition), _place(f, nfa)) for f in pattern.where),
        nfa=nfa,
        matcher=choice.name,
        reason=choice.reason,
        otherwise=choice.otherwise,
        bound=under_bound(pattern),
        functions=tuple(
            sorted({call.function.value: _called(call.own) for call in own_calls(query)}.items())
        ),
        warnings=query.warnings,
    )


def _called(own: OwnFunction | None) -> str:
    assert own is not None
    how = "on arrays of distinct arguments" if own.vectorized else "once for distinct arguments"
    return f"interpreted, {how if own.deterministic else 'each time, since it is not deterministic'}"


def _as_json(obstacle: Obstacle) -> dict[str, Any]:
    found: dict[str, Any] = {"demand": obstacle.demand, "here": obstacle.here}
    if obstacle.span is not None:
        found |= {"line": obstacle.span.line, "column": obstacle.span.column}
    return found


def _gpm(part: GpmPart, negated: bool) -> GpmPlan:
    missing = covers(part.stateless)
    return GpmPlan(
        name=part.name,
        streams=part.gpm.streams,
        route="SPECTRA" if missing is None else "general",
        reason="summary graph, views and joins over whole batches"
        if missing is None
        else f"it has {missing}",
        stateless=tuple(_filters(part.stateless)),
        correlated=tuple(print_expression(f.condition) for f in part.correlated),
        negated=negated,
    )


def _filters(group: Group) -> Iterator[str]:
    for element in group.elements:
        if isinstance(element, Filter):
            yield print_expression(element.condition)


def _window(window: Window) -> str:
    unit, size = window.unit.lower(), decimal(window.size)
    if window.kind == "SLIDING":
        return f"sliding: a match spans at most {size} {unit}"
    return f"tumbling: a match lies in one of the windows of {size} {unit}"


def _place(item: Filter, nfa: NFA) -> str:
    edges = [f"{e.source} → {e.target}" for e in nfa.edges if item in e.filters]
    return f"as soon as its variables are bound, from {', '.join(edges)}" if edges else "when the match ends"


def _automaton(nfa: NFA, title: str) -> Iterator[str]:
    edges = "1 edge" if len(nfa.edges) == 1 else f"{len(nfa.edges)} edges"
    yield f"{title:<11}{nfa.size} states, {edges}"
    for edge in nfa.edges:
        key = f"   runs found by {' '.join('?' + name for name in edge.key)}" if edge.key else ""
        yield f"    {edge.source} → {edge.target}  {label(edge)}{key}"
    for accept in nfa.accepts:
        condition = ending(accept)
        yield f"    {accept.state} ends a match" + (f" if {condition}" if condition else "")
    for unit in dict.fromkeys(edge.predicate.unit for edge in nfa.edges):
        if isinstance(unit, AnyOrder):
            for operand in unit.operands:
                yield from _automaton(nfa.parts[operand.id], f"  {show(operand)}: ")
