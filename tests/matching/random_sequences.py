"""Random queries of the whole sequence language and random streams for them, small enough for the reference.

Everything is drawn from a ``random.Random``: one query serves many streams, and a seed is all it takes to
see a case again. Every query passes the static checks. What is made small on purpose (windows, domains of
values, gaps between events) is where matchers go wrong.
"""

from __future__ import annotations

import random
import re
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

from pyoxigraph import Literal, NamedNode

from spaseq.automaton.compile import compile_pattern
from spaseq.automaton.normal import normalise
from spaseq.automaton.pattern import SequencePattern
from spaseq.errors import QueryError, SpaseqWarning
from spaseq.events import Stamp
from spaseq.language import checked
from spaseq.language import syntax as s
from spaseq.language.checking.sequences import inside
from spaseq.language.scope import references
from spaseq.language.syntax.printing import print_sequence
from spaseq.matching.context import Context
from spaseq.matching.interpreter.program import RunsProgram
from spaseq.matching.model import Occurrence, Solution, StreamWindow
from spaseq.matching.nfa.tables.compiling import obstacles
from spaseq.matching.obstacles import Feature, features
from spaseq.terms.dictionary import Dictionary, Term

_XSD = "http://www.w3.org/2001/XMLSchema#"
_MATH = "http://www.w3.org/2005/xpath-functions/math#"
_WKT = "http://www.opengis.net/ont/geosparql#wktLiteral"


def _typed(lexical: str, datatype: str) -> Literal:
    return Literal(lexical, datatype=NamedNode(_XSD + datatype))


STREAMS = [NamedNode(f"http://example.org/s{i}") for i in (1, 2, 3)]

#: Terms whose order and equality are easy.
PLAIN: list[Term] = [Literal(i) for i in range(4)]
#: Terms where they are hard, or none at all.
ODD: list[Term] = [
    *(_typed(number, "decimal") for number in ("14.35", "14.350", "14.3500000000000000001", "3")),
    *(_typed(number, "decimal") for number in ("0.1", "0.2", "0.3", "-0.0")),
    *(_typed(number, "double") for number in ("0.3", "2.0", "NaN", "INF", "-0.0", "9007199254740992")),
    *(_typed(number, "float") for number in ("0.1", "16777217")),
    *(Literal(number) for number in (2**53, 2**53 + 1, -(2**53) - 1, 10**400)),
    *(Literal(text) for text in ("2", "x", "")),
    Literal("x", language="en"),
    *(_typed(text, "boolean") for text in ("true", "false")),
    *(_typed(text, "integer") for text in ("01", "x")),
    NamedNode("http://example.org/x"),
]
#: Instants: the same one twice, some that only zones tell apart or less than a microsecond, some without a
#: zone, some far away, and what looks like one.
TIMES: list[Term] = [
    *(_typed(f"2020-01-01T{time}", "dateTime") for time in ("00:00:00Z", "02:00:00+02:00", "00:00:00")),
    *(_typed(f"2020-01-01T{time}", "dateTime") for time in ("00:00:01.5Z", "12:00:00", "20:00:00-14:00")),
    _typed("2020-01-03T00:00:00Z", "dateTime"),
    _typed("1969-12-31T23:59:59.999999", "dateTime"),
    _typed("2020-01-01T00:00:00.0000001Z", "dateTime"),
    *(_typed(f"2500-01-01T00:00:00{end}", "dateTime") for end in ("Z", ".000001Z")),
    _typed("x", "dateTime"),
    *(_typed(day, "date") for day in ("2020-01-01", "2020-01-01Z", "2020-01-02")),
    Literal(5),
]
#: Durations, some of them equal, and the instants between which they lie.
DURATIONS: list[Term] = [
    *(_typed(length, "dayTimeDuration") for length in ("PT1.5S", "PT0S", "P1D", "PT24H", "-PT7200S")),
    *(_typed(length, "duration") for length in ("PT1.5S", "P1M")),
    *TIMES[:6],
    Literal(2),
]
#: Points, and what is none.
PLACES: list[Term] = [
    Literal(text, datatype=NamedNode(_WKT))
    for text in ("POINT(0 0)", "POINT(1 0)", "POINT(1 0.0)", "POINT(180 0)", "POINT(0 1)", "POINT(0 91)")
] + [Literal(1)]


