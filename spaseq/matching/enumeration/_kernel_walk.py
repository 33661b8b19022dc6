"""CORE's enumeration on arrays: matches as paths of the tECS, with a delay of their own size."""

from __future__ import annotations

from spaseq._jit import kernel
from spaseq.matching.enumeration._kernel_layout import (
    DEEPER,
    DONE,
    FIRST_NODE,
    FULL,
    LABEL,
    LEFT,
    MASK,
    OTHER,
    TOP,
    UNION,
    W_COUNT,
    W_ROOT,
    W_STACK,
    W_USED,
    Ints,
)


@kernel
def enumerate_matches(
    c: Ints, nodes: Ints, found: Ints, last: int, w: Ints, stack: Ints, path: Ints, out: Ints, ends: Ints,
    roots: Ints,
) -> int:  # fmt: skip
    """Writes matches of what was found, up to number ``last``: event positions and labels, in pairs.

    Goes on where the last call stopped. ``ends[i]`` is where match i ends in ``out``, ``roots[i]`` the number
    of what was found that it belongs to.
    """
    mask = c[MASK]
    w[W_COUNT] = 0
    w[W_USED] = 0
    while True:
        if w[W_STACK] == 0:
            if w[W_ROOT] == last:
                return DONE
            stack[0, 0] = found[w[W_ROOT], 0]
            stack[0, 1] = 0
            w[W_STACK] = 1
        least = found[w[W_ROOT], 1]
        while w[W_STACK] > 0:
            if w[W_COUNT] == len(ends):
                return FULL
            top = w[W_STACK] - 1
            number = stack[top, 0]
            depth = stack[top, 1]
            # Room for one more of each before anything is taken from the stack.
            if depth + 2 > len(path) or top + 2 > len(stack):
                return DEEPER
            if w[W_USED] + 2 * depth + 2 > len(out):
                return FULL
            if number == 0:
                used = w[W_USED]
                for i in range(depth - 1, -1, -1):
                    out[used] = path[i, 0]
                    out[used + 1] = path[i, 1]
                    used += 2
                w[W_USED] = used
                ends[w[W_COUNT]] = used
                roots[w[W_COUNT]] = w[W_ROOT]
                w[W_COUNT] += 1
                w[W_STACK] = top
                continue
            at = number & mask
            label = nodes[at, LABEL]
            if label == UNION:
                right = nodes[at, OTHER]
                if right >= c[FIRST_NODE] and nodes[right & mask, TOP] >= least:
                    stack[top, 0] = right
                    top += 1
                stack[top, 0] = nodes[at, LEFT]
                stack[top, 1] = depth
                w[W_STACK] = top + 1
            else:
                path[depth, 0] = nodes[at, OTHER]
                path[depth, 1] = label
                stack[top, 0] = nodes[at, LEFT]
                stack[top, 1] = depth + 1
        w[W_ROOT] += 1
