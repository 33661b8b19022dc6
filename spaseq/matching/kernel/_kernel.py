"""The runs kernel: NFA_scep interpreted over columns, by tables (SPAseq paper, 6.3 and 7.2).

One call takes a batch as far as it can. Events are processed in two steps: *decide*, which changes
no run, says what the event does to each run it concerns; *apply* does it. Between the two the kernel can
stop, and be called again: when a condition is beyond the tables (``ASK``: the caller answers, and the same
decisions are made again), or when something is full (``ROOM``, ``DECISIONS``, ``MORE_KEYS``).

All arrays are flat, so that the functions here can pass plain pointers: ``t`` are the tables
(``tables``), ``m`` and ``f`` the memory (``_kernel_memory``), ``b`` the batch, ``numbers`` and
``codes`` the id table (``numbers``).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from spaseq._jit import inlined, kernel, part
from spaseq.matching.kernel._kernel_memory import (
    ANSWERED,
    ANSWERS,
    ASKED,
    BAR_TIME,
    BARRED,
    BUCKET_COUNT,
    CHILD,
    DECIDED,
    DECISIONS,
    DEPTH,
    EVENT,
    EVENT_KEY,
    FIRST,
    FOUND,
    FOUND_COUNT,
    G_ACTIONS,
    G_ACTIONS_END,
    G_CANDIDATES,
    G_CANDIDATES_END,
    G_CLOSED,
    G_CODE,
    G_CODE_END,
    G_COLUMN,
    G_KEYS,
    G_KEYS_END,
    G_NUMBER,
    G_OPERATOR,
    G_SIGN,
    GATE,
    GATES_SEEN,
    HEAD,
    KEYS,
    KINDS,
    LINK,
    LIVE_BUCKETS,
    LIVE_NODES,
    LIVE_WAITS,
    MOST_DECISIONS,
    MOST_FOUND,
    MOST_KEYS,
    MOST_NODES,
    MOST_WAITS,
    NEXT_WAIT,
    NODE,
    NUMBER,
    PARTITION,
    POSITION,
    PREVIOUS,
    QUESTIONS,
    ROOT,
    ROW,
    SEEN,
    SERIAL,
    STREAM,
    STRICT,
    SUMS,
    TIME,
    USES,
    WAITS,
    WAY,
    WIDTH,
    bound,
    dissolve,
    find_bucket,
    find_partition,
    forget,
    is_orderly,
    is_over,
    move,
    new_node,
    new_wait,
    place,
    pop,
    release,
    remove,
)
from spaseq.matching.kernel._kernel_values import (
    A_KIND,
    A_SIZE,
    A_SUM,
    ACC_COUNT,
    ACC_SUM,
    AGGREGATES,
    B_AXIS,
    B_COLUMNS,
    B_NUMBER,
    B_ROWS,
    B_SIZE,
    B_START,
    B_STREAM,
    B_TIME,
    BEYOND,
    FALSE,
    LIMIT,
    MANY,
    MOST_ACCEPTS,
    MOST_GATES,
    N_GPMS,
    N_KEYS,
    N_KLEENES,
    N_SLOTS,
    PARTITION_COLUMNS,
    SINGLE,
    SLOTS,
    START,
    STRING,
    TRUE,
    UNKNOWN,
    WOKEN,
    Codes,
    Floats,
    Ints,
    clear_sum,
    fold,
    holds,
    pointer,
)
from spaseq.matching.kernel._kernel_values import NODE as IS_NODE

# What a call ends with.
DONE: Final = 0
ASK: Final = 1
ROOM: Final = 2
DECISIONS_FULL: Final = 3
MORE_KEYS: Final = 4

# Actions: kind, Kleene, bound.
ENTER: Final = 0
AGAIN: Final = 1
LEAVE: Final = 2
ACTION_SIZE: Final = 3

# Columns of candidates.
C_UNIT: Final = 0
C_GPM: Final = 1
C_PLACE: Final = 2  # 0: only a rival
C_RIVAL: Final = 3
C_NUMBER: Final = 4
C_ACTIONS: Final = 5
C_ACTIONS_END: Final = 6
C_KEYS: Final = 7
C_SIZE: Final = 8

# Columns of units.
U_BINDS: Final = 0
U_BINDS_END: Final = 1
U_CODE: Final = 2
U_CODE_END: Final = 3
U_COUNTING: Final = 4

# Columns of places, accepts, and Kleenes.
P_ACCEPTS: Final = 0
P_ACCEPTS_END: Final = 1
P_GATES: Final = 2
P_GATES_END: Final = 3
X_ACTIONS: Final = 0
X_ACTIONS_END: Final = 1
X_CODE: Final = 2
X_CODE_END: Final = 3
X_NUMBER: Final = 4
X_SIZE: Final = 5
K_NUMBER: Final = 0
K_OWN: Final = 1
K_OWN_END: Final = 2
K_AGGREGATES: Final = 3
K_AGGREGATES_END: Final = 4
GATE_SIZE: Final = 14

DECISION_SIZE: Final = 3
FOUND_SIZE: Final = 4
QUESTION_SIZE: Final = 2

# What decisions say instead of a candidate.
_BAR: Final = 0
_DROP: Final = -1
_POP: Final = -2
_SKIP: Final = -3
_FORGET: Final = -4


@inlined
def _row(b: Ints, g: int, e: int) -> int:
    """Where the rows of GPM g in event e begin."""
    return int(b[b[B_ROWS] + g * (b[B_SIZE] + 1) + e])


@inlined
def _value(b: Ints, column: int, r: int) -> int:
    return int(b[b[b[B_COLUMNS] + column] + r])


@part
def _find_keys(t: Ints, m: Ints, b: Ints, e: int) -> int:
    """The partition keys of an event, in order, into ``KEYS``; how many; -1 if there is no room."""
    size = t[N_KEYS]
    if size == 0:
        return 1
    count = 0
    for g in range(t[N_GPMS]):
        for r in range(_row(b, g, e), _row(b, g, e + 1)):
            if count >= m[MOST_KEYS]:
                return -1
            new = m[KEYS] + count * size
            whole = True
            for j in range(size):
                column = t[t[PARTITION_COLUMNS] + g * size + j]
                m[new + j] = _value(b, column, r) if column >= 0 else 0
                if m[new + j] == 0:
                    whole = False
            if not whole:
                continue
            at = m[KEYS]
            order = 1
            while at < new:
                order = 0
                for j in range(size):
                    if order == 0 and m[at + j] != m[new + j]:
                        order = -1 if m[at + j] < m[new + j] else 1
                if order >= 0:
                    break
                at += size
            if at < new and order == 0:
                continue
            for j in range(size):
                identifier = m[new + j]
                i = new + j
                while i > at + j:
                    m[i] = m[i - size]
                    i -= size
                m[at + j] = identifier
            count += 1
    return count


@part
def _is_of_key(t: Ints, m: Ints, b: Ints, g: int, r: int, key: int) -> bool:
    size = t[N_KEYS]
    for j in range(size):
        column = t[t[PARTITION_COLUMNS] + g * size + j]
        if column >= 0:
            identifier = _value(b, column, r)
            if identifier != 0 and identifier != m[key + j]:
                return False
    return True


@inlined
def _belongs(t: Ints, m: Ints, b: Ints, g: int, r: int, key: int) -> bool:
    """Whether a row is of the partition's key; ``key`` 0: all rows of the event are."""
    return key == 0 or _is_of_key(t, m, b, g, r, key)


