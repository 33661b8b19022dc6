"""The records of enumeration that Python also reads: counters and settings, and the roots of matches."""

from __future__ import annotations

from typing import Final

from spaseq._fields import Record, reads, writes


class counter(Record):
    """Places of the counters: the progress of a call of the loops, the sizes of memory, settings."""

    # The progress of a call: the next event, the next of its keys, and how many it has.
    EVENT: Final = 0
    KEY_NUMBER: Final = 1
    KEYS_FOUND: Final = 16

    # The ring of nodes: the first that is kept, the next, its size less one, the last mark.
    FIRST_NODE: Final = 2
    NEXT_NODE: Final = 3
    MASK: Final = 4
    LAST_MARK: Final = 22

    # Partitions: their number; the room for active states and for lists; the longest list; where active
    # states begin and the size of each; how many integers have their bits.
    PARTITIONS: Final = 5
    MOST_ACTIVE: Final = 9
    MOST_LIST: Final = 10
    LONGEST: Final = 18
    ENTRIES: Final = 19
    ENTRY_SIZE: Final = 20
    WORDS: Final = 21

    # Roots: their number, and how many of them were enumerated and are no longer needed.
    FOUND_COUNT: Final = 6
    READ: Final = 24

    # Settings: the number of keys and labels, the reach of the window; then whether there is one stream,
    # whether matches consume partial matches, and whether all transitions are known.
    N_KEYS: Final = 7
    LABELS: Final = 13
    LIMIT: Final = 8
    SINGLE: Final = 11
    CONSUME: Final = 12
    KNOWN: Final = 23

    # What a call that ends early needs: a transition of the automaton, or more room.
    STATE_ASKED: Final = 14
    LABEL_ASKED: Final = 15
    WANTS: Final = 17

    SIZE: Final = 25


class root(Record):
    """Roots, a row each: the node of an event's matches, and what the matches have in common."""

    #: The most variables that separate runs.
    KEY_LIMIT: Final = 4

    # The node, the least top in the window, the event's position, the state that it led to, its place on the
    # window's axis, where the keys begin.
    NODE: Final = 0
    LEAST: Final = 1
    POSITION: Final = 2
    STATE: Final = 3
    AXIS: Final = 4
    KEYS: Final = 5
    SIZE: Final = KEYS + KEY_LIMIT

    #: The node from which the matches are enumerated.
    node, set_node = reads(NODE), writes(NODE)
    #: The least top in the window of the event.
    least, set_least = reads(LEAST), writes(LEAST)
    #: The last event's position.
    position, set_position = reads(POSITION), writes(POSITION)
    #: The state that the last event led to.
    set_state = writes(STATE)
    set_axis = writes(AXIS)
