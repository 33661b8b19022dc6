"""Bottom-up derivation of a text by lark's LALR(1) tables, without lark's tree.

lark makes the tables (LALR(1), contextual lexer) and diagnoses wrong texts. For correct texts its own loop
would first build a tree with several objects per token, for a transformer to walk; that would double the
total time. Here each reduction calls a method named as the rule (or its alias), of the first builder that has
such a method. Its arguments are the place and the children, as with ``lark.v_args(meta=True)``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from lark import Lark, Token
from lark.exceptions import UnexpectedInput
from lark.grammar import Rule
from lark.parsers.lalr_analysis import Shift

from spaseq.errors import QuerySyntaxError
from spaseq.language.reading.diagnosis import diagnose
from spaseq.language.reading.source import QueryText

_END: Final = "$END"


class Extent(NamedTuple):
    """Where the text of a rule begins and ends, in characters; both 0 if it is empty."""

    start_pos: int
    end_pos: int


class _NotDerivedError(Exception):
    """The grammar does not derive this text; lark can say why."""


@dataclass(frozen=True, slots=True)
class _Reduction:
    """A rule: how many symbols it takes off the stack, and what it builds from them.

    ``kept`` lists the children: an index, whether that symbol is a nameless rule with children to splice in,
    and how many absent optional children come before.
    """

    size: int
    origin: str
    kept: tuple[tuple[int, bool, int], ...]
    absent: int
    builder: int
    build: Callable[[Any, Extent, list[Any]], Any] | None
    passes_one: bool
    only_renames: bool

    def children(self, values: list[Any]) -> list[Any]:
        found: list[Any] = []
        for index, spread, absent in self.kept:
            if absent:
                found += [None] * absent
            if not spread:
                found.append(values[index])
            elif found:
                found += values[index]
            else:
                found = values[index]  # the only reference: copying would cost n² for a chain of n
        if self.absent:
            found += [None] * self.absent
        return found


class _State(NamedTuple):
    """A parser state: the regular expression of its terminals, and the next state or rule for each symbol."""

    match: Callable[[str, int], re.Match[str] | None]
    shifts: dict[str, int]
    reductions: dict[str, _Reduction]
    gotos: dict[str, int]


class Derivation:
    """The parser tables of a grammar, and the builders' method for each rule.

    Threads may share it: all state of one text is on the stack of ``build``.
    """

    def __init__(self, lark: Lark, *builders: type) -> None:
        self._lark = lark
        front: Any = lark.parser
        self._table = front.parser._parse_table
        self._lexers = front.lexer.lexers
        self._builders = builders
        self._states: dict[int, _State] = {}
        self._rules: dict[Rule, _Reduction] = {}
        patterns = {terminal.name: terminal.pattern.to_regexp() for terminal in lark.terminals}
        ignored = [patterns[name] for name in lark.lexer_conf.ignore]
        self._ignored = set(lark.lexer_conf.ignore)
        self._skip = re.compile(f"(?:{'|'.join(ignored)})*").match
        # A token may be dropped where a rule writes it as text, and kept where a rule names it.
        self._kept = {
            symbol.name
            for rule in lark.rules
            for symbol in rule.expansion
            if symbol.is_term and not symbol.filter_out  # type: ignore[attr-defined]  # a terminal has it
        }

    def build(self, builders: Sequence[Any], source: QueryText, start: str) -> Any:
        """Return the result of rule ``start`` for a text. ``builders``: one object of each builder type.

        Raises QuerySyntaxError, or what a method of a builder raises. Syntax errors take precedence, also
        over an earlier error of a builder.
        """
        try:
            return self._build(builders, source.expanded, start)
        except _NotDerivedError:
            raise diagnose(self._lark, source, start) from None
        except (QuerySyntaxError, RecursionError):
            if self._is_read(source.expanded, start):
                raise
            raise diagnose(self._lark, source, start) from None

    def _is_read(self, text: str, start: str) -> bool:
        try:
            self._lark.parse(text, start=start)
        except UnexpectedInput:
            return False
        return True

    def _build(self, builders: Sequence[Any], text: str, start: str) -> Any:
        states, skip, kept = self._states, self._skip, self._kept
        final = self._table.end_states[start]
        number = self._table.start_states[start]
        path: list[int] = [number]
        values: list[Any] = []
        # Where each value begins and ends, including dropped brackets.
        starts: list[int | None] = []
        ends: list[int | None] = []
        state = states.get(number) or self._state(number)
        position = 0
        while True:
            position = skip(text, position).end()  # type: ignore[union-attr]  # matches nothing, too
            found = state.match(text, position)
            if found is not None:
                kind: str = found.lastgroup  # type: ignore[assignment]  # each alternative is a group
            elif position == len(text):
                kind = _END
            else:
                raise _NotDerivedError
            while (target := state.shifts.get(kind)) is None:
                rule = state.reductions.get(kind)
                if rule is None:
                    raise _NotDerivedError
                if rule.only_renames:
                    path.pop()
                else:
                    _reduce(rule, builders, values, starts, ends)
                    if rule.size:
                        del path[-rule.size :]
                number = states[path[-1]].gotos[rule.origin]
                path.append(number)
                if found is None and number == final:
                    return values[-1]
                state = states.get(number) or self._state(number)
            if found is None:
                raise _NotDerivedError
            path.append(target)
            state = states.get(target) or self._state(target)
            starts.append(position)
            end = found.end()
            values.append(Token(kind, found[0], position, end_pos=end) if kind in kept else None)
            ends.append(end)
            position = end

    def _state(self, number: int) -> _State:
        """Return a state, made when it is first reached: most texts need few of them."""
        shifts: dict[str, int] = {}
        reductions: dict[str, _Reduction] = {}
        gotos: dict[str, int] = {}
        terminals = self._lexers[number].terminals
        names = {terminal.name for terminal in terminals}
        for symbol, (action, target) in self._table.states[number].items():
            if action is not Shift:
                reductions[symbol] = self._reduction(target)
            elif symbol in names:
                shifts[symbol] = target
            else:
                gotos[symbol] = target
        alternatives = (
            f"(?P<{terminal.name}>{terminal.pattern.to_regexp()})"
            for terminal in terminals
            if terminal.name not in self._ignored
        )
        # If only the end may follow, match nothing.
        pattern = "|".join(alternatives) or "(?!)"
        state = self._states[number] = _State(re.compile(pattern).match, shifts, reductions, gotos)
        return state

    def _reduction(self, rule: Rule) -> _Reduction:
        known = self._rules.get(rule)
        if known is None:
            known = self._rules[rule] = _read(rule, self._builders)
        return known


def _reduce(
    rule: _Reduction,
    builders: Sequence[Any],
    values: list[Any],
    starts: list[int | None],
    ends: list[int | None],
) -> None:
    """Replace the symbols of a rule on the stack by what the rule builds from them."""
    size = rule.size
    if size:
        start = starts[-size]
        end = ends[-1]
        if start is None:
            start = _first(starts[-size:])
        if end is None:
            end = _first(reversed(ends[-size:]))
        children = rule.children(values[-size:])
        del values[-size:], starts[-size:], ends[-size:]
    else:
        start = end = None
        children = rule.children([])
    if rule.build is None:
        value: Any = children
    elif rule.passes_one and len(children) == 1:
        value = children[0]
    else:
        value = rule.build(builders[rule.builder], Extent(start or 0, end or 0), children)
    values.append(value)
    starts.append(start)
    ends.append(end)


def _first(places: Iterable[int | None]) -> int | None:
    return next((place for place in places if place is not None), None)


def _read(rule: Rule, builders: Sequence[type]) -> _Reduction:
    """Convert a rule of lark, reading its options as lark's own tree builder does."""
    origin = str(rule.origin.name)
    # Where a [ ] was left out of the rule, the places of its contents are marked.
    marks = rule.options.empty_indices or (False,) * len(rule.expansion)
    before = [len(run) for run in "".join("01"[mark] for mark in marks).split("0")]
    kept: list[tuple[int, bool, int]] = []
    absent = 0
    for index, symbol in enumerate(rule.expansion):
        absent += before[index]
        if not (symbol.is_term and symbol.filter_out):  # type: ignore[attr-defined]  # a terminal has it
            spread = not symbol.is_term and symbol.name.startswith("_")
            kept.append((index, spread, absent))
            absent = 0
    passes_one = bool(rule.options.expand1 and not rule.alias)
    nameless = origin.startswith("_") and not rule.alias
    name = str(rule.alias or origin)
    number = next((i for i, builder in enumerate(builders) if hasattr(builder, name)), 0)
    build = None if nameless else getattr(builders[number], name, None) or _single
    absent += before[-1]
    size = len(rule.expansion)
    only_renames = passes_one and size == 1 and kept == [(0, False, 0)] and not absent
    return _Reduction(size, origin, tuple(kept), absent, number, build, passes_one, only_renames)


def _single(_builder: Any, _place: Extent, children: list[Any]) -> Any:
    """Return the only child, for rules without a method."""
    (child,) = children
    return child
