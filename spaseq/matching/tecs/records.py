"""The records of enumeration that Python reads, too: what there is one of, and the roots of matches."""

from __future__ import annotations

from typing import Final

from spaseq._fields import Record, reads, writes


class counter(Record):
    """The places of what there is one of: where a call of the loops stands, the sizes of memory, settings."""

    # Where a call stands: the next event, the next of its keys, and how many it has.
    EVENT: Final = 0
    KEY_NUMBER: Final = 1
    KEYS_FOUND: Final = 16

    # The ring of nodes: the first that is kept, the next, its size less one, the last mark.
    FIRST_NODE: Final = 2
    NEXT_NODE: Final = 3
    MASK: Final = 4
    LAST_MARK: Final = 22

    # Partitions: how many there are, how many active states and how long a list they have room for, the
    # longest list, where active states begin and how large each is, how many integers have their bits.
    PARTITIONS: Final = 5
    MOST_ACTIVE: Final = 9
    MOST_LIST: Final = 10
    LONGEST: Final = 18
    ENTRIES: Final = 19
    ENTRY_SIZE: Final = 20
    WORDS: Final = 21

    # Roots: how many were found, and how many of these were enumerated, and are wanted no more.
    FOUND_COUNT: Final = 6
    READ: Final = 24

    # Settings: how many keys and labels there are, how far the window reaches, whether there is one stream,
    # whether matches consume their events, whether all steps of the automaton are known.
    N_KEYS: Final = 7
    LABELS: Final = 13
    LIMIT: Final = 8
    SINGLE: Final = 11
    CONSUME: Final = 12
    KNOWN: Final = 23

    # What a call that ends early asks for: a step of the automaton, or more of something.
    STATE_ASKED: Final = 14
    LABEL_ASKED: Final = 15
    WANTS: Final = 17

    SIZE: Final = 25


class root(Record):
    """Roots, a row each of what was found: the node of an event's matches, and what they have in common."""

    #: At most so many variables tell runs apart.
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
    #: The least top that is in the window of the event.
    least, set_least = reads(LEAST), writes(LEAST)
    #: The last event's position.
    position, set_position = reads(POSITION), writes(POSITION)
    #: The state that the last event led to.
    set_state = writes(STATE)
    set_axis = writes(AXIS)
