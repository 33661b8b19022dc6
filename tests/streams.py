"""Streams of small events for tests: letters at ticks, with a number and a key.

``letters("a1 b2 a3")`` are events of type ``a``, ``b``, ``a`` at ticks 1, 2 and 3 on stream S. A fuller
word is ``S2.a@5=7/x``: stream S2, type a, tick 5, value 7, key ``x``.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import spaseq

NS = "http://example.org/"

#: The last line that ``spaseq run`` writes to standard error.
_TOTALS = re.compile(r"(?:^|(?<=\n))[\d,]+ events?, [\d,]+ match(?:es)? in [\d,.]+ s(?P<rest>.*)\n\Z")

_WORD = re.compile(
    r"(?:(?P<stream>\w+)\.)?(?P<type>[a-z])@?(?P<time>\d+)(?:=(?P<value>-?\d+))?(?:/(?P<key>\w+))?$"
)


@dataclass(frozen=True, slots=True)
class Letter:
    """An event: the graph ``<e{name}> a :type ; :v value ; :k :key``."""

    name: str
    stream: str
    type: str
    time: int
    value: int
    key: str

    @property
    def turtle(self) -> str:
        return f"@prefix : <{NS}> . <{NS}e/{self.name}> a :{self.type} ; :v {self.value} ; :k :{self.key} ."


def before_totals(stderr: str, rest: str = "") -> str:
    """What ``spaseq run`` writes to standard error before its totals, which end in ``rest``."""
    totals = _TOTALS.search(stderr)
    assert totals is not None, stderr
    assert totals["rest"] == rest
    return stderr[: totals.start()]


def letters(text: str) -> list[Letter]:
    """The events of a line of words; the value of an event is its time unless it says another."""
    out = []
    for word in text.split():
        found = _WORD.match(word)
        if found is None:
            raise ValueError(f"not an event: {word!r}")
        time = int(found["time"])
        value = int(found["value"]) if found["value"] else time
        stream = found["stream"] or "S"
        name = f"{found['type']}{time}" if stream == "S" else f"{stream}.{found['type']}{time}"
        out.append(Letter(name, stream, found["type"], time, value, found["key"] or "k"))
    return out


def query(
    seq: str,
    window: str = "10 SECONDS",
    gpms: Mapping[str, str] | None = None,
    *,
    streams: Iterable[str] = ("S",),
    head: str = "SELECT *",
    partition: str = "",
    tail: str = "",
    where: str = "",
) -> str:
    """A query over letters: GPM ``A`` asks for type ``a``, ``B`` for ``b``…, unless ``gpms`` says more.

    A value of ``gpms`` is a filter or pattern that is added to the GPM's body. Variables of GPM A are
    ``?a`` (the event's node), ``?av`` (its value).
    """
    gpms = gpms or {}
    streams = list(streams)
    names = dict.fromkeys(re.findall(r"\b(?!ALL\b)[A-Z]\d?\b", seq))
    declared = "\n".join(f"FROM STREAM {s} <{NS}{s}>" for s in streams)
    defined = "\n".join(
        f"DEFINE GPM {n} ON {', '.join(streams)} "
        f"{{ ?{n.lower()} a :{n[0].lower()} ; :v ?{n.lower()}v . {gpms.get(n, '')} }}"
        for n in names
    )
    by = f"PARTITION BY {partition}" if partition else ""
    body = f"WHERE {{ SEQ({seq})\n{defined}\n{where} }} {tail}"
    return f"PREFIX : <{NS}>\n{head} WITHIN {window} {by}\n{declared}\n{body}"


def events_of(match: spaseq.Match) -> str:
    """The events of a match, in order: ``a1b2``."""
    chosen = {
        (event.time, str(event.stream), event.n, str(event.graph).rpartition("/")[2])
        for events in match.events.values()
        for event in events
    }
    return "".join(name for *_, name in sorted(chosen))


def found(text: str, events: str | Iterable[Letter], **options: object) -> list[str]:
    """The matches of a query over letters, pushed one by one: the events of each, in order of delivery."""
    return [events_of(match) for match in matches(text, events, **options)]


def matches(text: str, events: str | Iterable[Letter], **options: object) -> Iterator[spaseq.Match]:
    """The matches themselves; ``options`` are the engine's."""
    engine = spaseq.Engine(**options)  # type: ignore[arg-type]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", spaseq.SpaseqWarning)
        handle = engine.register(text)
        for letter in letters(events) if isinstance(events, str) else events:
            engine.push(NS + letter.stream, letter.turtle, letter.time, name=f"{NS}{letter.name}")
            yield from handle.matches()
        engine.close()
        yield from handle.matches()