# --- decide ---------------------------------------------------------------------------------------


@part
def _judge_row(
    t: Ints, m: Ints, f: Floats, b: Ints, numbers: Floats, codes: Codes, w: int, unit: int, r: int
) -> int:
    """Whether a row joins with a run and the conditions hold."""
    unknown = False
    for i in range(t[unit + U_BINDS], t[unit + U_BINDS_END], 2):
        known = m[w + SLOTS + t[i]]
        if known != 0:
            identifier = _value(b, t[i + 1], r)
            if identifier != 0 and identifier != known:
                if known != MANY:
                    return FALSE
                unknown = True
    start, end = t[unit + U_CODE], t[unit + U_CODE_END]
    if start < end:
        verdict = holds(t, start, end, m, m[KINDS], f, w, m[w + SUMS], b, r, numbers, codes)
        if verdict != TRUE:
            return verdict
    return UNKNOWN if unknown else TRUE


@part
def _judge(
    t: Ints, m: Ints, f: Floats, b: Ints, numbers: Floats, codes: Codes, e: int, key: int, w: int, c: int
) -> tuple[int, int]:
    """Whether the event is relevant for a candidate of a wait; the one row that is, or -1 if several."""
    unit, g = t[c + C_UNIT], t[c + C_GPM]
    true, unknown, row = 0, 0, -1
    for r in range(_row(b, g, e), _row(b, g, e + 1)):
        if not _belongs(t, m, b, g, r, key):
            continue
        verdict = _judge_row(t, m, f, b, numbers, codes, w, unit, r)
        if verdict == TRUE:
            true += 1
            row = r
        elif verdict == UNKNOWN:
            unknown += 1
            row = r
    if true + unknown > 1:
        row = -1
    if true > 0:
        return TRUE, row
    if unknown == 0:
        return FALSE, -1
    asked = m[ASKED]
    m[ASKED] = asked + 1
    if asked < m[ANSWERED]:
        return m[m[ANSWERS] + asked], row
    if asked < m[MOST_DECISIONS]:
        m[m[QUESTIONS] + asked * QUESTION_SIZE] = w
        m[m[QUESTIONS] + asked * QUESTION_SIZE + 1] = t[c + C_NUMBER]
    return UNKNOWN, -1


