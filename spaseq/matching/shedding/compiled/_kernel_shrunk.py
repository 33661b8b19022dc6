"""What little was counted of a class, made up for by what was counted of those next to it.

Classes are the leaves of trees, one for each depth of a run; of each node come the events that it lived
through, and how often it went on to each of several *targets*. Most targets are those of other depths, to
which nothing of a tree ever went: these all have the same rate, which is kept once for each leaf.
"""

from __future__ import annotations

from typing import Final

from spaseq._jit import kernel, part
from spaseq.matching.conditions._kernel_values import Floats, Ints, pointer

#: What is not known of a class is as in those next to it, and in its parent: as if it had gone on so often.
PRIOR: Final = 2.0


@part
def _seen(went: Floats, leaves: int, targets: int, columns: Ints) -> int:
    """Lists the targets that something of a tree went to, in order; how many. A single one is always so."""
    count = 0
    for j in range(targets):
        is_seen = targets == 1
        for i in range(leaves):
            if went[i * targets + j] > 0:
                is_seen = True
                break
        if is_seen:
            columns[count] = j
            count += 1
    return count


@part
def _gather(went: Floats, targets: int, below: int, nodes: int, columns: Ints, seen: int, to: Floats) -> None:
    """Adds up what went of each node, which has so many leaves ``below`` it, to the targets seen."""
    for node in range(nodes):
        row = node * seen
        for k in range(seen):
            to[row + k] = 0.0
        for i in range(node * below, (node + 1) * below):
            for k in range(seen):
                to[row + k] += went[i * targets + columns[k]]


@part
def _mix(
    went: Floats, lived: Floats, node: int, first: int, size: int, weights: Floats, seen: int, unseen: int,
    rates: Floats, stride: int, others: Floats, around: Floats,
) -> None:  # fmt: skip
    """A node's rates, once its siblings, the first of which is ``first``, say what they do of it."""
    row = node * stride
    all_rates = unseen * others[node]
    for k in range(seen):
        all_rates += rates[row + k]
        around[k] = 0.0
    lives = 0.0
    for j in range(size):
        weight = weights[(node - first) * size + j]
        if weight > 0:
            lives += weight * lived[first + j]
            other = (first + j) * seen
            for k in range(seen):
                around[k] += weight * went[other + k]
    prior = PRIOR / max(all_rates, 1e-12)
    for k in range(seen):
        rates[row + k] = (around[k] + prior * rates[row + k]) / (lives + prior)
    others[node] = prior * others[node] / (lives + prior)


@kernel
def shrink(
    went_: Floats, lived_: Floats, trees: int, levels: int, size: int, targets: int, usual: float,
    near_: Floats, widths: int, counts_: Floats, events_: Floats, around_: Floats, rates_: Floats,
    others_: Floats, columns_: Ints, seen_: Ints,
) -> None:  # fmt: skip
    """How often in an event a partial match of each class goes on to each target, by what was counted.

    Each of so many trees has so many ``levels`` of nodes with ``size`` children, and a target is listed in
    ``columns`` (as many numbers for each tree as there are targets) where something went; ``seen`` says how
    many are. A leaf's rates to these come into ``rates`` (so many numbers for each leaf), and that to each
    other one into ``others``. ``near``: the weights of siblings, ``widths`` times. ``usual``: the rate of a
    tree of which nothing was seen. ``counts``, ``events`` and ``around`` are scratch space for a tree.
    """
    counts, events, around = pointer(counts_), pointer(events_), pointer(around_)
    leaves = size**levels
    for tree in range(trees):
        went, lived = pointer(went_[tree * leaves * targets :]), pointer(lived_[tree * leaves :])
        rates, others = pointer(rates_[tree * leaves * targets :]), pointer(others_[tree * leaves :])
        columns = pointer(columns_[tree * targets :])
        seen = _seen(went, leaves, targets, columns)
        seen_[tree] = seen
        _gather(went, targets, leaves, 1, columns, seen, counts)
        lives = 0.0
        for i in range(leaves):
            lives += lived[i]
        prior = 1.0 / max(usual, 1e-12)
        others[0] = prior * (usual / targets) / (lives + prior)
        for k in range(seen):
            rates[k] = counts[k] / (lives + prior) + others[0]
        nodes = 1
        for _ in range(levels):
            # Each child begins with its parent's rates: backwards, as these stand where some of them will.
            for child in range(nodes * size - 1, -1, -1):
                others[child] = others[child // size]
                for k in range(seen):
                    rates[child * targets + k] = rates[child // size * targets + k]
            nodes *= size
            below = leaves // nodes
            _gather(went, targets, below, nodes, columns, seen, counts)
            for node in range(nodes):
                events[node] = 0.0
                for i in range(node * below, (node + 1) * below):
                    events[node] += lived[i]
            for width in range(widths):
                weights = pointer(near_[width * size * size :])
                for node in range(nodes):
                    first = node // size * size
                    _mix(
                        counts, events, node, first, size, weights, seen, targets - seen, rates, targets,
                        others, around,
                    )  # fmt: skip