@dataclass(frozen=True)
class Query:
    """A random query: its GPMs' types and streams, and the variables that they bind besides their value.

    Those of ``sometimes`` stand in an OPTIONAL. What all samples of a query share is made once. Of a ``rich``
    one, filters are of all that expressions can be.
    """

    text: str
    pattern: SequencePattern
    types: dict[str, str]
    streams: dict[str, tuple[int, ...]]
    binds: dict[str, tuple[str, ...]]
    sometimes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    rich: bool = False

    @cached_property
    def dictionary(self) -> Dictionary:
        """With the streams' ids: 1, 2 and 3."""
        dictionary = Dictionary()
        assert [dictionary.pin(stream) for stream in STREAMS] == [1, 2, 3]
        return dictionary

    @cached_property
    def context(self) -> Context:
        return Context(self.pattern, self.dictionary, exists)

    @cached_property
    def program(self) -> RunsProgram:
        return RunsProgram(compile_pattern(self.pattern))

    @cached_property
    def misfit(self) -> str | None:
        """Why the kernel cannot run it; None if it can."""
        return next((obstacle.demand for obstacle in obstacles(self.pattern)), None)


def exists(gpm: str, event: Occurrence, pattern: s.Group, solution: Solution) -> bool:
    """Some answer to EXISTS that depends on everything that it may depend on, but ids."""
    return (event.position + len(gpm) + len(pattern.elements) + len(solution)) % 2 == 0


@dataclass(frozen=True)
class Step:
    """So many events come together; then perhaps time is known to have come to ``time``, terms are swept."""

    size: int
    time: int | None = None
    sweep: bool = False


@dataclass(frozen=True)
class Sample:
    """A query, its window, and a stream; partial matches are dropped after the events at ``drops``."""

    query: Query
    window: StreamWindow
    events: tuple[Occurrence, ...]
    steps: tuple[Step, ...] = ()
    drops: frozenset[int] = frozenset()

    @property
    def dictionary(self) -> Dictionary:
        return self.query.dictionary

    def __str__(self) -> str:
        term = self.dictionary.term
        b = self.window
        window = (
            f"WITHIN {b.size} {'EVENTS' if b.counted else 'SECONDS'} {'SLIDING' if b.sliding else 'TUMBLING'}"
        )
        text = re.sub("WITHIN 10 SECONDS( TUMBLING)?", window, self.query.text)
        lines = [text, f"first window at {b.start}"]
        for e in self.events:
            rows = (
                f"{gpm} {' '.join(f'?{name}={term(i)}' for name, i in solution.items())}"
                for gpm, solutions in e.solutions.items()
                for solution in solutions
            )
            lines.append(f"stream {e.stamp.stream} time {e.stamp.time}: {'; '.join(rows)}")
        lines += [f"{step}" for step in self.steps]
        return "\n".join(lines + [f"drops {sorted(self.drops)}"] * bool(self.drops))


# --- sequences ------------------------------------------------------------------------------------


