"""Batches of matches as text, written directly from columns.

``_json`` and ``_delimited`` write the same text from single matches. Here each term and each event is written
once, and a compiled loop concatenates the pieces: no Python per match.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from json.encoder import encode_basestring as quoted
from typing import Any

import numpy as np
import numpy.typing as npt
from pyoxigraph import BlankNode, Literal

from spaseq.language.syntax import Construct, Select
from spaseq.matching.columns.blocks.values import numbered
from spaseq.results.batch import MatchBatch
from spaseq.results.encoded import Bindings
from spaseq.results.writers import _kernel_text as k
from spaseq.results.writers._base import Cache, show_time
from spaseq.terms._table_kernel import PADDING
from spaseq.terms.dictionary import UNBOUND, Term
from spaseq.terms.table import padded
from spaseq.terms.values import STRING_TYPE

Ints = npt.NDArray[np.int64]


class TextPieces:
    """The pieces of a text, as bytes."""

    def __init__(self) -> None:
        self._texts: list[bytes] = []

    def add(self, text: str) -> int:
        """Add a piece; return its number."""
        self._texts.append(text.encode())
        return len(self._texts) - 1

    def extend(self, texts: Iterable[bytes]) -> int:
        """Add pieces; return the number of the first."""
        first = len(self._texts)
        self._texts += texts
        return first

    def numbers(self, *texts: str) -> Ints:
        """Add pieces; return their numbers."""
        return np.array([self.add(text) for text in texts], dtype=np.int64)

    def written(self, pieces: Ints) -> memoryview:
        """Return pieces concatenated, in UTF-8."""
        starts = np.cumsum([0, *map(len, self._texts)])
        size = int(np.diff(starts)[pieces].sum())
        out = np.empty(size + PADDING, dtype=np.uint8)
        k.write(padded(b"".join(self._texts)), starts, pieces, out)
        return out[:size].data


def json_of(term: Term) -> str:
    """Return a term in SPARQL JSON."""
    if not isinstance(term, Literal):
        kind = "bnode" if isinstance(term, BlankNode) else "uri"
        return f'{{"type":"{kind}","value":{quoted(term.value)}}}'
    text = f'{{"type":"literal","value":{quoted(term.value)}'
    if term.language:
        return f'{text},"xml:lang":{quoted(term.language)}}}'
    return text + ("}" if term.datatype == STRING_TYPE else f',"datatype":{quoted(term.datatype.value)}}}')


def json_lines(batch: MatchBatch, terms: Cache) -> memoryview:
    """Return the text of ``NdjsonWriter``."""
    pieces, names, partition = TextPieces(), batch.variables, batch.partition
    is_select = isinstance(batch.query.form, Select)
    rows = batch.bindings if is_select else Bindings(np.zeros(len(batch) + 1, dtype=np.int64), {}, ())
    events, times = _events(batch, pieces)
    head = [_constant(pieces, '{"start":', batch), times(batch.spans[0])]
    head += [_constant(pieces, ',"end":', batch), times(batch.spans[1])]
    opening = ',"partition":{'
    first = pieces.extend(terms.of(partition.terms, json_of))
    for name, numbers in partition.columns.items():
        head += [_constant(pieces, f"{opening}{quoted(name)}:", batch), numbers.astype(np.int64) + first]
        opening = ","
    head.append(_constant(pieces, ("" if partition.columns else opening) + '},"events":{', batch))
    openings = [f"{',' if i else ''}{quoted(name)}:[" for i, name in enumerate(batch.gpms)]
    marks = [",", "]", '},"bindings":[' if is_select else "}", "{", ",{", "}"]
    cells = _cells(rows, pieces, terms, json_of)
    tail = [_constant(pieces, "]}\n" if is_select else "}\n", batch)]
    if isinstance(batch.query.form, Construct):
        first = pieces.extend(_quoted_graph(lines) for lines in batch.graphs.lines())
        tail.insert(0, first + np.arange(len(batch)))
    places = len(events.event) * 2 + cells.shape[0] * (2 + 2 * cells.shape[1])
    laid = np.empty(places + len(batch) * (len(head) + 2 * len(openings) + 1 + len(tail)), dtype=np.int64)
    lines = k.MatchLines(
        np.stack(head, axis=1), events.offsets, events.gpm, events.event, pieces.numbers(*openings),
        rows.offsets, cells, _names(pieces, names if is_select else ()), pieces.numbers(*marks),
        np.stack(tail, axis=1),
    )  # fmt: skip
    return pieces.written(laid[: k.lay_lines(lines, laid)])


def _quoted_graph(lines: Sequence[str]) -> bytes:
    return (',"graph":' + quoted("".join(f"{line} .\n" for line in lines))).encode()


def json_rows(batch: MatchBatch, terms: Cache, before: str, between: str) -> memoryview:
    """Return the rows of matches in SPARQL JSON: the first after ``before``, the others after ``between``."""
    pieces = TextPieces()
    cells = _cells(batch.bindings, pieces, terms, json_of)
    laid = np.empty(cells.shape[0] * (2 + 2 * cells.shape[1]), dtype=np.int64)
    marks = pieces.numbers(before + "{", between + "{", "}")
    count = k.lay_rows(cells, _names(pieces, batch.variables), marks, laid)
    return pieces.written(laid[:count])


def csv_rows(batch: MatchBatch, terms: Cache) -> memoryview:
    """Return the rows of matches as ``CsvWriter`` writes them."""
    # A line with one empty cell must not be an empty line.
    empty = '""' if len(batch.variables) == 1 else ""
    return _delimited(batch, terms, lambda term: _field(term) or empty, empty, ",", "\r\n")


def tsv_rows(batch: MatchBatch, terms: Cache) -> memoryview:
    """Return the rows of matches as ``TsvWriter`` writes them."""
    return _delimited(batch, terms, str, "", "\t", "\n")


def _field(term: Term) -> str:
    text = io.StringIO()
    csv.writer(text).writerow([f"_:{term.value}" if isinstance(term, BlankNode) else term.value, ""])
    return text.getvalue().removesuffix(",\r\n")


def _delimited(
    batch: MatchBatch, terms: Cache, write: Callable[[Term], str], unbound: str, between: str, after: str
) -> memoryview:
    """Return the rows of matches, one per line. ``between`` separates cells, ``after`` ends a row."""
    pieces = TextPieces()
    cells = _cells(batch.bindings, pieces, terms, write)
    laid = np.empty((cells.shape[0], max(2 * cells.shape[1], 1)), dtype=np.int64)
    laid[:, :-1:2] = np.where(cells < 0, pieces.add(unbound), cells)
    laid[:, 1::2] = pieces.add(between)
    laid[:, -1] = pieces.add(after)
    return pieces.written(laid.ravel())


class _Laid:
    """The events of matches as pieces: GPM number ``gpm[i]`` chose the event with the piece ``event[i]``.

    Match m has the events from ``offsets[m]`` to ``offsets[m + 1]``.
    """

    def __init__(self, offsets: Ints, gpm: Ints, event: Ints) -> None:
        self.offsets = offsets
        self.gpm = gpm
        self.event = event


def _events(batch: MatchBatch, pieces: TextPieces) -> tuple[_Laid, Callable[[Ints], Ints]]:
    """Return the chosen events, and a function that makes pieces of the times of some of them."""
    chosen = batch.chosen
    known = {name: i for i, name in enumerate(batch.gpms)}
    gpms = np.array([known.get(name, -1) for name in chosen.names], dtype=np.int64)
    starts = np.cumsum([0, *map(len, chosen.batches)])
    used, (numbers,) = numbered([starts[chosen.which] + chosen.index + 1], int(starts[-1]) + 1)
    used -= 1
    which = np.searchsorted(starts, used, side="right") - 1
    index = used - starts[which]
    columns: list[list[Any]] = []
    for name in ("stream", "graph", "time", "n"):
        column = np.empty(len(used), dtype=np.int64)
        for i in np.unique(which).tolist():
            of_batch = which == i
            column[of_batch] = getattr(chosen.batches[i], name)[index[of_batch]]
        columns.append(column.tolist())
        if name == "time":
            times = np.unique(column)
    term = batch.term

    @cache
    def name_of(identifier: int) -> str:
        if identifier == UNBOUND:
            return "null"
        name = term(identifier)
        return quoted(f"_:{name.value}" if isinstance(name, BlankNode) else name.value)

    @cache
    def time_of(time: int) -> str:
        shown = show_time(batch.clock.show(time))
        return str(shown) if isinstance(shown, int) else f'"{shown}"'

    first = pieces.extend(
        f'{{"stream":{name_of(s)},"graph":{name_of(g)},"time":{time_of(t)},"n":{n}}}'.encode()
        for s, g, t, n in zip(*columns, strict=True)
    )
    first_time = pieces.extend(time_of(t).encode() for t in times.tolist())
    laid = _Laid(chosen.offsets, gpms[chosen.gpm], numbers.astype(np.int64) + first)
    return laid, lambda wanted: np.searchsorted(times, wanted) + first_time


def _constant(pieces: TextPieces, text: str, batch: MatchBatch) -> Ints:
    return np.full(len(batch), pieces.add(text), dtype=np.int64)


def _cells(
    rows: Bindings, pieces: TextPieces, terms: Cache, write: Callable[[Term], str]
) -> npt.NDArray[np.int32]:
    """Return the values of rows as pieces, -1 for none; shape ``(rows, variables)``."""
    first = pieces.extend(terms.of(rows.terms, write))
    cells = np.empty((int(rows.offsets[-1]), len(rows.columns)), dtype=np.int32)
    for i, numbers in enumerate(rows.columns.values()):
        cells[:, i] = np.where(numbers < 0, -1, numbers + first)
    return cells


def _names(pieces: TextPieces, names: Sequence[str]) -> Ints:
    """Return for each name its piece as the first of an object, and its piece as a later one."""
    written = [f"{quoted(name)}:" for name in names]
    return pieces.numbers(*(text for name in written for text in (name, f",{name}")))