@inlined
def _note(m: Ints, w: int, c: int, row: int) -> None:
    """Writes a decision down; what does not fit is only counted."""
    count = m[DECIDED]
    if count < m[MOST_DECISIONS]:
        at = m[DECISIONS] + count * DECISION_SIZE
        m[at] = w
        m[at + 1] = c
        m[at + 2] = row
    m[DECIDED] = count + 1


@part
def _show(
    t: Ints, m: Ints, f: Floats, b: Ints, numbers: Floats, codes: Codes, e: int, key: int, w: int
) -> None:
    """What the event does to one wait."""
    time, stream = b[b[B_TIME] + e], b[b[B_STREAM] + e]
    if is_over(m, w, t[LIMIT], b[b[B_AXIS] + e], time):
        _note(m, w, _DROP, 0)
        return
    if time == m[w + TIME] and not (stream == m[w + STREAM] and b[b[B_NUMBER] + e] > m[w + NUMBER]):
        return
    if (m[w + BARRED] >> stream) & 1:
        return
    gate = m[w + GATE]
    bars = t[gate + G_OPERATOR] == STRICT
    for c in range(t[gate + G_CANDIDATES], t[gate + G_CANDIDATES_END], C_SIZE):
        g = t[c + C_GPM]
        if _row(b, g, e) == _row(b, g, e + 1):
            continue
        verdict, row = _judge(t, m, f, b, numbers, codes, e, key, w, c)
        if verdict == TRUE:
            if t[c + C_PLACE] != 0:
                _note(m, w, c, row)
            if t[c + C_RIVAL] != 0:
                bars = True
    if bars:
        _note(m, w, _BAR, 0)


@part
def _is_of_bucket(t: Ints, m: Ints, b: Ints, bucket: int, gate: int, r: int) -> bool:
    """Whether a row has the join key of a bucket at a gate with one candidate."""
    at = t[t[gate + G_CANDIDATES] + C_KEYS]
    for j in range(t[gate + G_KEYS_END] - t[gate + G_KEYS]):
        if _value(b, t[at + j], r) != m[bucket + 2 + j]:
            return False
    return True