class _Sequences:
    """Sequences of at most ``most`` GPMs; ``alls``: with ALL, which is slow to judge.

    ``whole_language``: also what only ``interpreter``, the kernel and the reference can do.
    """

    def __init__(self, rng: random.Random, most: int, alls: bool, whole_language: bool = False) -> None:
        self._rng = rng
        self._most = most
        self._alls = alls
        self._whole_language = whole_language
        self._names: list[str] = []

    def whole(self, depth: int) -> s.Seq:
        if self._rng.random() < 0.08:
            return s.Disjunction((self.chain(depth - 1), self.chain(depth - 1)))
        return self.chain(depth)

    def chain(self, depth: int, negations: bool = True) -> s.Seq:
        """A sequence that needs at least one event."""
        rng = self._rng
        items = [self._element(depth)]
        for _ in range(rng.choice([0, 1, 1, 2, 2, 3] if depth > 1 else [0, 1, 1, 2])):
            items.insert(rng.randint(0, len(items)), self._item(depth, negations))
        operators = tuple(self._operator(*pair) for pair in pairwise(items))
        return s.Sequence(tuple(items), operators) if operators else items[0]

    def _operator(self, *neighbours: s.Seq) -> s.Strategy:
        strict = self._whole_language or not any(isinstance(item, s.Not) for item in neighbours)
        return self._rng.choice([s.Strategy.STRICT] * strict + [s.Strategy.NEXT] * 2 + [s.Strategy.ANY])

    def _item(self, depth: int, negations: bool) -> s.Seq:
        kind = self._rng.random()
        if kind < 0.22 and negations:
            negation = s.Not(self._negated(depth))
            return self._bounded(negation) if kind < 0.04 else negation
        if kind < 0.5 and self._whole_language:
            return self._bounded(self._optional(depth)) if kind < 0.26 else self._optional(depth)
        return self._element(depth)

    def _optional(self, depth: int) -> s.Seq:
        rng = self._rng
        minimum, maximum, optional = rng.choice(
            [(0, 1, True), (0, 1, True), (0, None, True), (0, 1, False), (0, 2, False), (0, None, False)]
        )
        operator = rng.choice([*s.Strategy]) if maximum != 1 else s.Strategy.NEXT
        return s.Repeat(self._element(depth - 1), minimum, maximum, operator, optional=optional)

    def _bounded(self, element: s.Seq) -> s.Seq:
        if not self._whole_language:
            return element
        return s.Bounded(element, s.Duration(self._rng.choice([1, 2, 3, Fraction(3, 2)]), "SECONDS"))

    def _negated(self, depth: int) -> s.Seq:
        kind = self._rng.random()
        if kind < 0.15:
            return s.Disjunction((self._name(), self._name()))
        if kind < 0.3 and depth > 0:
            return self.chain(depth - 1, negations=False)
        if kind < 0.42:
            return self._simultaneous(1)
        if kind < 0.48:
            return s.Repeat(self._name(), 1, None)
        return self._name()

    def _element(self, depth: int) -> s.Seq:
        """Something that needs at least one event."""
        rng = self._rng
        if len(self._names) >= self._most:
            return self._name()
        if rng.random() < 0.08 and self._whole_language:
            return self._bounded(self._element(depth - 1))
        kind = rng.random()
        if kind < 0.24:
            element = self._name() if depth < 1 or rng.random() < 0.6 else self._element(depth - 1)
            while _ends_negated(element) and not self._whole_language:
                element = self._element(depth - 1)
            minimum, maximum = rng.choice(
                [(1, None), (1, None), (1, None), (2, None), (1, 2), (2, 2), (1, 3)]
            )
            return s.Repeat(element, minimum, maximum, rng.choice([*s.Strategy, s.Strategy.NEXT]))
        if kind < 0.36:
            return self._simultaneous(depth)
        if kind < 0.46 and depth > 0:
            return s.Disjunction((self.chain(depth - 1), self.chain(depth - 1)))
        if kind < 0.56 and depth > 0:
            return self.chain(depth - 1)
        if kind < 0.62 and depth > 0 and self._alls:
            return s.All(tuple(self.chain(0) for _ in range(rng.choice([2, 2, 2, 3]))))
        return self._name()

    def _simultaneous(self, depth: int) -> s.Conjunction:
        operands: list[s.Seq] = [self._name(), self._name()]
        if self._rng.random() < 0.25:
            operands[1] = s.Disjunction((operands[1], self._name()))
        elif depth > 0 and self._rng.random() < 0.15:
            operands.append(self._name())
        return s.Conjunction(tuple(operands))

    def _name(self) -> s.Ref:
        full = len(self._names) >= min(self._most, 7)
        if full or (self._names and self._rng.random() < 0.08):
            return s.Ref(self._rng.choice(self._names))
        self._names.append("ABCDEFG"[len(self._names)])
        return s.Ref(self._names[-1])


