"""CORE's enumeration on arrays: matches as paths of the tECS, with a delay linear in their own size."""

from __future__ import annotations

from typing import Final

from spaseq._fields import reads, writes
from spaseq._jit import kernel, part
from spaseq.matching.tecs.compiled import _kernel_node as node
from spaseq.matching.tecs.compiled._kernel_layout import DONE, Ints, index
from spaseq.matching.tecs.records import counter
from spaseq.matching.tecs.records import root as root_of

# The state of a walk: the root, the height of the stack, how many matches and events it has written; how many
# events each match has, if all have the same labels in turn, 0 if not; and how many of these matches and
# events belong to earlier roots.
ROOT: Final = 0
STACK: Final = 1
COUNT: Final = 2
USED: Final = 3
WIDTH: Final = 4
WHOLE: Final = 5
WHOLE_USED: Final = 6
SIZE: Final = 7

# Results of an unfinished call.
DEEPER: Final = 1
FULL: Final = 2

#: The stack: nodes to be walked, each with the length of the path to it.
_number, _set_number = reads(0), writes(0)
_depth, _set_depth = reads(1), writes(1)
#: The path: the events after the node, from the last one on, as positions and labels.
_position, _set_position = reads(0), writes(0)
_label, _set_label = reads(1), writes(1)

#: Nodes of this many roots are read together, each with the least top in its root's window. There must be
#: room for as many in ``ahead``, which is written unchecked.
AHEAD: Final = 32
_least, _set_least = reads(1), writes(1)

#: The roots of several are walked together for events up to this distance.
_NEAR: Final = 1 << 10
_FAR: Final = 1 << 62


@part
def _look_ahead(nodes: Ints, found: Ints, mask: int, first: int, begin: int, end: int, ahead: Ints) -> None:
    """Read the nodes of some roots, as many as there is room for: those of all roots, then the nodes below.

    These reads are independent, so that memory latencies overlap. In a walk of one root after the other each
    read waits for the one before. It saves a third of the time where there are many nodes.
    """
    count = at = 0
    for root in range(begin, end):
        _set_number(ahead, count, root_of.node(found, root))
        _set_least(ahead, count, root_of.least(found, root))
        count += 1
    while at < count and count + 2 <= len(ahead):
        now, least = index(_number(ahead, at) & mask), _least(ahead, at)
        at += 1
        if node.top(nodes, now) < least:
            continue
        _set_number(ahead, count, node.left(nodes, now))
        _set_least(ahead, count, least)
        count += node.left(nodes, now) != 0
        _set_number(ahead, count, node.right(nodes, now))
        _set_least(ahead, count, least)
        count += node.label(nodes, now) == node.UNION and node.right(nodes, now) >= first


@part
def _fill(labels: Ints, ends: Ints, first: int, first_end: int, count: int, used: int, width: int) -> None:
    """Write the labels and ends that are equal as long as all matches have the labels of the first one in
    turn.
    """
    for i in range(width, used):
        labels[first + i] = labels[first + i % width]
    for i in range(count):
        ends[first_end + i] = (i + 1) * width