@part
def _visit_heap(
    t: Ints, m: Ints, f: Floats, b: Ints, numbers: Floats, codes: Codes, e: int, key: int, bucket: int
) -> None:
    """The waits of a heap whose bound the event passes; if that is not plain, the heap becomes a list."""
    root = m[bucket + ROOT]
    gate = m[root + GATE]
    c = t[gate + G_CANDIDATES]
    g = t[c + C_GPM]
    most = -np.inf
    for r in range(_row(b, g, e), _row(b, g, e + 1)):
        if not _belongs(t, m, b, g, r, key) or not _is_of_bucket(t, m, b, bucket, gate, r):
            continue
        identifier = _value(b, t[gate + G_COLUMN], r)
        if identifier == 0 or codes[identifier] == IS_NODE or codes[identifier] == STRING:
            continue  # comparing it with a number is an error
        if not is_orderly(codes[identifier]):
            dissolve(m, bucket)
            return
        most = max(most, t[gate + G_SIGN] * numbers[identifier])
    closed = t[gate + G_CLOSED] != 0
    x = bound(t, m, root, numbers)
    if not (x < most or (closed and x == most)):
        return
    begin = m[DECIDED]
    _note(m, root, c, -1)
    i = begin
    while i < m[DECIDED] and i < m[MOST_DECISIONS]:
        at = m[DECISIONS] + i * DECISION_SIZE
        w = m[at]
        child = m[w + CHILD]
        while child != 0:
            x = bound(t, m, child, numbers)
            if x < most or (closed and x == most):
                _note(m, child, c, -1)
            child = m[child + LINK]
        if b[b[B_AXIS] + e] - m[w + FIRST] > t[LIMIT]:
            m[at + 1] = _SKIP
        else:
            m[at + 2] = _judge(t, m, f, b, numbers, codes, e, key, w, c)[1]
        i += 1
    _note(m, bucket, _POP, i - begin)
    _note(m, begin, _FORGET, i - begin)


@part
def _visit(
    t: Ints, m: Ints, f: Floats, b: Ints, numbers: Floats, codes: Codes, e: int, key: int, bucket: int
) -> None:
    """The waits of a bucket, once per event."""
    if bucket == 0 or m[bucket + SEEN] == m[SERIAL]:
        return
    m[bucket + SEEN] = m[SERIAL]
    if m[bucket + ROOT] != 0:
        _visit_heap(t, m, f, b, numbers, codes, e, key, bucket)
    w = m[bucket + HEAD]
    while w != 0:
        _show(t, m, f, b, numbers, codes, e, key, w)
        w = m[w + LINK]


@part
def _visit_gate(
    t: Ints, m: Ints, f: Floats, b: Ints, numbers: Floats, codes: Codes, e: int, key: int, p: int, gate: int
) -> None:
    """The waits at a gate that the event may concern."""
    size = t[gate + G_KEYS_END] - t[gate + G_KEYS]
    if size == 0:
        _visit(t, m, f, b, numbers, codes, e, key, find_bucket(m, gate, p, 0, 0, 0, 0, False))
        return
    for c in range(t[gate + G_CANDIDATES], t[gate + G_CANDIDATES_END], C_SIZE):
        g = t[c + C_GPM]
        at = t[c + C_KEYS]
        for r in range(_row(b, g, e), _row(b, g, e + 1)):
            if not _belongs(t, m, b, g, r, key):
                continue
            k0 = _value(b, t[at], r)
            k1 = _value(b, t[at + 1], r) if size > 1 else 0
            k2 = _value(b, t[at + 2], r) if size > 2 else 0
            k3 = _value(b, t[at + 3], r) if size > 3 else 0
            _visit(t, m, f, b, numbers, codes, e, key, find_bucket(m, gate, p, k0, k1, k2, k3, False))
    _visit(t, m, f, b, numbers, codes, e, key, find_bucket(m, gate, p, -1, -1, -1, -1, False))


@part
def _decide(
    t: Ints, m: Ints, f: Floats, b: Ints, numbers: Floats, codes: Codes, e: int, key: int, p: int
) -> None:
    m[DECIDED] = 0
    m[ASKED] = 0
    m[SERIAL] += 1
    for gate in range(t[t[START] + P_GATES], t[t[START] + P_GATES_END], GATE_SIZE):
        for c in range(t[gate + G_CANDIDATES], t[gate + G_CANDIDATES_END], C_SIZE):
            g = t[c + C_GPM]
            if _row(b, g, e) < _row(b, g, e + 1):
                verdict, row = _judge(t, m, f, b, numbers, codes, e, key, m[WAITS], c)
                if verdict == TRUE:
                    _note(m, m[WAITS], c, row)
    w = m[p]
    while w != 0:
        _show(t, m, f, b, numbers, codes, e, key, w)
        w = m[w + LINK]
    for g in range(t[N_GPMS]):
        if _row(b, g, e) == _row(b, g, e + 1):
            continue
        for i in range(t[t[WOKEN] + 2 * g], t[t[WOKEN] + 2 * g + 1]):
            gate = t[i]
            seen = m[GATES_SEEN] + t[gate + G_NUMBER]
            if m[seen] != m[SERIAL]:
                m[seen] = m[SERIAL]
                _visit_gate(t, m, f, b, numbers, codes, e, key, p, gate)