def _ends_negated(seq: s.Seq) -> bool:
    """Whether a negation may come last."""
    match seq:
        case s.Not():
            return True
        case s.Sequence(elements):
            return _ends_negated(elements[-1])
        case s.Disjunction(parts) | s.All(parts):
            return any(map(_ends_negated, parts))
        case s.Repeat(element):
            return _ends_negated(element)
        case _:
            return False


# --- conditions -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Kleene:
    gpms: frozenset[str]
    own: tuple[str, ...]


@dataclass
class _Conditions:
    """Filters that the static checks allow: they know what is visible, and which are group variables.

    ``summing``: how often an operand is an aggregate of a group variable, if there are any. ``rich``: most
    conditions are any expressions.
    """

    rng: random.Random
    bound: dict[str, tuple[str, ...]]
    sometimes: frozenset[str]
    visible: tuple[str, ...]
    kleenes: list[_Kleene]
    summing: float
    constants: Sequence[str]
    rich: bool = False
    groups: list[str] = field(init=False)

    def __post_init__(self) -> None:
        self.groups = sorted({name for kleene in self.kleenes for name in kleene.own})

    def condition(self, gpm: str | None) -> str:
        """A condition in a GPM, or in WHERE."""
        if self.rich and self.rng.random() < 0.8:
            return self._truth(gpm, self.rng.choice([1, 2, 2, 3]))
        kind = self.rng.random()
        if kind < 0.06 and gpm is not None:
            # Alone: what else errs beside it does so in the reference's way only.
            mine = [
                v for kleene in self.kleenes if gpm in kleene.gpms for v in kleene.own if v in self.visible
            ]
            if mine:
                return f"?v{gpm} {self.rng.choice(['<', '>', '=', '!='])} PREV(?{self.rng.choice(mine)})"
        if kind < 0.12:
            return f"{self._comparison(gpm)} && {self._comparison(gpm)}"
        if kind < 0.17:
            return f"{self._comparison(gpm)} || {self._comparison(gpm)}"
        if kind < 0.20:
            return f"!({self._comparison(gpm)})"
        if kind < 0.23:
            return f"BOUND(?{self._variable(gpm)}) || {self._comparison(gpm)}"
        if kind < 0.25:
            return f"?{self._variable(gpm)} IN (1, 2.0, ?{self._variable(gpm)})"
        if kind < 0.27:
            return f'REGEX(STR(?{self._variable(gpm)}), "[12]")'
        if kind < 0.28 and gpm is not None:
            return f"EXISTS {{ [] :q ?{self._variable(gpm)} }}"
        return self._comparison(gpm)

    def _truth(self, gpm: str | None, depth: int) -> str:
        """Any expression that is often a boolean."""
        rng = self.rng

        def truth() -> str:
            return self._truth(gpm, depth - 1)

        def value() -> str:
            return self._value(gpm, depth - 1)

        if depth <= 0:
            return f"{value()} {rng.choice(['<', '>', '<=', '>=', '=', '!='])} {value()}"
        kind = rng.random()
        if kind < 0.5:
            return f"({truth()} {rng.choice(['||', '||', '&&'])} {truth()})"
        if kind < 0.56:
            return f"!({truth()})"
        if kind < 0.62:
            return f"BOUND(?{self._variable(gpm)})"
        if kind < 0.68:
            return f"({value()} {rng.choice(['IN', 'NOT IN'])} ({value()}, {value()}))"
        if kind < 0.74:
            text = f"STR({value()})"
            test = f"{rng.choice(['CONTAINS', 'STRSTARTS'])}({text}, STR({value()}))"
            return rng.choice([f'REGEX({text}, "[12]")', test])
        if kind < 0.78:
            return rng.choice([f"sameTerm({value()}, {value()})", f"isNumeric({value()})"])
        if kind < 0.83:
            return f"COALESCE({truth()}, {truth()})"
        if kind < 0.88:
            return f"IF({truth()}, {truth()}, {truth()})"
        if kind < 0.92:
            return value()
        if kind < 0.96:
            point = f"{rng.choice(['?' + self._variable(gpm), value()])}"
            metre = "<http://www.opengis.net/def/uom/OGC/1.0/metre>"
            other = rng.choice([value(), f'"POINT(1 0)"^^<{_WKT}>', f"?{self._variable(gpm)}"])
            distance = f"<http://www.opengis.net/def/function/geosparql/distance>({point}, {other}, {metre})"
            return f"{distance} < {rng.choice([120000, 111000, 1])}"
        return f"{value()} - {value()} {rng.choice(['<', '>', '='])} {value()}"

    def _value(self, gpm: str | None, depth: int) -> str:
        """Any expression that is often a number."""
        rng = self.rng

        def value() -> str:
            return self._value(gpm, depth - 1)

        kind = rng.random()
        if depth <= 0 or kind < 0.25:
            return self._operand(gpm)
        if kind < 0.4:
            return f"({value()} {rng.choice('+-*/')} {value()})"
        if kind < 0.48:
            return f"{rng.choice(['ABS', 'ABS', 'CEIL', 'ROUND', '-', '+', 'STR', 'STRLEN'])}({value()})"
        if kind < 0.55:
            return f"STRLEN(STR({value()}))"
        if kind < 0.65:
            name = rng.choice(["sqrt", "sqrt", "sin", "exp", "log", "tan", "acos", "atan"])
            return f"<{_MATH}{name}>({value()})"
        if kind < 0.7:
            return f"<{_MATH}{rng.choice(['pow', 'atan2'])}>({value()}, {value()})"
        if kind < 0.78:
            return f"<{_XSD}{rng.choice(['double', 'integer', 'string', 'boolean'])}>({value()})"
        if kind < 0.85:
            return f"COALESCE({value()}, {value()})"
        if kind < 0.92:
            return f"IF({self._truth(gpm, depth - 1)}, {value()}, {value()})"
        if kind < 0.95:
            return f"CONCAT(STR({value()}), STR({value()}))"
        return rng.choice(['"PT1.5S"^^<' + _XSD + "dayTimeDuration>", "true", f"<{_MATH}pi>()"])

    def ordering(self, gpm: str) -> str:
        """A condition that a heap of runs can wait for."""
        others = [name for name in self.visible if name.startswith("v") and name not in self.bound[gpm]]
        other = self.rng.choice(others or list(self.bound[gpm]))
        return f"?v{gpm} {self.rng.choice(['<', '>', '<=', '>='])} ?{other}"

    def _comparison(self, gpm: str | None) -> str:
        rng = self.rng
        operator = rng.choice(["<", ">", "<=", ">=", ">", "=", "!="])
        first = f"?v{gpm}" if gpm is not None else f"?{self._variable(gpm)}"
        sides = [first if rng.random() < 0.8 else self._operand(gpm), self._operand(gpm)]
        if rng.random() < 0.2:
            sides.reverse()
        return f"{sides[0]} {operator} {sides[1]}"

    def _operand(self, gpm: str | None) -> str:
        rng = self.rng
        name = self._variable(gpm)
        seen = set(self.visible) | set(self.bound.get(gpm or "", ()))
        groups = [group for group in self.groups if group in seen]
        kind = rng.random()
        if self.rich and gpm is not None and rng.random() < 0.15:
            mine = [v for kleene in self.kleenes if gpm in kleene.gpms for v in kleene.own if v in seen]
            if mine:
                return f"PREV(?{rng.choice(mine)}{rng.choice(['', '', ', 2', ', 3'])})"
        if self.rich and groups and rng.random() < 0.15:
            return f"{rng.choice(['FIRST', 'LAST'])}(?{rng.choice(groups)}, {rng.choice([0, 1, 1, 2])})"
        if groups and rng.random() < self.summing:
            function = rng.choice(["MIN", "MAX", "SUM", "COUNT", "COUNT", "AVG", "FIRST", "LAST", "LAST"])
            argument = f"?{rng.choice(groups)}"
            if rng.random() < (0.3 if self.rich else 0.1):
                argument = rng.choice([f"DISTINCT {argument}", f"{argument} + 1", f"{argument} - ?{name}"])
            return f"{function}({argument})"
        if kind < 0.24:
            other = rng.choice(["1", "0.5", "0.1", "2", f"?{self._variable(gpm)}"])
            return f"?{name} {rng.choice('+-*/')} {other}"
        if kind < 0.32:
            return rng.choice([*self.constants, "2", "1.0", "-1", "2e0"])
        if kind < 0.36:
            return f"COALESCE(?{name}, {rng.choice([f'?{self._variable(gpm)}', '1'])})"
        if kind < 0.38:
            return f"-?{name}"
        if kind < 0.39:
            return f"IF(BOUND(?{name}), ?{name}, 2)"
        return f"?{name}"

    def _variable(self, gpm: str | None) -> str:
        names = [*self.visible, *self.bound.get(gpm or "", ())]
        # Values are what is compared most.
        weights = [6 if name.startswith("v") else 2 if name in self.sometimes else 1 for name in names]
        return self.rng.choices(names, weights)[0]