@part
def _walk(
    nodes: Ints, found: Ints, mask: int, first: int, last: int, w: Ints, stack: Ints, path: Ints,
    positions: Ints, labels: Ints, ends: Ints, roots: Ints, ahead: Ints, at_event: int, events: int,
    at_match: int, matches: int,
) -> int:  # fmt: skip
    """Continue a walk up to root number ``last``; see ``enumerate_matches``.

    It may write ``events`` events from place ``at_event`` on, and ``matches`` matches from ``at_match`` on.
    """
    root = w[ROOT]
    seen = root
    height = w[STACK]
    count, used, width = w[COUNT], w[USED], w[WIDTH]
    status = -1
    while status < 0:
        if height == 0:
            w[WHOLE], w[WHOLE_USED] = count, used
            if root == last:
                status = DONE
                break
            if root == seen:
                seen = min(root + AHEAD, last)
                if seen > root + 1:
                    _look_ahead(nodes, found, mask, first, root, seen, ahead)
            _set_number(stack, 0, root_of.node(found, root))
            _set_depth(stack, 0, 0)
            height = 1
        least = root_of.least(found, root)
        while height > 0:
            height -= 1
            number = _number(stack, height)
            depth = _depth(stack, height)
            # From this node always left, until a match ends; the right sides wait on the stack.
            while number != 0:
                # There must be room for one more of each before a node is processed.
                if depth + 1 > len(path) or height + 2 > len(stack):
                    status = DEEPER
                    break
                at = index(number & mask)
                label = node.label(nodes, at)
                if label == node.UNION:
                    right = node.right(nodes, at)
                    if right >= first and node.top(nodes, index(right & mask)) >= least:
                        _set_number(stack, height, right)
                        _set_depth(stack, height, depth)
                        height += 1
                else:
                    _set_position(path, depth, node.position(nodes, at))
                    _set_label(path, depth, label)
                    depth += 1
                number = node.left(nodes, at)
            if status < 0 and (count == matches or used + depth > events):
                status = FULL
            if status >= 0:
                _set_number(stack, height, number)
                _set_depth(stack, height, depth)
                height += 1
                break
            if count == 0:
                width = depth
                for i in range(depth):
                    labels[at_event + i] = _label(path, depth - 1 - i)
            elif width and depth != width:
                _fill(labels, ends, at_event, at_match, count, used, width)
                width = 0
            for i in range(depth - 1, -1, -1):
                label = _label(path, i)
                # The first match determines the labels.
                if width and label != labels[at_event + depth - 1 - i]:
                    _fill(labels, ends, at_event, at_match, count, used, width)
                    width = 0
                positions[at_event + used] = _position(path, i)
                if not width:
                    labels[at_event + used] = label
                used += 1
            if not width:
                ends[at_match + count] = used
            roots[at_match + count] = root
            count += 1
        if status < 0:
            root += 1
    w[ROOT] = root
    w[STACK] = height
    w[COUNT] = count
    w[USED] = used
    w[WIDTH] = width
    return status


@kernel
def enumerate_matches(
    c: Ints, nodes: Ints, found: Ints, last: int, w: Ints, stack: Ints, path: Ints, positions: Ints,
    labels: Ints, ends: Ints, roots: Ints, ahead: Ints,
) -> int:  # fmt: skip
    """Write the matches of roots, up to number ``last``: positions and labels of their events.

    Continues where the last call stopped. ``ends[i]`` is where match i ends among them, ``roots[i]`` the
    number of its root. If all have the same labels in turn, only the first one's labels are written, and no
    ends. ``ahead``: room for nodes that are read ahead.
    """
    w[COUNT] = w[USED] = w[WIDTH] = 0
    return _walk(
        nodes, found, c[counter.MASK], c[counter.FIRST_NODE], last, w, stack, path, positions, labels, ends,
        roots, ahead, 0, len(positions), 0, len(ends),
    )  # fmt: skip


@kernel
def enumerate_together(
    c: Ints, nodes: Ints, found: Ints, bounds: Ints, rooms: Ints, of_each: int, w: Ints, stack: Ints,
    path: Ints, positions: Ints, labels: Ints, ends: Ints, roots: Ints, ahead: Ints,
) -> None:  # fmt: skip
    """Do the same for the roots of several parts, in one pass through the events, as their nodes are near
    each other.

    Part i has the roots from ``bounds[i]`` to ``bounds[i + 1]``, and row ``w[i]`` is the state of its walk,
    at the first of these. Its matches have room from ``rooms[i]`` to ``rooms[i + 1]``, for ``of_each`` events
    each. If that is not enough, its walk ends between two roots.
    """
    mask, first = c[counter.MASK], c[counter.FIRST_NODE]
    near = _FAR
    for i in range(len(w)):
        if bounds[i] < bounds[i + 1]:
            near = min(near, root_of.position(found, bounds[i]))
    left = near < _FAR
    while left:
        left = False
        near += _NEAR
        for i in range(len(w)):
            last = w[i, ROOT]
            while last < bounds[i + 1] and root_of.position(found, last) < near:
                last += 1
            if w[i, STACK] or last == w[i, ROOT]:
                left = left or (last < bounds[i + 1] and not w[i, STACK])
                continue
            status = _walk(
                nodes, found, mask, first, last, w[i], stack, path, positions, labels, ends, roots, ahead,
                of_each * rooms[i], of_each * (rooms[i + 1] - rooms[i]), rooms[i], rooms[i + 1] - rooms[i],
            )  # fmt: skip
            # A walk that stops for another reason is not continued.
            w[i, STACK] = status != DONE
            left = left or (last < bounds[i + 1] and status == DONE)
