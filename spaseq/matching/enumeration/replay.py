"""What an enumerated match means: its events and its Ω."""

from __future__ import annotations

from collections.abc import Sequence

from spaseq.matching.columns.history import History
from spaseq.matching.context import Context, Rows
from spaseq.matching.enumeration.automaton import Automaton
from spaseq.matching.host import Key
from spaseq.matching.model import Found, Row

#: The events of a match: positions, and the GPMs that they were chosen as.
Choices = Sequence[tuple[int, str]]


class Replay:
    """Runs NFA_scep once more over the events of a match, with its solutions.

    ``keys`` are the variables that tell runs apart, the first ``partition`` of them those of PARTITION BY.
    """

    def __init__(
        self, automaton: Automaton, context: Context, history: History, keys: Sequence[str], partition: int
    ) -> None:
        self._automaton = automaton
        self._context = context
        self._history = history
        self._derived = tuple(keys[partition:])
        self._partition = partition

    def match(self, choices: Choices, key: Key) -> Found | None:
        """The match that consists of these events.

        None where several join keys have the same events, for all of them but the least: the match has the
        solutions of all.
        """
        seen = key[: self._partition]
        events = tuple((gpm, self._history.occurrence(position, seen, gpm)) for position, gpm in choices)
        runs = [(self._automaton.start, self._context.start)]
        for gpm, event in events:
            runs = [
                (transition.to, rows)
                for configuration, before in runs
                for transition in self._automaton.transitions(configuration)
                if transition.unit.gpm == gpm
                if (
                    rows := self._context.extend(
                        self._context.act(
                            self._context.act(before, transition.gate.ends), transition.way.begins
                        ),
                        transition.unit,
                        event,
                        transition.way.inside,
                    )
                )
            ]
        ended = [
            self._context.act(rows, ends)
            for configuration, rows in runs
            for ends in self._automaton.endings(configuration)
        ]
        found = tuple(row for number, rows in enumerate(ended) for row in _new(rows, ended[:number]))
        if not found or (self._derived and self._least(found) != key[self._partition :]):
            return None
        return Found(events, found)

    def _least(self, rows: Sequence[Row]) -> Key:
        return min(tuple(row.binding[name] for name in self._derived) for row in rows)


def _new(rows: Rows, before: Sequence[Rows]) -> Rows:
    """The rows that other ways to find the same match do not have."""
    return tuple(row for row in rows if not any(row in other for other in before))