_CONSTANTS = ('"2"', '"x"', '"2020-01-01T00:00:00Z"^^<' + _XSD + "dateTime>", ":x")


def random_condition(rng: random.Random, names: Sequence[str]) -> str:
    """Any expression over some variables, which often is a boolean; without aggregates, PREV and EXISTS."""
    conditions = _Conditions(rng, {}, frozenset(), tuple(names), [], 0.0, _CONSTANTS, rich=True)
    return conditions.condition(None)


# --- queries --------------------------------------------------------------------------------------


def random_query(
    rng: random.Random,
    *,
    sequences: Sequence[str] = (),
    most: int = 6,
    depth: int = 2,
    alls: bool = True,
    joined: str | None = None,
    kernel: bool = False,
    rich: bool = False,
    whole_language: bool = False,
) -> Query:
    """A query that passes the static checks.

    ``sequences``: its SEQ is one of these. ``joined``: the GPMs that bind ``?k``, if they are not random.
    ``kernel``: its tables can hold the query. ``rich``: filters are of all that expressions can be.
    ``whole_language``: also what only ``interpreter``, the kernel and the reference can do.
    """
    while True:
        seq = rng.choice(sequences) if sequences else None
        try:
            query = _draw(rng, seq, most, depth, alls, joined, rich, whole_language)
        except QueryError:
            continue
        known = frozenset({Feature.STEPS} if rich else ())
        if not whole_language and any(feature not in known for feature, _ in features(query.pattern)):
            continue
        if not kernel or query.misfit is None:
            return query