# --- apply ----------------------------------------------------------------------------------------


@part
def _act(t: Ints, m: Ints, f: Floats, numbers: Floats, codes: Codes, w: int, start: int, end: int) -> bool:
    """Actions on a wait; False if one of them forbids to go on."""
    begun = w + SLOTS + t[N_SLOTS]
    completed = begun + t[N_KLEENES]
    aggregates = completed + t[N_KLEENES]
    for i in range(start, end, ACTION_SIZE):
        action, kleene, most = t[i], t[i + 1], t[i + 2]
        number = t[kleene + K_NUMBER]
        if action == ENTER:
            m[begun + number] = 1
            m[completed + number] = 0
            for j in range(t[kleene + K_AGGREGATES], t[kleene + K_AGGREGATES_END]):
                m[aggregates + j] = 0
                if t[t[AGGREGATES] + j * A_SIZE + A_KIND] == ACC_SUM:
                    clear_sum(f, m[w + SUMS] + t[t[AGGREGATES] + j * A_SIZE + A_SUM])
            continue
        iterations = m[begun + number]
        if action == AGAIN and most >= 0 and iterations >= most:
            return False
        if action == LEAVE and iterations < most:
            return False
        for j in range(t[kleene + K_AGGREGATES], t[kleene + K_AGGREGATES_END]):
            fold(t, m, f, w, m[w + SUMS], j, m[completed + number] == 0, numbers, codes)
        m[completed + number] += 1
        own = t[kleene + K_OWN]
        if action == AGAIN:
            m[begun + number] += 1
            for j in range(own, t[kleene + K_OWN_END]):
                m[w + SLOTS + t[j]] = 0
        elif m[completed + number] > 1:
            for j in range(own, t[kleene + K_OWN_END]):
                m[w + SLOTS + t[j]] = MANY
    return True


@part
def _may(
    t: Ints, m: Ints, f: Floats, b: Ints, numbers: Floats, codes: Codes, w: int,
    actions: int, actions_end: int, code: int, code_end: int,
) -> bool:  # fmt: skip
    """Actions on a wait, and whether it may go on: no condition that is decided here surely fails."""
    if not _act(t, m, f, numbers, codes, w, actions, actions_end):
        return False
    if code == code_end:
        return True
    return holds(t, code, code_end, m, m[KINDS], f, w, m[w + SUMS], b, 0, numbers, codes) != FALSE


@part
def _blur(t: Ints, m: Ints, f: Floats, w: int, kleene: int) -> None:
    """An iteration has several solutions: how many, and their sum, is beyond the tables."""
    start = w + SLOTS + t[N_SLOTS] + 2 * t[N_KLEENES]
    for j in range(t[kleene + K_AGGREGATES], t[kleene + K_AGGREGATES_END]):
        a = t[AGGREGATES] + j * A_SIZE
        if t[a + A_KIND] == ACC_COUNT:
            m[start + j] = MANY
        elif t[a + A_KIND] == ACC_SUM:
            f[m[w + SUMS] + t[a + A_SUM] + 2] = BEYOND


@part
def _copy(m: Ints, f: Floats, w: int) -> int:
    """A new wait with the slots of another."""
    new = new_wait(m)
    for j in range(SLOTS, m[WIDTH]):
        m[new + j] = m[w + j]
    for j in range(int(f[0])):
        f[m[new + SUMS] + j] = f[m[w + SUMS] + j]
    return new


