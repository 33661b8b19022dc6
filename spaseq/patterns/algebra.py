"""SPARQL's algebra on a few solutions: lists of dicts from a variable's name to a term's id.

A variable that a solution does not bind is not in its dict.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush

from spaseq.limits import Spending

Row = dict[str, int]
Rows = list[Row]
Pair = tuple[int, int]

#: Joins of at least this many pairs of rows use an index.
MANY = 64


def extend(
    rows: Rows,
    pairs: Sequence[Pair],
    subject: tuple[str, int | None],
    object_: tuple[str, int | None],
    spending: Spending,
) -> Rows:
    """Return the rows joined with a view. Each place is a variable's name or a constant.

    ``spending`` is called with the number of rows as soon as there are too many, here and below.
    """
    (s_name, s_constant), (o_name, o_constant) = subject, object_
    same = s_constant is None and s_name == o_name
    index = None
    if len(rows) * len(pairs) > MANY and s_constant is None and all(s_name in row for row in rows):
        index = by_first(pairs)
    out: Rows = []
    most = spending.most
    for row in rows:
        if len(out) > most:
            break
        s = row.get(s_name) if s_constant is None else s_constant
        o = row.get(o_name) if o_constant is None else o_constant
        for first, second in pairs if index is None or s is None else index.get(s, ()):
            if (
                (s is not None and s != first)
                or (o is not None and o != second)
                or (same and first != second)
            ):
                continue
            found = row.copy()
            if s is None:
                found[s_name] = first
            if o is None:
                found[o_name] = second
            out.append(found)
    return few(out, spending)


def few(rows: Rows, spending: Spending) -> Rows:
    """Return the rows, if they are not too many."""
    if len(rows) > MANY or len(rows) > spending.most:
        spending.rows(len(rows), len(rows[0]))
    return rows


def by_first(pairs: Iterable[Pair]) -> dict[int, list[Pair]]:
    """Return a view's pairs by their first term."""
    found: dict[int, list[Pair]] = {}
    for pair in pairs:
        found.setdefault(pair[0], []).append(pair)
    return found


def merge(left: Row, right: Row) -> Row | None:
    """Return the union of two solutions, or None if they disagree."""
    for name, value in right.items():
        if left.get(name, value) != value:
            return None
    return {**left, **right}


def join(left: Rows, right: Rows, spending: Spending) -> Rows:
    """Return the unions of all solutions that agree."""
    candidates, most = partners(left, right), spending.most
    out: Rows = []
    for row in left:
        if len(out) > most:
            break
        out += [both for other in candidates(row) if (both := merge(row, other)) is not None]
    return few(out, spending)


def minus(left: Rows, right: Rows) -> Rows:
    """Return the solutions of ``left`` that disagree, or share no variable, with each solution of
    ``right``.
    """

    def removed(row: Row) -> bool:
        return any(
            not row.keys().isdisjoint(other) and all(row.get(n, v) == v for n, v in other.items())
            for other in right
        )

    return [row for row in left if not removed(row)]


def partners(left: Rows, right: Rows) -> Callable[[Row], Rows]:
    """Return, for each row of ``left``, the rows of ``right`` that may be compatible with it."""
    if len(left) * len(right) > MANY:
        keys = sorted(set(left[0]).intersection(*left, *right))
        if keys:
            index: dict[tuple[int, ...], Rows] = {}
            for row in right:
                index.setdefault(tuple(row[key] for key in keys), []).append(row)
            return lambda row: index.get(tuple(row[key] for key in keys), [])
    return lambda _: right


def without(rows: Rows, names: Iterable[str]) -> Rows:
    """Return the solutions without some variables."""
    gone = frozenset(names)
    return [{n: v for n, v in row.items() if n not in gone} for row in rows] if gone else rows


def by_reach(names: Sequence[Collection[str]], known: Iterable[str] = ()) -> Iterator[int]:
    """Yield the positions of sets of names: the next set shares a name with an earlier one, if any does.

    >>> list(by_reach([{"a"}, {"b", "c"}, {"c", "a"}]))
    [0, 2, 1]
    """
    places: dict[str, list[int]] = {}
    for place, own in enumerate(names):
        for name in own:
            places.setdefault(name, []).append(place)
    reached = [place for name in known for place in places.pop(name, ())]
    heapify(reached)
    first, done = 0, [False] * len(names)
    while reached or first < len(names):
        if not reached:
            reached.append(first)
            first += 1
        place = heappop(reached)
        if done[place]:
            continue
        done[place] = True
        yield place
        for name in names[place]:
            for other in places.pop(name, ()):
                heappush(reached, other)
