"""Where events of a broker are: arrival numbers are offsets and partitions, and letters say them."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from spaseq.events import Ids
from spaseq.sources import BadEvent

#: The topic of each stream, by its IRI.
Topics = tuple[tuple[str, str], ...]

#: An arrival number is an offset, and the number of the partition in the lowest bits.
_PARTITION_BITS: Final = 16


def arrival_numbers(offset: Ids, partition: Ids) -> Ids:
    """The arrival numbers of messages."""
    return (offset << _PARTITION_BITS) | partition


def place_of(topic: str, number: int) -> str:
    """Where the message of an arrival number is.

    >>> place_of("trades", 7 << 16 | 3)
    'topic trades, partition 3, offset 7'
    """
    partition = number & ((1 << _PARTITION_BITS) - 1)
    return f"topic {topic}, partition {partition}, offset {number >> _PARTITION_BITS}"


def addressed(letter: BadEvent, topics: Topics) -> BadEvent:
    """A letter that says where its message is, if its stream is a topic."""
    topic = dict(topics).get(letter.stream)
    word, _, number = letter.position.partition(" ")
    if topic is None or word != "event" or not number.isdigit():
        return letter
    # Letters count from 1.
    return replace(letter, position=place_of(topic, int(number) - 1))
