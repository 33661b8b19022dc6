"""Matches that are events with one solution each: as columns, and one of them as an object."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod

import numpy as np
import numpy.typing as npt

from spaseq.events import Clock, EventBatch
from spaseq.matching.columns.blocks import _kernel_found as k
from spaseq.matching.columns.blocks.found import Block, Chosen, Events, Named, Objects, Solved, shown
from spaseq.matching.columns.blocks.values import Ids, Picked, all_ids, counted, zeros
from spaseq.matching.columns.chunk import SolvedBatch, Stretch
from spaseq.matching.host import Key
from spaseq.matching.model import Choice, Found, Occurrence, Row

# A match of a block of columns, as an object: its fields are made from the columns when they are read.

_Binding = dict[str, int]


class One(Found):
    """A match of a block of columns: the events from ``begin`` to ``end``."""

    __slots__ = ("_begin", "_block", "_end")
    _block: Columns
    _begin: int
    _end: int

    def __init__(self, block: Columns, begin: int, end: int) -> None:
        put = object.__setattr__
        put(self, "_block", block)
        put(self, "_begin", begin)
        put(self, "_end", end)

    @property
    def events(self) -> tuple[Choice, ...]:
        choices = []
        for chunk, index, site, row in self._steps():
            seen = {site.gpm: (chunk.row(site.number, row),)}
            position = chunk.start + index
            event = Occurrence(chunk.batch.stamp(index), position, seen, chunk.batch, index, chunk)
            choices.append((site.gpm, event))
        return tuple(choices)

    @property
    def rows(self) -> tuple[Row, ...]:
        shared, kleenes = self._solutions(None)
        completed = {kleene: tuple((s,) for s in iterations) for kleene, iterations in kleenes.items()}
        return tuple(Row(binding, completed) for binding in combined(shared, kleenes))

    def project(self, names: Sequence[str]) -> list[dict[str, int]]:
        found = combined(*self._solutions(names))
        return [{name: row[name] for name in names if name in row} for row in found]

    @property
    def size(self) -> int:
        counts: dict[int, int] = {}
        for _, _, site, _ in self._steps():
            if site.begins and site.kleene is not None:
                counts[site.kleene] = counts.get(site.kleene, 0) + 1
        return prod(counts.values())

    @property
    def path(self) -> tuple[tuple[int, str], ...]:
        # The events of an & are in any order.
        return tuple(sorted((chunk.start + index, site.gpm) for chunk, index, site, _ in self._steps()))

    @property
    def span(self) -> tuple[int, int]:
        times = [chunk.batch.time.item(index) for chunk, index, _, _ in self._steps()]
        return times[0], times[-1]

    @property
    def places(self) -> Iterator[tuple[str, EventBatch, int]]:
        for chunk, index, site, _ in self._steps():
            yield site.gpm, chunk.batch, index

    def _steps(self) -> Iterator[tuple[SolvedBatch, int, EventSite, int]]:
        sites, which, indices, rows = self._block._listed
        chunks = self._block.stretch.chunks
        for i in range(self._begin, self._end):
            yield chunks[which[i]], indices[i], sites[i], rows[i]

    def _solutions(self, names: Sequence[str] | None) -> tuple[_Binding, dict[int, list[_Binding]]]:
        """Return the variables bound outside of Kleenes, and those of each iteration; only ``names``, if
        given.
        """
        shared: _Binding = {}
        kleenes: dict[int, list[_Binding]] = {}
        for chunk, _, site, row in self._steps():
            own, columns = shared, chunk.solutions[site.number].columns
            if site.kleene is not None:
                iterations = kleenes.setdefault(site.kleene, [])
                if site.begins:
                    iterations.append({})
                own = iterations[-1]
            for name in columns if names is None else names:
                if name in columns and (term := columns[name].item(row)):
                    (own if name in site.own else shared)[name] = term
        return shared, kleenes


def combined(shared: _Binding, kleenes: dict[int, list[_Binding]]) -> Iterator[_Binding]:
    """Yield the solutions of a match: one for each choice of an iteration of every Kleene."""
    for chosen in product(*kleenes.values()):
        solution = dict(shared)
        for iteration in chosen:
            solution.update(iteration)
        yield solution


# Matches that are events with one solution each, side by side, as columns.

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class EventSite:
    """A position in the sequence at which events are taken: its GPM, and its Kleene, if it is in one.

    ``begins``: its event is the first of an iteration. ``own``: the Kleene's variables.
    """

    number: int
    gpm: str
    kleene: int | None = None
    begins: bool = False
    own: frozenset[str] = frozenset()


class Sites:
    """A query's sites, by number; ``gpms`` are its GPMs, in the numbering that the sites use."""

    def __init__(self, sites: Sequence[EventSite], gpms: Sequence[str]) -> None:
        self.all = tuple(sites)
        self.gpms = tuple(gpms)
        self.numbers = np.array([site.number for site in sites], dtype=np.int64)
        self.kleenes = tuple(dict.fromkeys(site.kleene for site in sites if site.kleene is not None))
        order = {kleene: i for i, kleene in enumerate(self.kleenes)}
        self.kleene = np.array([-1 if s.kleene is None else order[s.kleene] for s in sites], dtype=np.int64)
        self.begins = np.array([site.begins for site in sites], dtype=np.bool_)
        places = {gpm: i for i, gpm in enumerate(sorted({site.gpm for site in sites}))}
        self.ranks = np.array([places[site.gpm] for site in sites], dtype=np.int64)

    def paths(self, positions: Ints, sites: Ints) -> Ints:
        """Return a number for each event of a path that compares as its position and the name of its GPM."""
        return np.asarray(positions * len(self.all) + self.ranks[sites])