def _draw(
    rng: random.Random,
    given: str | None,
    most: int,
    depth: int,
    alls: bool,
    joined: str | None,
    rich: bool,
    whole_language: bool,
) -> Query:
    sequence = _parsed(given) if given else _Sequences(rng, most, alls, whole_language).whole(depth)
    count = Counter(ref.name for ref, _ in references(sequence))
    positive = {ref.name for ref, negated in references(sequence) if not negated}
    names = sorted(count)
    keys = rng.choices([(), ("k",), ("k", "j")], [70, 22, 8])[0] if joined is None else ()
    # Where heaps of runs are used: one stream, and one ordering filter at each GPM.
    ordered = rng.random() < 0.15
    streams = 1 if ordered else rng.choices([1, 2, 3], [40, 45, 15])[0]
    numbers = tuple(range(1, streams + 1))
    types, reads, binds, sometimes = {}, {}, {}, {}
    # The variables by which GPMs may be joined; several at once are found by one hash.
    shared, sharing = ("k", "j"), rng.choice([0.0, 0.2, 0.5])
    if rng.random() < 0.08:
        shared, sharing = ("k", "j", "h", "i", "g")[: rng.randint(3, 5)], 0.85
    optional = rng.choice([0.0, 0.0, 0.25])
    for name in names:
        types[name] = rng.choice("xxxy")
        reads[name] = numbers if rng.random() < 0.7 else (rng.choice(numbers),)
        always = [key for key in keys if name in positive or rng.random() < 0.7]
        if joined is not None:
            always = ["k"] * (name in joined)
        else:
            always += [key for key in shared if key not in keys and rng.random() < sharing]
        binds[name] = tuple(always)
        sometimes[name] = tuple(n for n in (f"w{name}", "m") if rng.random() < optional)
    bound = {name: (f"v{name}", *binds[name], *sometimes[name]) for name in names}
    conditions = _Conditions(
        rng,
        bound,
        frozenset(n for some in sometimes.values() for n in some),
        tuple(sorted({variable for name in positive for variable in bound[name]})),
        _kleenes(sequence, bound, count),
        rng.choice([0.1, 0.2, 0.5]),
        _CONSTANTS,
        rich,
    )
    filtered = rng.choice([0.4, 0.8] if rich else [0.1, 0.3, 0.6])
    gpms = []
    for name in names:
        filters = [conditions.condition(name)] if rng.random() < filtered else []
        if ordered:
            filters = [conditions.ordering(name)] if rng.random() < 0.8 else []
        elif filters and rng.random() < 0.1:
            filters.append(conditions.condition(name))
        gpms.append(_gpm(name, reads[name], binds[name], sometimes[name], filters))
    where = [conditions.condition(None) for _ in range(rng.choice([0, 0, 0, 1, 1, 2]))]
    end = rng.choices(["", "EMIT NEXT", "EMIT LAST", "EMIT MAX"], [64, 12, 12, 12])[0]
    text = (
        f"PREFIX : <http://example.org/> SELECT * WITHIN 10 SECONDS "
        f"{'PARTITION BY ' * bool(keys)}{' '.join('?' + key for key in keys)}\n"
        f"{' '.join(f'FROM STREAM S{i} <http://example.org/s{i}>' for i in numbers)}\n"
        f"WHERE {{ SEQ({given or print_sequence(sequence)})\n{''.join(gpms)}"
        f"{''.join(f'FILTER({condition}) ' for condition in where)}}} "
        f"{end}{' CONSUME ANY' * (rng.random() < 0.12)}"
    )
    return Query(text, pattern_of(text), types, reads, binds, sometimes, rich)


