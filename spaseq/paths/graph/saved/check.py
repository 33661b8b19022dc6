"""Checks of the arrays of a file: their types, their shapes, and the bounds of their numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from spaseq.errors import KnowledgeError
from spaseq.paths.graph.saved.file import Array, KeptFile

#: The types of the blocks that compiled code reads.
_TYPES: Final = {
    "table.slots": "<u4", "table.terms": "<i8", "table.arena": "|u1", "table.counts": "<i8",
    "node_ids": "<i8", "node_of": "<i4", "predicate_ids": "<i8", "predicate_of": "<i4",
    "edges.s": "<i4", "edges.p": "<i4", "edges.o": "<i4", "edges.begins": "<i8",
    "heads": "<i4", "targets": "<i4",
}  # fmt: skip


def check(file: KeptFile) -> None:
    """Check all blocks of a file, and that none is missing. Raises KnowledgeError."""
    for name in {**_TYPES, **dict.fromkeys(file.names())}:
        block(file, name)


def block(file: KeptFile, name: str) -> Array:
    """Return an array of a file. Raises KnowledgeError if it is damaged, or has a number out of bounds.

    The array is checked only once, because a graph that is changed later writes to its own copy of pages.
    """
    array = file.array(name)
    if name not in file.verified:
        for what in _wrong(file, name, array):
            raise KnowledgeError(
                f"{file.name}: the file is damaged: {what}: build it anew (spaseq graph build)"
            )
        file.verified.add(name)
    return array


def blocks(file: KeptFile, prefix: str) -> dict[str, Array]:
    """Return the arrays of a file with names that begin with a prefix; keys are the rest of the names."""
    return {name.removeprefix(prefix): block(file, name) for name in file.names() if name.startswith(prefix)}


def _wrong(file: KeptFile, name: str, array: Array) -> Iterator[str]:
    """Yield what is wrong with a block. A later check relies on the earlier ones having found nothing."""
    # Here, because compiled code takes a while to load.
    from spaseq.terms._table_kernel import NEXT

    nodes, predicates, edges = (file.facts[each] for each in ("nodes", "predicates", "edges"))
    if name == "table.counts":
        file.limit = int(array[NEXT]) if array.size > NEXT else 0
    else:
        block(file, "table.counts")
    limit = file.limit
    shapes = {
        "table.terms": (limit, 4), "table.counts": (9,), "node_ids": (nodes,), "node_of": (limit,),
        "predicate_ids": (predicates,), "predicate_of": (limit,), "edges.s": (edges,), "edges.p": (edges,),
        "edges.o": (edges,), "edges.begins": (predicates + 1,), "heads": (edges,), "targets": (2 * edges,),
    }  # fmt: skip
    if (shape := shapes.get(name, array.shape)) != array.shape:
        yield f"its block {name} is of shape {array.shape} and not {shape}"
    if (kind := _TYPES.get(name, array.dtype.str)) != array.dtype.str:
        yield f"its block {name} is of type {array.dtype.str} and not {kind}"
    bounds = {
        "node_ids": limit, "predicate_ids": limit, "node_of": nodes, "predicate_of": predicates,
        "edges.s": nodes, "edges.p": predicates, "edges.o": nodes, "edges.begins": edges + 1,
        "names.nodes.numbers": nodes, "names.predicates.numbers": predicates,
        "heads": nodes, "targets": nodes, "table.slots": limit,
    }  # fmt: skip
    if name in bounds and not _within(array, -1 if name.endswith("_of") else 0, bounds[name]):
        yield f"a number in its block {name} is out of bounds"
    if name == "table.slots" and (len(array) & (len(array) - 1) or array.all()):
        yield "its table of terms has a length that is no power of 2, or no free place"
    if name == "table.counts" and not _can_be(array, len(file.array("table.arena"))):
        yield f"a number in its block {name} is out of bounds"
    if name == "table.terms" and not _are_terms(array, limit, len(file.array("table.arena"))):
        yield "a term is out of bounds"
    if name == "edges.begins" and ((np.diff(array) < 0).any() or array[0] != 0 or array[-1] != edges):
        yield "its edges are not in order"


def _can_be(counts: Array, size: int) -> bool:
    """Return whether these can be the counts of a table with ``size`` bytes of terms."""
    from spaseq.terms import _table_kernel as at

    limit, used = int(counts[at.NEXT]), int(counts[at.USED])
    parts = ((at.TYPE, at.TYPE_LENGTH), (at.NAMESPACE, at.NAMESPACE_LENGTH))
    return (
        0 < limit < 2**32
        and 0 <= counts[at.LIVE] < limit
        and 0 <= counts[at.FREE] < limit
        and 0 <= used <= size - at.PADDING
        and all(0 <= counts[i] <= used and 0 <= counts[j] <= used - counts[i] for i, j in parts)
    )


def _are_terms(terms: Array, limit: int, size: int) -> bool:
    """Return whether terms are within ``size`` bytes, and forgotten terms are linked to each other."""
    from spaseq.terms._table_kernel import FRESH, KIND, LENGTH, NOTHING, PADDING, START

    forgotten = terms[:, KIND] == NOTHING
    starts, lengths = terms[:, START], np.where(forgotten, 0, terms[:, LENGTH])
    most = size - PADDING
    return (
        _within(terms[:, KIND], NOTHING, FRESH)
        and _within(starts[forgotten], 0, limit)
        and _within(starts[~forgotten], 0, most + 1)
        and _within(lengths, 0, most + 1)
        and _within((starts + lengths)[~forgotten], 0, most + 1)
    )


def _within(array: Array, low: int, high: int) -> bool:
    return not array.size or bool(low <= array.min() and array.max() < high)