@part
def _bind(t: Ints, m: Ints, b: Ints, e: int, key: int, w: int, c: int, row: int) -> None:
    """The slots take what the event binds."""
    unit, g = t[c + C_UNIT], t[c + C_GPM]
    for i in range(t[unit + U_BINDS], t[unit + U_BINDS_END], 2):
        slot, column = w + SLOTS + t[i], t[i + 1]
        if row >= 0:
            identifier = _value(b, column, row)
            if identifier != 0:
                m[slot] = identifier
        elif m[slot] <= 0:
            same = -2
            for r in range(_row(b, g, e), _row(b, g, e + 1)):
                if _belongs(t, m, b, g, r, key):
                    identifier = _value(b, column, r)
                    if same == -2:
                        same = identifier
                    elif same != identifier:
                        same = MANY
            if same != 0:
                m[slot] = same


@part
def _extend(
    t: Ints, m: Ints, f: Floats, b: Ints, numbers: Floats, codes: Codes, e: int, key: int, p: int,
    w: int, c: int, row: int,
) -> None:  # fmt: skip
    """A run takes the event: it ends where it may, and waits at the gates of its new place."""
    before = m[w + NODE]
    first = m[w + FIRST] if before != 0 else b[b[B_AXIS] + e]
    taken = _copy(m, f, w)  # only for its slots
    _bind(t, m, b, e, key, taken, c, row)
    _act(t, m, f, numbers, codes, taken, t[c + C_ACTIONS], t[c + C_ACTIONS_END])
    if row < 0 and t[t[c + C_UNIT] + U_COUNTING] != 0:
        _blur(t, m, f, taken, t[t[c + C_UNIT] + U_COUNTING])
    node = new_node(m)
    m[node + POSITION] = b[B_START] + e
    m[node + PREVIOUS] = before
    m[node + WAY] = t[c + C_NUMBER]
    m[node + ROW] = row
    m[node + USES] = 1
    m[node + DEPTH] = 1
    if before != 0:
        m[node + DEPTH] += m[before + DEPTH]
        m[before + USES] += 1
    to = t[c + C_PLACE]
    for a in range(t[to + P_ACCEPTS], t[to + P_ACCEPTS_END], X_SIZE):
        new = _copy(m, f, taken)
        if _may(
            t, m, f, b, numbers, codes, new,
            t[a + X_ACTIONS], t[a + X_ACTIONS_END], t[a + X_CODE], t[a + X_CODE_END],
        ):  # fmt: skip
            at = m[FOUND] + m[FOUND_COUNT] * FOUND_SIZE
            m[at] = e
            m[at + 1] = p
            m[at + 2] = node
            m[at + 3] = t[a + X_NUMBER]
            m[node + USES] += 1
            m[FOUND_COUNT] += 1
        forget(m, new)
    for gate in range(t[to + P_GATES], t[to + P_GATES_END], GATE_SIZE):
        new = _copy(m, f, taken)
        if _may(
            t, m, f, b, numbers, codes, new,
            t[gate + G_ACTIONS], t[gate + G_ACTIONS_END], t[gate + G_CODE], t[gate + G_CODE_END],
        ):  # fmt: skip
            m[new + GATE] = gate
            m[new + PARTITION] = p
            m[new + NODE] = node
            m[node + USES] += 1
            m[new + FIRST] = first
            m[new + TIME] = b[b[B_TIME] + e]
            m[new + STREAM] = b[b[B_STREAM] + e]
            m[new + NUMBER] = b[b[B_NUMBER] + e]
            m[new + BARRED] = 0
            place(t, m, new, numbers, codes)
        else:
            forget(m, new)
    forget(m, taken)
    release(m, node)


@part
def _apply(
    t: Ints, m: Ints, f: Floats, b: Ints, numbers: Floats, codes: Codes, e: int, key: int, p: int
) -> None:
    # What leaves a heap does so before anything comes in: it is counted, not named.
    for i in range(m[DECIDED]):
        at = m[DECISIONS] + i * DECISION_SIZE
        if m[at + 1] == _POP:
            for _ in range(m[at + 2]):
                pop(t, m, m[at], numbers)
    for i in range(m[DECIDED]):
        at = m[DECISIONS] + i * DECISION_SIZE
        w, c, row = m[at], m[at + 1], m[at + 2]
        if c > 0:
            _extend(t, m, f, b, numbers, codes, e, key, p, w, c, row)
        elif c == _FORGET:
            for j in range(w, w + row):
                forget(m, m[m[DECISIONS] + j * DECISION_SIZE])
        elif c == _DROP or (c == _BAR and t[SINGLE] != 0):
            remove(m, w)
        elif c == _BAR:
            m[w + BAR_TIME] = b[b[B_TIME] + e]
            m[w + BARRED] |= 1 << b[b[B_STREAM] + e]