def pattern_of(text: str) -> SequencePattern:
    """The sequence of a query that passes the static checks; raises QueryError for any other."""
    with warnings.catch_warnings():
        # Vacuous negations and unread streams are part of random queries.
        warnings.simplefilter("ignore", SpaseqWarning)
        return normalise(checked(text))


def _gpm(
    name: str, streams: Sequence[int], binds: Sequence[str], sometimes: Sequence[str], filters: Sequence[str]
) -> str:
    body = f"[] :v ?v{name}" + "".join(f" ; :{variable} ?{variable}" for variable in binds)
    optional = "".join(f" OPTIONAL {{ [] :{variable[0]} ?{variable} }}" for variable in sometimes)
    conditions = "".join(f" FILTER({condition})" for condition in filters)
    read = ", ".join(f"S{i}" for i in streams)
    return f"DEFINE GPM {name} ON {read} {{ {body} .{optional}{conditions} }}\n"


def _parsed(sequence: str) -> s.Seq:
    names = sorted(set(re.findall(r"\b[A-Z]\b", sequence)))
    gpms = " ".join(f"DEFINE GPM {name} ON S {{}}" for name in names)
    return checked(f"ASK WITHIN 1 SECONDS FROM STREAM S <urn:s> {{ SEQ({sequence}) {gpms} }}").sequence


def _kleenes(sequence: s.Seq, bound: dict[str, tuple[str, ...]], count: Counter[str]) -> list[_Kleene]:
    """The Kleenes of a sequence, with their group variables: those that only one element has."""
    elements = Counter(variable for name, number in count.items() for variable in bound[name] * number)
    found = []
    for node in inside(sequence):
        if isinstance(node, s.Repeat) and node.maximum != 1:
            gpms = frozenset(ref.name for ref, _ in references(node))
            own = sorted({v for name in gpms for v in bound[name] if elements[v] == 1})
            if own:
                found.append(_Kleene(gpms, tuple(own)))
    return found


