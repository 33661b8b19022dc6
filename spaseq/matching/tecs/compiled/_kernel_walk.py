"""CORE's enumeration on arrays: matches as paths of the tECS, with a delay linear in their own size."""

from __future__ import annotations

from typing import Final, NamedTuple

from spaseq._fields import reads, writes
from spaseq._jit import inlined, kernel, part
from spaseq.matching.tecs.compiled import _kernel_node as node
from spaseq.matching.tecs.compiled._kernel_layout import DONE, Ints, index
from spaseq.matching.tecs.records import counter
from spaseq.matching.tecs.records import root as root_of

# The state of a walk: the root, the height of the stack, and how many matches and events it has written.
# Then, how many events each match has if all have the same labels in turn, else 0; and how many of the
# matches and events belong to earlier roots.
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

#: The nodes of this many roots are read together, each with the least top in its root's window. ``ahead``
#: must have room for them, as it is written unchecked.
AHEAD: Final = 32
_least, _set_least = reads(1), writes(1)

#: When the roots of several parts are walked together, each part walks the roots of this many events in turn.
_NEAR: Final = 1 << 10
_FAR: Final = 1 << 62


class Tree(NamedTuple):
    """A tECS, and the roots of its matches."""

    counters: Ints
    nodes: Ints
    found: Ints


class WalkRoom(NamedTuple):
    """What a walk works in: a stack, the path to a node, and nodes that are read ahead."""

    stack: Ints
    path: Ints
    ahead: Ints


class WalkedMatches(NamedTuple):
    """Positions and labels of matches' events; match i ends at ``ends[i]``, and has root ``roots[i]``."""

    positions: Ints
    labels: Ints
    ends: Ints
    roots: Ints


class WalkShare(NamedTuple):
    """Where a walk may write: ``events`` events from ``event`` on, ``matches`` matches from ``match`` on."""

    event: int
    events: int
    match: int
    matches: int


class WalkCounts(NamedTuple):
    """See ``COUNT``, ``USED`` and ``WIDTH``."""

    matches: int
    used: int
    width: int


@part
def _look_ahead(tree: Tree, begin: int, end: int, ahead: Ints) -> None:
    """Read the nodes of some roots, as many as there is room for: those of all roots, then the nodes below.

    These reads are independent, so their memory latencies overlap, whereas in a walk each read waits for the
    one before. This saves a third of the time if there are many nodes.
    """
    nodes, found = tree.nodes, tree.found
    first, mask = tree.counters[counter.FIRST_NODE], tree.counters[counter.MASK]
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
    """Write the labels and ends of the matches so far, which were left out because all have the labels of the
    first one.
    """
    for i in range(width, used):
        labels[first + i] = labels[first + i % width]
    for i in range(count):
        ends[first_end + i] = (i + 1) * width


@inlined
def _descend(
    nodes: Ints, room: WalkRoom, number: int, depth: int, height: int, least: int, first: int, mask: int
) -> tuple[int, int, int]:
    """Go left from a node until a match is complete; the right sides are put on the stack.

    Return the node that was reached, the length of the path, and the stack's height. The node is 0 unless
    there was no more room.
    """
    while number != 0:
        if depth + 1 > len(room.path) or height + 2 > len(room.stack):
            break
        at = index(number & mask)
        label = node.label(nodes, at)
        if label == node.UNION:
            right = node.right(nodes, at)
            if right >= first and node.top(nodes, index(right & mask)) >= least:
                _set_number(room.stack, height, right)
                _set_depth(room.stack, height, depth)
                height += 1
        else:
            _set_position(room.path, depth, node.position(nodes, at))
            _set_label(room.path, depth, label)
            depth += 1
        number = node.left(nodes, at)
    return number, depth, height


