"""Whether a file is whole, and its arrays what they should be: all of them, not only those asked for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from spaseq.errors import KnowledgeError
from spaseq.paths.graph.saved.contents import Mapped
from spaseq.paths.graph.saved.file import Array, KeptFile


def check(file: KeptFile) -> None:
    """KnowledgeError for the first thing that is wrong."""
    for name in file.names():
        file.array(name)
    for what in _wrong(Mapped(file), file):
        raise KnowledgeError(f"{file.name}: the file is damaged: {what}: build it anew (spaseq graph build)")


def _wrong(graph: Mapped, file: KeptFile) -> Iterator[str]:
    from spaseq.terms._table_kernel import LENGTH, NEXT, PADDING, START

    nodes, predicates, edges = graph.nodes, graph.predicates, graph.size
    terms, arena, slots = (file.array(f"table.{name}") for name in ("terms", "arena", "slots"))
    limit = int(file.array("table.counts")[NEXT])
    shapes = {
        "table.terms": (limit, 4), "node_ids": (nodes,), "node_of": (limit,), "predicate_ids": (predicates,),
        "predicate_of": (limit,), "edges.s": (edges,), "edges.p": (edges,), "edges.o": (edges,),
        "edges.begins": (predicates + 1,), "heads": (edges,), "targets": (2 * edges,),
    }  # fmt: skip
    for name, shape in shapes.items():
        if file.array(name).shape != shape:
            yield f"its block {name} is of shape {file.array(name).shape} and not {shape}"
    bounds = {
        "node_ids": limit, "predicate_ids": limit, "node_of": nodes, "predicate_of": predicates,
        "edges.s": nodes, "edges.p": predicates, "edges.o": nodes, "edges.begins": edges + 1,
        "names.nodes.numbers": nodes, "names.predicates.numbers": predicates,
        "heads": nodes, "targets": nodes, "table.slots": limit,
    }  # fmt: skip
    for name, bound in bounds.items():
        if not _within(file.array(name), -1 if name.endswith("_of") else 0, bound):
            yield f"a number in its block {name} is out of bounds"
    if len(slots) & (len(slots) - 1):
        yield "its table of terms has a length that is no power of 2"
    ends = terms[:, START] + terms[:, LENGTH]
    if not (_within(terms[:, :2], 0, len(arena)) and _within(ends, 0, len(arena) - PADDING + 1)):
        yield "a term is out of bounds"
    if (np.diff(file.array("edges.begins")) < 0).any():
        yield "its edges are not in order"


def _within(array: Array, low: int, high: int) -> bool:
    return not array.size or bool(low <= array.min() and array.max() < high)
