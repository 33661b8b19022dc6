"""Describe in words and pictures how several queries run together (``explain`` of several)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from spaseq.automaton import draw
from spaseq.automaton.compile import compile_pattern
from spaseq.automaton.layered import below
from spaseq.automaton.nfa import NFA, Accept, Edge, Predicate
from spaseq.automaton.normal import normalise
from spaseq.automaton.pattern import Atom, Either, Node, SequencePattern
from spaseq.automaton.show import ending, label, show
from spaseq.language.syntax import Query, Values
from spaseq.matching.filters.postfix import BeyondTables
from spaseq.matching.interpreter.program import ProgramState, RunsProgram
from spaseq.matching.model import stream_window
from spaseq.matching.planner import choose
from spaseq.matching.sharing.canonical import AskedBeginning, Canonical, OutlineNumbers, canonical
from spaseq.matching.sharing.cohort import SHARING, kind
from spaseq.matching.sharing.merge import Merged, merge, tables
from spaseq.matching.templates.form import alone, form, template
from spaseq.patterns.sharing import question

#: Equal queries, which run as one.
_Unit = tuple[str, ...]
_Member = tuple[_Unit, SequencePattern, Canonical]

#: The most queries named at a state of a drawing.
_NAMED = 3


@dataclass(frozen=True, slots=True)
class Same:
    """Queries that run as one over a table of their constants or, if that is empty, because they are equal.

    ``text`` is the query of all, with ``parameters`` where they differ; ``rows`` are the constants of each.
    """

    queries: tuple[str, ...]
    text: str
    parameters: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    nfa: NFA

    def as_json(self) -> dict[str, Any]:
        """Return the plan as plain values."""
        rows = [dict(zip(self.parameters, row, strict=True)) for row in self.rows]
        return {
            "queries": list(self.queries),
            "text": self.text,
            "parameters": list(self.parameters),
            "constants": dict(zip(self.queries, rows, strict=True)),
            "automaton": draw.as_json(self.nfa),
        }

    def lines(self) -> Iterator[str]:
        """Yield the plan in words."""
        if not self.parameters:
            yield f"as one     {', '.join(self.queries)}: they ask the same"
            return
        count = len(self.parameters)
        what = "a constant" if count == 1 else f"{count} constants"
        yield f"as one     {', '.join(self.queries)}: they differ in {what}"
        yield from (f"    {line}" for line in self.text.splitlines())
        yield from (f"    {line}" for line in self.table())

    def table(self) -> list[str]:
        """Return the constants as lines of text, one per query."""
        head = ("", *(f"?{name}" for name in self.parameters))
        rows = [head, *((name, *row) for name, row in zip(self.queries, self.rows, strict=True))]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows]


@dataclass(frozen=True, slots=True)
class Prefix:
    """Queries that share partial matches up to where they part.

    ``nfa`` is the automaton of all of them. ``wanted``: for each state, the queries with partial matches
    there. ``ends``: for each accepting state, the queries that it completes. ``sequences`` are the sequences
    of ``queries``.
    """

    queries: tuple[str, ...]
    sequences: tuple[str, ...]
    nfa: NFA
    wanted: tuple[tuple[str, ...], ...]
    ends: tuple[tuple[str, ...], ...]

    def as_json(self) -> dict[str, Any]:
        """Return the plan as plain values."""
        states = [
            {"state": state, "queries": list(wanted), "ends": list(ends)}
            for state, (wanted, ends) in enumerate(zip(self.wanted, self.ends, strict=True))
        ]
        sequences = dict(zip(self.queries, self.sequences, strict=True))
        return {"queries": sequences, "automaton": draw.as_json(self.nfa), "wanted": states}

    def lines(self) -> Iterator[str]:
        """Yield the plan in words."""
        yield "shared     partial matches, up to where these part:"
        width = max(map(len, self.queries))
        for name, sequence in zip(self.queries, self.sequences, strict=True):
            yield f"    {name.ljust(width)}  SEQ({sequence})"
        edges = len(self.nfa.edges)
        yield f"automaton  {self.nfa.size} states, {edges} edge{'s' * (edges != 1)}"
        for state, wanted in enumerate(self.wanted):
            yield f"    {state}  of {', '.join(wanted)}"
            for edge in self.nfa.leaving(state):
                yield f"        {edge.source} → {edge.target}  {label(edge)}"
            for accept in self.nfa.accepts:
                if accept.state == state:
                    condition = f" if {ending(accept)}" if ending(accept) else ""
                    yield f"        ends a match of {', '.join(self.ends[state])}{condition}"

    def notes(self) -> draw.Notes:
        """Return the queries at each state, as many as a drawing has room for."""
        states = [_some(wanted, len(self.queries)) for wanted in self.wanted]
        ends = [
            f" ends {_some(e, len(w))}" * (0 < len(e) < len(w))
            for e, w in zip(self.ends, self.wanted, strict=True)
        ]
        return draw.Notes([""] * len(self.nfa.edges), [s + e for s, e in zip(states, ends, strict=True)])


@dataclass(frozen=True, slots=True)
class Alone:
    """A query that runs by itself, or as one with equal queries, and why."""

    queries: tuple[str, ...]
    sequence: str
    reason: str
    nfa: NFA

    def as_json(self) -> dict[str, Any]:
        """Return the plan as plain values."""
        return {
            "queries": list(self.queries),
            "sequence": self.sequence,
            "reason": self.reason,
            "automaton": draw.as_json(self.nfa),
        }


@dataclass(frozen=True, slots=True)
class SharedPlan:
    """What queries registered before the same event share. ``str`` shows it to people."""

    same: tuple[Same, ...]
    prefixes: tuple[Prefix, ...]
    alone: tuple[Alone, ...]

    def __str__(self) -> str:
        parts = [*(s.lines() for s in self.same), *(p.lines() for p in self.prefixes)]
        lines = [line for part in parts for line in part]
        lines += [f"alone      {', '.join(a.queries)}  SEQ({a.sequence}): {a.reason}" for a in self.alone]
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """Return the plan as plain values."""
        return {
            "as one": [same.as_json() for same in self.same],
            "shared": [prefix.as_json() for prefix in self.prefixes],
            "alone": [each.as_json() for each in self.alone],
        }

    def svg(self) -> str:
        """Return the automata, one below the other, each with its queries."""
        drawn = [
            (
                f"{', '.join(same.queries)}: as one",
                same.table() if same.parameters else [],
                draw.svg(same.nfa),
            )
            for same in self.same
            if same.parameters
        ]
        drawn += [(", ".join(p.queries) + ": shared", [], draw.svg(p.nfa, p.notes())) for p in self.prefixes]
        drawn += [(f"{', '.join(a.queries)}: alone", [], draw.svg(a.nfa)) for a in self.alone]
        return below([([title, *lines], image) for title, lines, image in drawn])


def explain_all(queries: Mapping[str, Query]) -> SharedPlan:
    """Explain how queries will be run by one engine, if they are registered before the same event."""
    same: list[Same] = []
    units: dict[_Unit, Query] = {}
    reasons: dict[_Unit, str] = {}
    alike: dict[object, list[str]] = {}
    for name, query in queries.items():
        own = form(query)
        key = name if own is None else (own.key, frozenset(query.knowledge))
        alike.setdefault(key, []).append(name)
        if own is None:
            reasons[(name,)] = alone(query) or ""
    for names in alike.values():
        found = _same({name: queries[name] for name in names}) if len(names) > 1 else None
        if found is not None:
            same.append(found)
        if found is None or not found.parameters:
            units[tuple(names)] = queries[names[0]]
    prefixes = _prefixes(units, reasons)
    shared = {name for prefix in prefixes for name in prefix.queries}
    by_itself = []
    for unit, query in units.items():
        if unit[0] not in shared:
            pattern = normalise(query)
            why = reasons.get(unit, "no other query begins alike")
            by_itself.append(Alone(unit, show(pattern.root), why, compile_pattern(pattern)))
    return SharedPlan(tuple(same), tuple(prefixes), tuple(by_itself))


def _same(queries: Mapping[str, Query]) -> Same:
    constants = [own.constants for query in queries.values() if (own := form(query)) is not None]
    first = next(iter(queries.values()))
    varying = [i for i, column in enumerate(zip(*constants, strict=True)) if len(set(column)) > 1]
    names: tuple[str, ...] = ()
    if varying:
        made = template(first, varying)
        names = tuple(name for name, _ in made.parameters)
        gpms = tuple(
            replace(gpm, pattern=replace(gpm.pattern, elements=gpm.pattern.elements[:-1]))
            for gpm in made.query.gpms
            if isinstance(gpm.pattern.elements[-1], Values)  # in each GPM, the table's place
        )
        first = replace(first, gpms=gpms)
    return Same(
        tuple(queries),
        str(first),
        names,
        tuple(tuple(str(row[place]) for place in varying) for row in constants),
        compile_pattern(normalise(first)),
    )


# --- shared prefixes ------------------------------------------------------------------------------


def _prefixes(units: Mapping[_Unit, Query], reasons: dict[_Unit, str]) -> list[Prefix]:
    """Return the queries that share partial matches; ``reasons`` gets the reasons why others do not."""
    numbers: dict[frozenset[str], tuple[OutlineNumbers, OutlineNumbers]] = {}
    alike: dict[tuple[frozenset[str], str, object], list[_Member]] = {}
    for unit, query in units.items():
        pattern = normalise(query)
        matcher = choose(pattern).name
        streams = frozenset(stream.iri.value for stream in query.streams)
        questions, elements = numbers.setdefault(streams, (OutlineNumbers(), OutlineNumbers()))
        common = canonical(pattern, _asked(pattern, questions), elements) if matcher in SHARING else None
        if matcher not in SHARING:
            reasons.setdefault(unit, f"{matcher} shares no partial matches")
        elif common is None:
            reasons.setdefault(unit, "only ; and : share, without negation, CONSUME and FILTERs of WHERE")
        else:
            begins = streams, matcher, kind(common, stream_window(query.window, False, 0), matcher)
            alike.setdefault(begins, []).append((unit, pattern, common))
    return [
        found
        for (_, matcher, _), members in alike.items()
        if len(members) > 1 and (found := _prefix(members, matcher))
    ]


def _asked(pattern: SequencePattern, questions: OutlineNumbers) -> dict[str, AskedBeginning]:
    known = frozenset(pattern.query.knowledge)
    every = frozenset(pattern.streams)
    asked = {}
    for name, part in pattern.gpms.items():
        found = question(part.gpm, part.stateless)
        streams = None if part.streams == every else frozenset(part.streams)
        asked[name] = AskedBeginning(questions.of((found.key, streams, known)), found.names)
    return asked


def _prefix(members: Sequence[_Member], matcher: str) -> Prefix | None:
    patterns = [common.pattern for _, _, common in members]
    terms = OutlineNumbers()
    try:
        starts = [RunsProgram(compile_pattern(pattern)).start for pattern in patterns]
        if matcher == "nfa":
            merged = tables(patterns, starts, lambda term: terms.of(term) + 1).merged
        else:
            merged = merge(patterns, starts, matcher)
    except BeyondTables:
        return None
    names = [name for name, _, _ in members]
    shown = _names([common for _, _, common in members])
    places = _places(merged)
    number = {place: i for i, place in enumerate(places)}
    edges = [
        Edge(
            number[place],
            number[way.target],
            gate.ends,
            Predicate(
                frozenset(),
                gate.strategy,
                _renamed(way.unit, shown, merged.wanted[way.target]),
                (),
                gate.inside,
            ),
            way.begins,
        )
        for place in places
        for gate in place.gates
        for way in gate.ways
    ]
    accepts = [Accept(number[place], ends) for place in places for ends in place.accepts]
    root = Either(-1, tuple(pattern.root for _, pattern, _ in members), apart=True)
    pattern = replace(members[0][1], root=root)
    ends = [frozenset[int]().union(*merged.ends[place].values()) for place in places]
    return Prefix(
        tuple(name for unit in names for name in unit),
        tuple(show(pattern.root) for unit, pattern, _ in members for _ in unit),
        NFA(pattern, root, len(places), tuple(edges), tuple(accepts), {}),
        tuple(_of(merged.wanted[place], names) for place in places),
        tuple(_of(of, names) for of in ends),
    )


def _places(merged: Merged) -> list[ProgramState]:
    """Return the places of an automaton, breadth-first."""
    found = [merged.start]
    known = {merged.start}
    for place in found:
        for gate in place.gates:
            for way in gate.ways:
                if way.target not in known:
                    known.add(way.target)
                    found.append(way.target)
    return found


def _names(commons: Sequence[Canonical]) -> list[dict[str, list[str]]]:
    """Return each query's names for the GPMs under common names."""
    found: list[dict[str, list[str]]] = []
    for common in commons:
        names: dict[str, list[str]] = {}
        for own, name in common.gpms.items():
            names.setdefault(name, []).append(own)
        found.append(names)
    return found


def _renamed(unit: Node, names: Sequence[Mapping[str, list[str]]], members: Iterable[int]) -> Atom:
    """Return an element under the names that the queries give it."""
    assert isinstance(unit, Atom)  # shared elements are of no other kind
    own = dict.fromkeys(name for member in sorted(members) for name in names[member][unit.gpm])
    return replace(unit, gpm="/".join(own))


def _of(members: Iterable[int], names: Sequence[_Unit]) -> tuple[str, ...]:
    return tuple(name for member in sorted(members) for name in names[member])


def _some(names: Sequence[str], most: int) -> str:
    if len(names) == most:
        return "all"
    more = f" +{len(names) - _NAMED}" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