@inlined
def _write(path: Ints, depth: int, out: WalkedMatches, share: WalkShare, state: WalkCounts) -> int:
    """Write the events of the path as a match; return how many events each match has: see ``WIDTH``."""
    count, used, width = state
    begin = share.event + used
    if count == 0:
        width = depth
        for i in range(depth):
            out.labels[share.event + i] = _label(path, depth - 1 - i)
    elif width and depth != width:
        _fill(out.labels, out.ends, share.event, share.match, count, used, width)
        width = 0
    for i in range(depth):
        label = _label(path, depth - 1 - i)
        # The first match determines the labels.
        if width and label != out.labels[share.event + i]:
            _fill(out.labels, out.ends, share.event, share.match, count, used + i, width)
            width = 0
        out.positions[begin + i] = _position(path, depth - 1 - i)
        if not width:
            out.labels[begin + i] = label
    if not width:
        out.ends[share.match + count] = used + depth
    return int(width)


@part
def _walk(tree: Tree, last: int, w: Ints, room: WalkRoom, out: WalkedMatches, share: WalkShare) -> int:
    """Continue a walk up to root number ``last``; see ``enumerate_matches``."""
    # Read only once: the compiler cannot know that writing to other arrays does not change the counters.
    first, mask = tree.counters[counter.FIRST_NODE], tree.counters[counter.MASK]
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
                    _look_ahead(tree, root, seen, room.ahead)
            _set_number(room.stack, 0, root_of.node(tree.found, root))
            _set_depth(room.stack, 0, 0)
            height = 1
        least = root_of.least(tree.found, root)
        while height > 0:
            height -= 1
            number, depth = _number(room.stack, height), _depth(room.stack, height)
            number, depth, height = _descend(tree.nodes, room, number, depth, height, least, first, mask)
            if number != 0:
                status = DEEPER
            elif count == share.matches or used + depth > share.events:
                status = FULL
            if status >= 0:
                _set_number(room.stack, height, number)
                _set_depth(room.stack, height, depth)
                height += 1
                break
            width = _write(room.path, depth, out, share, WalkCounts(count, used, width))
            out.roots[share.match + count] = root
            used += depth
            count += 1
        if status < 0:
            root += 1
    w[ROOT], w[STACK], w[COUNT], w[USED], w[WIDTH] = root, height, count, used, width
    return status


@kernel
def enumerate_matches(tree: Tree, last: int, w: Ints, room: WalkRoom, out: WalkedMatches) -> int:
    """Write the matches of roots, up to number ``last``.

    Continues where the last call stopped. If all matches have the same labels in turn, only the labels of the
    first are written, and no ends.
    """
    w[COUNT] = w[USED] = w[WIDTH] = 0
    return _walk(tree, last, w, room, out, WalkShare(0, len(out.positions), 0, len(out.ends)))


@kernel
def enumerate_together(
    tree: Tree, bounds: Ints, rooms: Ints, of_each: int, w: Ints, room: WalkRoom, out: WalkedMatches
) -> None:
    """Write the matches of roots of several parts, in one pass through the events: nodes of near events are
    near in memory.

    Part i has the roots from ``bounds[i]`` to ``bounds[i + 1]``, and row ``w[i]`` is the state of its walk,
    at the first of these. Its matches have room from ``rooms[i]`` to ``rooms[i + 1]``, for ``of_each`` events
    each. If that is not enough, its walk ends between two roots.
    """
    near = _FAR
    for i in range(len(w)):
        if bounds[i] < bounds[i + 1]:
            near = min(near, root_of.position(tree.found, bounds[i]))
    left = near < _FAR
    while left:
        left = False
        near += _NEAR
        for i in range(len(w)):
            last = w[i, ROOT]
            while last < bounds[i + 1] and root_of.position(tree.found, last) < near:
                last += 1
            if w[i, STACK] or last == w[i, ROOT]:
                left = left or (last < bounds[i + 1] and not w[i, STACK])
                continue
            matches = rooms[i + 1] - rooms[i]
            share = WalkShare(of_each * rooms[i], of_each * matches, rooms[i], matches)
            status = _walk(tree, last, w[i], room, out, share)
            # A walk that stops for another reason is not continued.
            w[i, STACK] = status != DONE
            left = left or (last < bounds[i + 1] and status == DONE)