# --- streams --------------------------------------------------------------------------------------


def random_sample(rng: random.Random, query: Query, size: int, *, steps: bool = True) -> Sample:
    """A stream of at most ``size`` events: ties, events of several solutions, sometimes odd values."""
    dictionary = query.dictionary
    plain = [dictionary.intern(term) for term in PLAIN]
    odd, times = ([dictionary.intern(term) for term in terms] for terms in (ODD, TIMES))
    numbers = plain
    if rng.random() < 0.3:
        numbers = sorted(rng.sample(odd, 4)) + plain[1:3]
    elif rng.random() < 0.1:
        numbers = sorted(rng.sample(times, 5))
    if query.rich and rng.random() < 0.3:
        numbers = [dictionary.intern(term) for term in rng.choice([DURATIONS, PLACES])]
    rows_of = rng.choice([[1], [1], [1, 2], [1, 1, 2, 3]])
    apart = rng.random() < 0.3  # the GPMs of an event see solutions of their own
    freely = rng.random() < 0.3  # an event is for any GPMs, not for those of one type
    gaps = rng.choice([[0, 1, 1, 2], [0, 1, 1, 2], [0, 0, 0, 1], [0, 1, 3, 7], [1]])
    streams = sorted({stream for read in query.streams.values() for stream in read})
    if "ALL(" in query.text:
        size = min(size, 6)  # every order of it is tried
    rare = rng.choice([0.5, 0.5, 0.15])  # how seldom two keys differ
    start = time = rng.choice([0, 0, 0, -7, 1_600_000_000_000_000])
    counts = dict.fromkeys(streams, 0)

    def solution(name: str) -> dict[str, int]:
        found = {f"v{name}": rng.choice(numbers)}
        found |= {variable: plain[rng.random() < rare] for variable in query.binds[name]}
        return found | {v: rng.choice(numbers) for v in query.sometimes.get(name, ()) if rng.random() < 0.6}

    events = []
    for position in range(rng.randrange(size // 2, size + 1)):
        time += rng.choice(gaps) if position else 0
        stream = rng.choice(streams)
        kind = rng.choice("xxxy")
        seed, rows = rng.random(), rng.choice(rows_of)
        common = {name: plain[rng.random() < rare] for name in "kjhig"} | {"": rng.choice(numbers)}
        solutions = {}
        for name, wanted in query.types.items():
            relevant = rng.random() < 0.5 if freely else wanted == kind and rng.random() < 0.9
            if not relevant or stream not in query.streams[name]:
                continue
            found = [solution(name) for _ in range(rows)]
            if not apart and seed < 0.7:
                found[0] |= {v: common[v] for v in query.binds[name]} | {f"v{name}": common[""]}
            solutions[name] = tuple(found)
        events.append(Occurrence(Stamp(time, stream, counts[stream]), position, solutions))
        counts[stream] += 1
    length = rng.choice([1, 2, 3, 3, 4, 5, 6, 8, 10, 15, 20, 30])
    counted, sliding = rng.random() < 0.35, rng.random() < 0.5
    window = StreamWindow(length, counted, sliding, 0 if counted else start, ticks=True)
    drops = frozenset(p for p in range(len(events)) if rng.random() < 0.3) if rng.random() < 0.05 else ()
    return Sample(
        query,
        window,
        tuple(events),
        _steps(rng, events) if steps else (),
        frozenset(drops),
    )


def _steps(rng: random.Random, events: Sequence[Occurrence]) -> tuple[Step, ...]:
    out = []
    done = 0
    sweeps = rng.choice([0.0, 0.0, 0.0, 0.6])
    most = rng.choice([1, 2, 4, 9])
    while done < len(events):
        size = min(rng.randint(1, most), len(events) - done)
        done += size
        last = events[done - 1].time
        soon = events[done].time if done < len(events) else last + 30
        out.append(Step(size, rng.randint(last, soon) if rng.random() < 0.5 else None, rng.random() < sweeps))
    return tuple(out)
