"""CORE's enumeration on arrays: matches as paths of the tECS, with a delay of their own size."""

from __future__ import annotations

from spaseq._jit import kernel
from spaseq.matching.enumeration.compiled._kernel_layout import (
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
    c: Ints, nodes: Ints, found: Ints, last: int, w: Ints, stack: Ints, path: Ints, positions: Ints,
    labels: Ints, ends: Ints, roots: Ints,
) -> int:  # fmt: skip
    """Writes matches of what was found, up to number ``last``: positions and labels of their events.

    Goes on where the last call stopped. ``ends[i]`` is where match i ends among them, ``roots[i]`` the number
    of what was found that it belongs to.
    """
    mask = c[MASK]
    first = c[FIRST_NODE]
    root = w[W_ROOT]
    height = w[W_STACK]
    count = used = 0
    status = -1
    while status < 0:
        if height == 0:
            if root == last:
                status = DONE
                break
            stack[0, 0] = found[root, 0]
            stack[0, 1] = 0
            height = 1
        least = found[root, 1]
        while height > 0:
            top = height - 1
            number = stack[top, 0]
            depth = stack[top, 1]
            # Room for one more of each before anything is taken from the stack.
            if depth + 2 > len(path) or top + 2 > len(stack):
                status = DEEPER
                break
            if count == len(ends) or used + depth + 1 > len(positions):
                status = FULL
                break
            if number == 0:
                for i in range(depth - 1, -1, -1):
                    positions[used] = path[i, 0]
                    labels[used] = path[i, 1]
                    used += 1
                ends[count] = used
                roots[count] = root
                count += 1
                height = top
                continue
            at = number & mask
            label = nodes[at, LABEL]
            if label == UNION:
                right = nodes[at, OTHER]
                if right >= first and nodes[right & mask, TOP] >= least:
                    stack[top, 0] = right
                    top += 1
                stack[top, 0] = nodes[at, LEFT]
                stack[top, 1] = depth
                height = top + 1
            else:
                path[depth, 0] = nodes[at, OTHER]
                path[depth, 1] = label
                stack[top, 0] = nodes[at, LEFT]
                stack[top, 1] = depth + 1
        if status < 0:
            root += 1
    w[W_ROOT] = root
    w[W_STACK] = height
    w[W_COUNT] = count
    w[W_USED] = used
    return status