@inlined
def _has_room(t: Ints, m: Ints) -> bool:
    """Whether all that was decided can be applied."""
    decided = m[DECIDED]
    new = decided * t[MOST_GATES] + 2
    return bool(
        m[LIVE_WAITS] + new <= m[MOST_WAITS]
        and m[LIVE_NODES] + decided <= m[MOST_NODES]
        and 2 * (m[LIVE_BUCKETS] + new) <= m[BUCKET_COUNT]
        and m[FOUND_COUNT] + decided * t[MOST_ACCEPTS] <= m[MOST_FOUND]
    )


@kernel
def run(tables: Ints, ints: Ints, floats: Floats, batch: Ints, numbers: Floats, codes: Codes) -> int:
    """Takes a batch on from event ``EVENT``, key ``EVENT_KEY``; says why it stopped."""
    return _run(
        pointer(tables), pointer(ints), pointer(floats), pointer(batch), pointer(numbers), pointer(codes)
    )


@part
def _run(t: Ints, m: Ints, f: Floats, b: Ints, numbers: Floats, codes: Codes) -> int:
    e = m[EVENT]
    while e < b[B_SIZE]:
        count = _find_keys(t, m, b, e)
        if count < 0:
            return MORE_KEYS
        for k in range(m[EVENT_KEY], count):
            m[EVENT_KEY] = k
            key = m[KEYS] + k * t[N_KEYS]
            p = find_partition(m, t[N_KEYS], key)
            if p == 0:
                m[DECIDED] = 0
                return ROOM
            if count == 1 and t[N_KEYS] <= 1:
                key = 0
            _decide(t, m, f, b, numbers, codes, e, key, p)
            if m[DECIDED] > m[MOST_DECISIONS] or m[ASKED] > m[MOST_DECISIONS]:
                return DECISIONS_FULL
            if m[ASKED] > m[ANSWERED]:
                return ASK
            if m[DECIDED] > 0:
                if not _has_room(t, m):
                    return ROOM
                _apply(t, m, f, b, numbers, codes, e, key, p)
            m[ANSWERED] = 0
        m[EVENT_KEY] = 0
        e += 1
        m[EVENT] = e
    return DONE


# --- between calls --------------------------------------------------------------------------------


@kernel
def unroll(ints: Ints, paths: Ints) -> None:
    """Position, candidate and row of the events of the runs found, one run after the other; forgets them."""
    m: Ints = pointer(ints)
    at = 0
    for i in range(m[FOUND_COUNT]):
        node = m[m[FOUND] + i * FOUND_SIZE + 2]
        at += 3 * m[node + DEPTH]
        j = at
        last = node
        while node != 0:
            j -= 3
            paths[j] = m[node + POSITION]
            paths[j + 1] = m[node + WAY]
            paths[j + 2] = m[node + ROW]
            node = m[node + PREVIOUS]
        release(m, last)
    m[FOUND_COUNT] = 0


@kernel
def sweep(
    tables: Ints, ints: Ints, floats: Floats, new_ints: Ints, new_floats: Floats, axis: int, time: int,
    numbers: Floats, codes: Codes,
) -> int:  # fmt: skip
    """Moves the waits that may still go on into a memory that is empty; the old one is worth nothing then.

    If the new memory is too short to be one, only counts them.
    """
    t: Ints = pointer(tables)
    old: Ints = pointer(ints)
    new: Ints = pointer(new_ints)
    count = 0
    for w in range(old[WAITS] + old[WIDTH], old[NEXT_WAIT], old[WIDTH]):
        if not is_over(old, w, t[LIMIT], axis, time):
            count += 1
            if len(new_ints) > 0:
                move(
                    t, old, pointer(floats), w, new, pointer(new_floats), pointer(numbers), pointer(codes)
                )  # fmt: skip
    return count
