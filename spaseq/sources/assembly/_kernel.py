"""Compiled assembly of events: ids of quads → events as columns.

Covers regular streams: the quads of each graph stand together, and its time stands right before, right after,
between, or inside them. Everything else is *irregular* and left to the assembler in Python (``assemble``).
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from spaseq._jit import inlined, kernel, part
from spaseq.terms._table_kernel import IRI, KIND, LENGTH, LITERAL, START, Bytes, Ids, ends_with

#: Status of a time: not readable by the kernel, an instant, a tick.
UNREAD: Final = 0
INSTANT: Final = 1
TICK: Final = 2

#: Returned instead of a number of events.
IRREGULAR: Final = -1

_XSD: Final = b'"^^<http://www.w3.org/2001/XMLSchema#'
_DATETIME: Final = np.frombuffer(_XSD + b"dateTime>", dtype=np.uint8)
_INTEGER: Final = np.frombuffer(_XSD + b"integer>", dtype=np.uint8)

_ZERO: Final = ord("0")
_NINE: Final = ord("9")
_PLUS: Final = ord("+")
_MINUS: Final = ord("-")
_COLON: Final = ord(":")
_DOT: Final = ord(".")
_T: Final = ord("T")
_Z: Final = ord("Z")
_LONGEST: Final = 18  # digits that certainly fit into 64 bits


@part
def _number(text: Bytes, start: int, count: int) -> int:
    """Return the number that ``count`` digits say; -1 if they are not digits."""
    found = 0
    for i in range(start, start + count):
        if text[i] < _ZERO or text[i] > _NINE:
            return -1
        found = found * 10 + (text[i] - _ZERO)
    return found


@part
def _days(year: int, month: int, day: int) -> int:
    """Return the days from 1970 to a date of the Gregorian calendar."""
    if month <= 2:
        year -= 1
        month += 12
    return 365 * year + year // 4 - year // 100 + year // 400 + (153 * month - 457) // 5 + day - 719469


@part
def _last_day(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month == 4 or month == 6 or month == 9 or month == 11 else 31


@part
def _instant(text: Bytes, start: int, end: int) -> tuple[int, int]:
    """Return (status, microseconds since 1970) of ``YYYY-MM-DDThh:mm:ss(.f+)?(Z|±hh:mm)?``."""
    if end - start < 19:
        return UNREAD, 0
    year, month, day = _number(text, start, 4), _number(text, start + 5, 2), _number(text, start + 8, 2)
    hour, minute, second = (
        _number(text, start + 11, 2),
        _number(text, start + 14, 2),
        _number(text, start + 17, 2),
    )
    if text[start + 4] != _MINUS or text[start + 7] != _MINUS or text[start + 10] != _T:
        return UNREAD, 0
    if text[start + 13] != _COLON or text[start + 16] != _COLON:
        return UNREAD, 0
    # The first and last years are left out: a zone could lead beyond them.
    if year < 2 or year > 9998 or month < 1 or month > 12 or day < 1 or day > _last_day(year, month):
        return UNREAD, 0
    if min(hour, minute, second) < 0 or hour > 23 or minute > 59 or second > 59:
        return UNREAD, 0
    i = start + 19
    fraction = 0
    if i < end and text[i] == _DOT:
        i += 1
        digits = 0
        while i < end and text[i] >= _ZERO and text[i] <= _NINE:
            if digits < 6:
                fraction = fraction * 10 + (text[i] - _ZERO)
            digits += 1
            i += 1
        if digits == 0:
            return UNREAD, 0
        for _ in range(digits, 6):
            fraction *= 10
    offset = 0
    if i < end and text[i] == _Z:
        i += 1
    elif end - i == 6 and (text[i] == _PLUS or text[i] == _MINUS) and text[i + 3] == _COLON:
        hours, minutes = _number(text, i + 1, 2), _number(text, i + 4, 2)
        if hours < 0 or hours > 13 or minutes < 0 or minutes > 59:
            return UNREAD, 0
        offset = 60 * hours + minutes
        if text[i] == _MINUS:
            offset = -offset
        i = end
    if i != end:
        return UNREAD, 0
    minutes = (_days(year, month, day) * 24 + hour) * 60 + minute - offset
    return INSTANT, (minutes * 60 + second) * 1_000_000 + fraction


@part
def read_time(terms: Ids, arena: Bytes, identifier: int) -> tuple[int, int]:
    """Return (status, time) of a literal in one of the usual forms."""
    if terms[identifier, KIND] != LITERAL:
        return UNREAD, 0
    text = arena
    start = terms[identifier, START]
    end = start + terms[identifier, LENGTH]
    if ends_with(text, start, end, _DATETIME):
        return _instant(text, start + 1, end - len(_DATETIME))
    if ends_with(text, start, end, _INTEGER):
        start, end = start + 1, end - len(_INTEGER)
        negative = text[start] == _MINUS
        if negative or text[start] == _PLUS:
            start += 1
        value = _number(text, start, end - start) if end > start and end - start <= _LONGEST else -1
        if value >= 0:
            return TICK, -value if negative else value
    return UNREAD, 0


@kernel
def read_times(terms: Ids, arena: Bytes, ids: Ids, status: Ids, time: Ids) -> None:
    """Write the result of ``read_time`` for each id; for id 0 it is ``UNREAD``."""
    for i in range(len(ids)):
        status[i] = UNREAD
        if ids[i] != 0:
            status[i], time[i] = read_time(terms, arena, ids[i])


@part
def _distinct(s: Ids, p: Ids, o: Ids, start: int, end: int, index: Ids) -> int:
    """Keep only the first of equal rows; return where the rows end now.

    ``index`` is a hash table with room for at least twice as many rows.
    """
    size = 4
    while size < 2 * (end - start):
        size *= 2
    index[:size] = -1
    to = start
    for row in range(start, end):
        code = (s[row] * 0x1F3D5B79 + p[row]) * 0x2545F491 + o[row] * 0x9E3779B1
        place = (code ^ (code >> 17)) & (size - 1)
        while True:
            other = index[place]
            if other < 0:
                index[place] = to
                s[to], p[to], o[to] = s[row], p[row], o[row]
                to += 1
                break
            if s[other] == s[row] and p[other] == p[row] and o[other] == o[row]:
                break
            place = (place + 1) & (size - 1)
    return to


@part
def _inside(s: Ids, p: Ids, o: Ids, start: int, end: int, predicate: int, graph: int) -> int:
    """Return the time in the rows: that of their graph's name, or, if it has none, of any subject.

    0 if there is none, or if there are several.
    """
    about = anything = 0
    clash = other_clash = False
    for row in range(start, end):
        if p[row] == predicate:
            if s[row] == graph:
                clash = clash or (about != 0 and about != o[row])
                about = o[row]
            other_clash = other_clash or (anything != 0 and anything != o[row])
            anything = o[row]
    if about != 0:
        return 0 if clash else about
    return 0 if other_clash else anything


@inlined
def _is_among(identifier: int, few: Ids) -> bool:
    i = 0
    while i < len(few) and few[i] != identifier:
        i += 1
    return i < len(few)


class QuadBlock(NamedTuple):
    """Quads as ids, as ``scan`` writes them: the first ``size`` columns of ``rows``; a term table's arrays.

    Quads with a negative subject are skipped. ``predicate`` gives times; 0 if no time is asked for.
    """

    terms: Ids
    arena: Bytes
    rows: Ids
    size: int
    predicate: int


class EventRoom(NamedTuple):
    """Room for the events of a block: their triples, one row each, and columns of the events.

    Each event has its graph, the id, status and value of its time, and where its rows end. ``scratch``
    is a hash table.
    """

    s: Ids
    p: Ids
    o: Ids
    graph: Ids
    time_id: Ids
    status: Ids
    time: Ids
    end: Ids
    scratch: Ids


def event_room(quads: int) -> EventRoom:
    """Return room for the events of so many quads."""
    s, p, o, graph, time_id, status, time, end = np.empty((8, quads), dtype=np.int64)
    scratch = np.empty(4 * quads + 4, dtype=np.int64)
    return EventRoom(s, p, o, graph, time_id, status, time, end, scratch)


@part
def _end_event(
    block: QuadBlock, to: EventRoom, number: int, start: int, row: int, graph: int, time: int
) -> int:
    """Write the rows of an event, from ``start`` on, each once; return where the rows end."""
    row = _distinct(to.s, to.p, to.o, start, row, to.scratch)
    to.graph[number], to.time_id[number], to.end[number] = graph, time, row
    if time != 0:
        to.status[number], to.time[number] = read_time(block.terms, block.arena, time)
    return row


@kernel
def graphs(block: QuadBlock, barred: Ids, delivered: Ids, most: int, to: EventRoom) -> tuple[int, int, int]:
    """Assemble whole graphs; return (number of events or ``IRREGULAR``, first line, line after the last).

    Times are in the default graph, or inside the event. A graph that is ``barred``, or was ``delivered``,
    must not begin. Lines before the first graph that may begin are skipped. The last graph is not complete.
    No event has more than ``most`` rows.
    """
    terms, predicate, to_s, to_p, to_o = block.terms, block.predicate, to.s, to.p, to.o
    s, p, o, g = block.rows[0], block.rows[1], block.rows[2], block.rows[3]
    found = row = start = first = begin = 0
    graph = time = coming = coming_time = coming_line = 0
    started, regular = False, True
    for k in range(block.size):
        if s[k] < 0 or (g[k] == 0 and p[k] != predicate):
            continue
        about = s[k] if g[k] == 0 else g[k]
        if g[k] == 0 and started and about == graph:
            regular = coming == 0 and (time == 0 or time == o[k])
            time = o[k]
        elif g[k] == 0 and started and coming != 0:
            regular = about == coming and o[k] == coming_time
        elif g[k] == 0 or not started or about != graph:
            can = terms[about, KIND] == IRI and delivered[about] == 0 and not _is_among(about, barred)
            if not can and not started:
                continue
            if not started:
                started = True
                first = k
            if g[k] == 0:
                regular = can
                if can:
                    coming, coming_time, coming_line = about, o[k], k
            else:
                regular = can and (coming == 0 or coming == about)
                if graph != 0:
                    if time == 0 and predicate != 0:
                        time = _inside(to_s, to_p, to_o, start, row, predicate, graph)
                    regular = regular and (time != 0 or predicate == 0) and row - start <= most
                    start = row = _end_event(block, to, found, start, row, graph, time)
                    delivered[graph] = 1  # for now, so that it cannot begin again
                    found += 1
                begin = k if coming == 0 else coming_line
                graph, time, coming = about, coming_time if coming != 0 else 0, 0
        elif coming != 0:
            regular = False
        if g[k] != 0:
            to_s[row], to_p[row], to_o[row] = s[k], p[k], o[k]
            row += 1
        if not regular:
            break
    for k in range(found):
        delivered[to.graph[k]] = 0
    return (found, first, begin) if regular else (IRREGULAR, 0, 0)


@kernel
def groups(block: QuadBlock, lead: int, size: int, to: EventRoom) -> tuple[int, int, int]:
    """Assemble events of ``size`` triples, after ``lead`` triples that are skipped; the result is that of
    ``graphs``.

    The time is always inside the event.
    """
    s, p, o = block.rows[0], block.rows[1], block.rows[2]
    found = row = start = seen = 0
    first = begin = block.size
    for k in range(block.size):
        if s[k] < 0:
            continue
        seen += 1
        if seen <= lead:
            continue
        if (seen - lead - 1) % size == 0:
            begin = k
            if seen - lead == 1:
                first = k
        to.s[row], to.p[row], to.o[row] = s[k], p[k], o[k]
        row += 1
        if (seen - lead) % size == 0:
            time = 0
            if block.predicate != 0:
                time = _inside(to.s, to.p, to.o, start, row, block.predicate, 0)
                if time == 0:
                    return IRREGULAR, 0, 0
            start = row = _end_event(block, to, found, start, row, 0, time)
            found += 1
            begin = block.size
    return found, first, begin