class Columns(Block):
    """Matches of events with one solution each; Ω is these solutions side by side.

    Match i has the events from ``offsets[i]`` to ``offsets[i + 1]``. ``places`` are their places in the
    stretch, ``site`` the sites where they were taken, and ``rows`` the numbers of their solutions in the
    stretch, for events with several.
    """

    is_of_columns = True

    def __init__(
        self, sites: Sites, stretch: Stretch, keys: Ints, offsets: Ints, places: Ints, site: Ints,
        rows: Ints | None = None,
    ) -> None:  # fmt: skip
        self.sites = sites
        self.stretch = stretch
        self._keys = keys
        self.offsets = offsets
        self.places = places
        self.site = site
        self.rows = rows
        self._size = len(offsets) - 1

    @classmethod
    def alike(
        cls, sites: Sites, stretch: Stretch, keys: Ints, places: Ints, form: tuple[int, ...],
        rows: Ints | None = None,
    ) -> Columns:  # fmt: skip
        """Return matches, at least one, with events that were all taken at the sites of ``form``, in turn.

        So the sites of the single events need not be kept.
        """
        made = cls.__new__(cls)
        made.sites, made.stretch, made._keys, made.places, made.rows = sites, stretch, keys, places, rows
        made.form = form
        made._size = len(places) // len(form)
        return made

    @cached_property
    def offsets(self) -> Ints:
        """Where the events of each match begin, and the last ones end."""
        assert self.form is not None
        return np.arange(0, len(self.places) + 1, len(self.form))

    @cached_property
    def site(self) -> Ints:
        """The site of each event."""
        assert self.form is not None
        return np.tile(np.array(self.form, dtype=np.int64), self._size)

    @property
    def keys(self) -> Ints:
        return self._keys

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, i: int) -> Found:
        begin, end = self._bounds[i : i + 2]
        return One(self, begin, end)

    def key(self, i: int) -> Key:
        return self._listed_keys[i]

    def part(self, begin: int, end: int) -> Columns:
        first, last = int(self.offsets[begin]), int(self.offsets[end])
        rows = None if self.rows is None else self.rows[first:last]
        places, keys = self.places[first:last], self.keys[begin:end]
        if self.form is not None and begin < end:
            return Columns.alike(self.sites, self.stretch, keys, places, self.form, rows)
        offsets, site = self.offsets[begin : end + 1] - first, self.site[first:last]
        return Columns(self.sites, self.stretch, keys, offsets, places, site, rows)

    def elsewhere(self, stretch: Stretch, places: Ints, rows: Ints | None) -> Columns:
        """Return the same matches on another stretch that also has their events, with their places and rows
        there.
        """
        keys = self.keys.copy()
        if self.form is not None:
            return Columns.alike(self.sites, stretch, keys, places, self.form, rows)
        return Columns(self.sites, stretch, keys, self.offsets.copy(), places, self.site.copy(), rows)

    def take(self, numbers: Ints) -> Columns:
        """Return some matches, in this order."""
        form = self.form
        if form and len(numbers):
            some = self.places.reshape(-1, len(form))[numbers].ravel()
            of_some = None if self.rows is None else self.rows.reshape(-1, len(form))[numbers].ravel()
            return Columns.alike(self.sites, self.stretch, self.keys[numbers], some, form, of_some)
        sizes = np.diff(self.offsets)[numbers]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        events = np.repeat(self.offsets[:-1][numbers] - offsets[:-1], sizes) + np.arange(offsets[-1])
        rows = None if self.rows is None else self.rows[events]
        places, site = self.places[events], self.site[events]
        return Columns(self.sites, self.stretch, self.keys[numbers], offsets, places, site, rows)

    def spans(self) -> tuple[Ints, Ints]:
        times = self.stretch.events("time")
        return times[self.places[self.offsets[:-1]]], times[self.places[self.offsets[1:] - 1]]

    def chosen(self) -> Chosen:
        stretch = self.stretch
        which = stretch.where(self.places)
        return Chosen(
            self.offsets,
            self.sites.gpms,
            self.sites.numbers[self.site],
            [chunk.batch for chunk in stretch.chunks],
            which,
            self.places - stretch.begins[which],
        )

    def events(self, gpms: Sequence[str], clock: Clock, names: Named) -> dict[str, Events]:
        stretch = self.stretch
        streams, codes = stretch.streams()
        named = names(streams)
        time, n = stretch.events("time"), stretch.events("n")
        form, found = self.form, {}
        if form is not None:
            times, numbers = np.empty((2, len(form), len(self)), dtype=np.int64)
            if stretch.is_counted:
                k.gather_in_turn(time, n.item(0), self.places, len(form), times, numbers)
            else:
                k.gather_all(time, n, self.places, len(form), times, numbers)
        of_one = zeros(len(self))
        for gpm in gpms:
            of_gpm = [site.gpm == gpm for site in self.sites.all]
            if form is not None and sum(of_gpm[site] for site in form) == 1:
                place = [of_gpm[site] for site in form].index(True)
                several = len(streams) > 1
                of_stream = codes[self.places[place :: len(form)]] if several else of_one
                found[gpm] = Events(
                    self.one_each, of_stream, shown(times[place], clock), numbers[place], named
                )
                continue
            offsets, places = np.zeros(len(self) + 1, dtype=np.int64), np.empty_like(self.places)
            wanted = np.array(of_gpm, dtype=np.bool_)
            count = k.pick(self.offsets, self.places, self.site, wanted, offsets[1:], places)
            places = places[:count]
            found[gpm] = Events(offsets, codes[places], shown(time[places], clock), n[places], named)
        return found

    @cached_property
    def one_each(self) -> Ints:
        """Offsets if each match has one."""
        return counted(len(self) + 1)

    def sizes(self) -> Ints:
        sizes = np.ones(len(self), dtype=np.int64)
        for number in range(len(self.sites.kleenes)):
            sizes *= np.maximum(self._iterations(number), 1)
        return sizes

    def solution_count(self) -> int:
        return super().solution_count() if self.sites.kleenes else len(self)

    def solved(self, names: Sequence[str]) -> Solved:
        kleenes = [i for i in range(len(self.sites.kleenes)) if self._iterations(i).any()]
        if len(kleenes) > 1 and not self._are_in_order(kleenes):
            return Objects(list(self), self.keys.shape[1]).solved(names)
        if not kleenes:
            return Solved(self.one_each, {name: self._shared(name) for name in names})
        sizes = self.sizes()
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        match = np.repeat(np.arange(len(self)), sizes)
        number = np.arange(offsets[-1]) - offsets[:-1][match]
        columns = {name: all_ids(self._shared(name))[match] for name in names}
        # The iterations of the last Kleene vary fastest.
        for kleene in reversed(kleenes):
            count = np.maximum(self._iterations(kleene), 1)[match]
            iteration = number % count
            number //= count
            for name in names:
                values = self._of_iterations(kleene, name)
                if values is not None:
                    at = self._first_iterations(kleene)[match] + iteration
                    entered = self._iterations(kleene)[match] > 0
                    columns[name] = np.where(entered, values[np.where(entered, at, 0)], columns[name])
        return Solved(offsets, {**columns})

    # --- columns of Ω -------------------------------------------------------------------------

    @cached_property
    def form(self) -> tuple[int, ...] | None:
        """The sites of a match's events, if they are the same in all matches."""
        if not len(self) or len(self.site) % len(self):
            return None
        size = len(self.site) // len(self)
        return tuple(self.site[:size].tolist()) if k.are_alike(self.offsets, self.site, size) else None

    def _values(self, site: int, name: str, events: slice | Ints) -> Ints | None:
        """Return a variable in the solutions of some events that were taken at one site."""
        g = self.sites.all[site].number
        column = self.stretch.column(g, name)
        if column is None:
            return None
        if self.rows is not None:
            return column[self.rows[events]]
        if self.stretch.is_single(g):
            return column[self.places[events]]
        return column[self.stretch.rows_at(g, self.places[events])]

    def _picked(self, place: int, name: str) -> Picked | None:
        """Return a variable in the solutions of the events at a place of the form."""
        assert self.form is not None
        g = self.sites.all[self.form[place]].number
        step, stretch = len(self.form), self.stretch
        values: Ids | None = stretch.column(g, name)
        at = self.rows
        if values is None:
            return None
        if at is None and (stretch.is_single(g) or stretch.is_worth_all(g, len(self))):
            values, at = stretch.of_events(g, name), self.places
            assert values is not None
        elif at is None:
            at, place, step = self._first_rows(place), 0, 1
        return Picked(values, at, place, step, len(self))

    def _first_rows(self, place: int) -> Ints:
        """Return the first solution of the events at a place of the form."""
        assert self.form is not None
        if place not in self._rows_of:
            g = self.sites.all[self.form[place]].number
            self._rows_of[place] = self.stretch.rows_at(g, self.places[place :: len(self.form)])
        return self._rows_of[place]

    @cached_property
    def _rows_of(self) -> dict[int, Ints]:
        """The results of ``_first_rows``, by place."""
        return {}

    def _shared(self, name: str) -> Ints | Picked:
        """Return a variable's value in each match, outside of Kleenes that bind it anew."""
        form = self.form
        found: Ints | Picked | None = None
        if form is not None:
            for place, site in enumerate(form):
                if name in self.sites.all[site].own:
                    continue
                picked = self._picked(place, name)
                if picked is not None:
                    found = (
                        picked
                        if found is None
                        else np.where(all_ids(found) == 0, picked.ids(), all_ids(found))
                    )
                    if self.stretch.is_bound(self.sites.all[site].number, name):
                        break
            return np.zeros(len(self), dtype=np.int64) if found is None else found
        out = np.zeros(len(self), dtype=np.int64)
        for site, described in enumerate(self.sites.all):
            if name not in described.own:
                events = np.flatnonzero(self.site == site)
                values = self._values(site, name, events) if len(events) else None
                if values is not None:
                    bound = values != 0
                    out[self._match[events[bound]]] = values[bound]
        return out

    @cached_property
    def _match(self) -> Ints:
        """The number of each event's match."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    @cached_property
    def _begun(self) -> list[Ints]:
        """For each Kleene, the number of iterations that began before each event, and the total."""
        found = []
        for number in range(len(self.sites.kleenes)):
            begins = self.sites.begins & (self.sites.kleene == number)
            found.append(np.concatenate([[0], np.cumsum(begins[self.site])]))
        return found

    def _iterations(self, kleene: int) -> Ints:
        """Return how many iterations of a Kleene each match has."""
        begun = self._begun[kleene]
        return np.asarray(begun[self.offsets[1:]] - begun[self.offsets[:-1]])

    def _first_iterations(self, kleene: int) -> Ints:
        """Return the number of each match's first iteration among those of all matches."""
        return self._begun[kleene][self.offsets[:-1]]

    def _of_iterations(self, kleene: int, name: str) -> Ints | None:
        """Return a Kleene's variable in each of its iterations, one match after the other."""
        begun = self._begun[kleene]
        found: Ints | None = None
        for site, described in enumerate(self.sites.all):
            if described.kleene != self.sites.kleenes[kleene] or name not in described.own:
                continue
            events = np.flatnonzero(self.site == site)
            values = self._values(site, name, events) if len(events) else None
            if values is not None:
                found = np.zeros(int(begun[-1]), dtype=np.int64) if found is None else found
                bound = values != 0
                found[begun[1:][events[bound]] - 1] = values[bound]
        return found

    def _are_in_order(self, kleenes: Sequence[int]) -> bool:
        """Return whether Kleenes begin in the order of their numbers in each match that has several."""
        before = np.full(len(self), -1, dtype=np.int64)
        for kleene in kleenes:
            begun = self._begun[kleene]
            first = np.searchsorted(begun, self._first_iterations(kleene), side="right") - 1
            entered = self._iterations(kleene) > 0
            if (first[entered] < before[entered]).any():
                return False
            before[entered] = first[entered]
        return True

    # --- one by one ---------------------------------------------------------------------------

    @cached_property
    def _bounds(self) -> list[int]:
        bounds: list[int] = self.offsets.tolist()
        return bounds

    @cached_property
    def _listed_keys(self) -> list[Key]:
        return list(map(tuple, self._keys.tolist()))

    @cached_property
    def _listed(self) -> tuple[list[EventSite], list[int], list[int], list[int]]:
        """For each event its site, its batch in the stretch, its number in the batch, and its solution's
        number.
        """
        stretch = self.stretch
        which = stretch.where(self.places)
        sites = [self.sites.all[site] for site in self.site.tolist()]
        rows = self.rows
        if rows is None:
            rows = np.zeros(len(self.site), dtype=np.int64)
            for g in set(self.sites.numbers.tolist()):
                events = np.flatnonzero(self.sites.numbers[self.site] == g)
                if len(events):
                    rows[events] = stretch.rows_at(g, self.places[events])
        before = np.zeros((len(self.sites.gpms), len(stretch.chunks) + 1), dtype=np.int64)
        for g in set(self.sites.numbers.tolist()):
            before[g] = stretch.rows_before(g)
        rows = rows - before[self.sites.numbers[self.site], which]
        return sites, which.tolist(), (self.places - stretch.begins[which]).tolist(), rows.tolist()
