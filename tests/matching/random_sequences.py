"""Random queries and streams for comparing evaluators, small enough for the reference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from hypothesis import strategies as st
from pyoxigraph import Literal

from spaseq.automaton.pattern import SequencePattern, normalise
from spaseq.events import Stamp
from spaseq.language.parser import parse
from spaseq.matching.context import Context
from spaseq.matching.model import Bounds, Occurrence
from spaseq.terms import Dictionary

TYPES = "xxy"


@dataclass
class _Letters:
    """GPMs as they are used: their types, the streams they read, whether they bind ``?k``, filters."""

    draw: st.DrawFn
    types: dict[str, str] = field(default_factory=dict)
    streams: dict[str, tuple[int, ...]] = field(default_factory=dict)
    joined: dict[str, bool] = field(default_factory=dict)

    def use(self) -> str:
        if len(self.types) == 6 or (self.types and self.draw(st.integers(0, 9)) == 0):
            return self.draw(st.sampled_from(sorted(self.types)))
        name = "ABCDEF"[len(self.types)]
        self.define(name)
        return name

    def define(self, name: str) -> None:
        """A GPM of that name."""
        self.types[name] = self.draw(st.sampled_from(TYPES))
        self.streams[name] = self.draw(st.sampled_from([(1, 2), (1, 2), (1, 2), (1,), (2,)]))
        self.joined[name] = self.draw(st.integers(0, 3)) == 0


def _operator(draw: st.DrawFn) -> str:
    return draw(st.sampled_from([";", ";", ":", ":", ","]))


def _bounds(draw: st.DrawFn) -> str:
    bounds = draw(st.sampled_from(["+", "+", "{2,}", "{1,2}", "{2}"]))
    return bounds + draw(st.sampled_from(["", "", "[:]", "[,]"]))


def _simultaneous(draw: st.DrawFn, letters: _Letters) -> str:
    right = letters.use()
    if draw(st.integers(0, 3)) == 0:
        right = f"({right} | {letters.use()})"
    return f"{letters.use()} & {right}"


def _element(draw: st.DrawFn, letters: _Letters, depth: int) -> str:
    """An element that needs at least one event."""
    kinds = ["atom"] * 6 + ["kleene", "both"] + ["group", "either", "all", "kleene"] * (depth > 0)
    match draw(st.sampled_from(kinds)) if len(letters.types) < 5 else "atom":
        case "kleene":
            return f"({_element(draw, letters, depth - 1)}){_bounds(draw)}"
        case "both":
            return f"({_simultaneous(draw, letters)})"
        case "group":
            return f"({_chain(draw, letters, depth - 1)})"
        case "either":
            return f"({_chain(draw, letters, depth - 1)} | {_chain(draw, letters, depth - 1)})"
        case "all":
            return f"ALL(({_chain(draw, letters, depth - 1)}), ({_chain(draw, letters, depth - 1)}))"
        case _:
            return letters.use()


def _chain(draw: st.DrawFn, letters: _Letters, depth: int) -> str:
    """A sequence that needs at least one event; negations and options may stand anywhere in it."""
    items = [_element(draw, letters, depth)]
    for _ in range(draw(st.integers(0, 2))):
        kind = draw(st.sampled_from(["plain", "plain", "plain", "not", "maybe"]))
        element = _element(draw, letters, depth if kind == "plain" else 0)
        item = {"plain": element, "not": f"!({element})", "maybe": f"({element})?"}[kind]
        items.insert(draw(st.integers(0, len(items))), item)
    text = items[0]
    for item in items[1:]:
        text += f" {_operator(draw)} {item}"
    return text


def _filters(draw: st.DrawFn, letters: _Letters) -> tuple[dict[str, str], str]:
    filters = {}
    names = sorted(letters.types)
    for name in names:
        other = draw(st.sampled_from(names))
        kind = draw(st.integers(0, 11))
        if kind == 0:
            filters[name] = f"FILTER(?v{name} >= ?v{other})"
        elif kind == 1:
            filters[name] = f"FILTER(?v{name} > PREV(?v{name}))"
        elif kind == 2:
            filters[name] = f"FILTER(COUNT(?v{name}) < 3)"
        elif kind == 3:
            filters[name] = f"FILTER(?v{name} <= MAX(?v{other}))"
    where = ""
    if draw(st.integers(0, 3)) == 0:
        where = f"FILTER(?v{draw(st.sampled_from(names))} != ?v{draw(st.sampled_from(names))})"
    return filters, where


@dataclass(frozen=True)
class Case:
    """A query, its context and window, and a stream."""

    text: str
    pattern: SequencePattern
    context: Context
    bounds: Bounds
    events: tuple[Occurrence, ...]

    def __repr__(self) -> str:
        rows = [f"{e.stamp} {dict(e.solutions)}" for e in self.events]
        return "\n".join([self.text, str(self.bounds), *rows])


def _events(draw: st.DrawFn, letters: _Letters, ids: list[int], size: int) -> Iterator[Occurrence]:
    time, count = 0, {1: 0, 2: 0}
    for position in range(draw(st.integers(min(size, 4), size))):
        time += draw(st.sampled_from([0, 1, 1, 2]))
        stream = draw(st.sampled_from([1, 2]))
        kind = draw(st.sampled_from(TYPES))
        values = draw(st.lists(st.integers(0, 3), min_size=1, max_size=2))
        key = draw(st.integers(0, 1))
        solutions = {}
        for name, wanted in letters.types.items():
            if wanted == kind and stream in letters.streams[name]:
                shared = {"k": ids[key]} if letters.joined[name] else {}
                solutions[name] = tuple({f"v{name}": ids[v], **shared} for v in values)
        yield Occurrence(Stamp(time, stream, count[stream]), position, solutions)
        count[stream] += 1


@st.composite
def cases(draw: st.DrawFn, size: int = 7) -> Case:
    """A random sequence of every operator, over two streams with ties, with joins and filters."""
    letters = _Letters(draw)
    seq = _chain(draw, letters, 2)
    return _case(draw, letters, seq, size)


@st.composite
def cases_of(draw: st.DrawFn, *sequences: str, joined: str | None = None, size: int = 7) -> Case:
    """One of some sequences of the letters A to F, over a random stream.

    ``joined`` are the letters that share ``?k``, if they are not random.
    """
    letters = _Letters(draw)
    seq = draw(st.sampled_from(sequences))
    for name in sorted(set("ABCDEF").intersection(seq.replace("ALL", ""))):
        letters.define(name)
        if joined is not None:
            letters.joined[name] = name in joined
    return _case(draw, letters, seq, size)


def _case(draw: st.DrawFn, letters: _Letters, seq: str, size: int) -> Case:
    filters, where = _filters(draw, letters)
    gpms = "\n".join(
        f"DEFINE GPM {name} ON {', '.join(f'S{i}' for i in letters.streams[name])} "
        f"{{ ?e :v ?v{name}{' ; :k ?k' * letters.joined[name]} {filters.get(name, '')} }}".replace(
            "?e ", "[] "
        )
        for name in letters.types
    )
    text = (
        "PREFIX : <http://example.org/> SELECT * WITHIN 10 SECONDS\n"
        "FROM STREAM S1 <http://example.org/s1> FROM STREAM S2 <http://example.org/s2>\n"
        f"WHERE {{ SEQ({seq})\n{gpms}\n{where} }}"
    )
    pattern = normalise(parse(text))
    dictionary = Dictionary()
    ids = [dictionary.intern(Literal(value)) for value in range(4)]
    bounds = Bounds(draw(st.integers(2, 15)), draw(st.booleans()), draw(st.booleans()), 0)
    events = tuple(_events(draw, letters, ids, size))
    return Case(text, pattern, Context(pattern, dictionary, lambda *_: False), bounds, events)
