"""Options of sources, for the command line, the catalogue and Python callers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Literal
from urllib.parse import unquote

from pyoxigraph import NamedNode

from spaseq.errors import SourceError
from spaseq.excerpts import hide
from spaseq.sources.spans import read_duration
from spaseq.sources.time_option import TimePath, read_time_option

GENERATED_AT: Final = NamedNode("http://www.w3.org/ns/prov#generatedAtTime")

FORMATS: Final = ("trig", "nq", "nt", "ttl", "messages", "jsonld", "ndjsonld", "jelly", "csv", "ndjson")

EXTENSIONS: Final = {
    ".trig": "trig",
    ".nq": "nq",
    ".nquads": "nq",
    ".nt": "nt",
    ".ntriples": "nt",
    ".ttl": "ttl",
    ".n3": "ttl",
    ".jsonld": "jsonld",
    ".ndjsonld": "ndjsonld",
    ".jsonl": "ndjsonld",
    ".messages": "messages",
    ".jelly": "jelly",
    ".csv": "csv",
    ".ndjson": "ndjson",
}

COMPRESSED: Final = (".gz", ".zst")

#: Units of a column of times: what it counts since 1970.
UNITS: Final = ("seconds", "milliseconds", "microseconds", "nanoseconds", "ticks")

#: Default of ``max_ahead`` for live sources: how far an event may be ahead of the wall clock.
LIVE_AHEAD: Final = timedelta(days=1)

#: Media types that name a format unambiguously; other formats need an option or an extension.
MEDIA_TYPES: Final = {
    "application/trig": "trig",
    "application/n-quads": "nq",
    "application/n-triples": "nt",
    "text/turtle": "ttl",
    "application/ld+json": "jsonld",
    "application/x-jelly-rdf": "jelly",
    "text/csv": "csv",
    "application/x-ndjson": "ndjson",
}


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """How the bytes of a source become events.

    ``format``: one of ``FORMATS``; None: by the file's extension.

    ``time``: the predicate of an event's time. It is looked up in the default graph, about the event's graph
    name. If it is not there, it is looked up inside the event's own graph. ``"arrival"`` makes the arrival
    number (0 for the first event) the time, in ticks. Other text is a column of rows. A ``TimePath`` is
    looked up inside the event's own graph.

    ``time_format``, ``unit``: how that column is written (CSV and NDJSON only): a format of ``strptime``, or
    the unit of a number since 1970 (``UNITS``; ``"ticks"`` have no unit). By default ISO dates are instants,
    and the stream's first integer decides how integers are read: as instants if it is a time from 1973 to
    2128 in seconds, milliseconds, microseconds or nanoseconds since 1970, and as ticks if not.

    ``triples``: how many triples make an event (N-Triples, Turtle and flat Jelly only).

    ``by``: where an event ends, if not as usual in the format. ``"subject"``: an event has the consecutive
    triples of one IRI. ``"message"``: it has all graphs of a message, a frame or a line. An IRI: each object
    of that predicate in a document is an event, with all triples that have the object as subject.

    ``context``: a JSON-LD context file that lifts rows (CSV and NDJSON only).

    ``items``: the path of an array in a JSON document, as ``feed.entity``. Each of its elements is an event.
    An element without a time has the time of the document (NDJSON, JSON-LD only).

    ``contexts``: local copies of JSON-LD contexts that are named by URL: a folder, or a map in JSON, URL →
    file (NDJSON, JSON-LD only). Nothing is ever fetched.

    ``header``: the names of the columns, for CSV without a header line. ``delimiter``: the separator of
    columns, for CSV (default a comma).

    ``order``: with ``"time"``, the source is read to its end, and its events are sorted by time (by graph
    name for equal times), whatever the order of its graphs and their times. rdflib, for one, writes graphs in
    no order.

    ``max_ahead``: an event further ahead of the wall clock is refused (semantics, section 7). None is no
    limit, or ``LIVE_AHEAD`` if the source ``is_live``: a broker, a socket, HTTP or a pipe.
    """

    format: str | None = None
    time: NamedNode | TimePath | str = GENERATED_AT
    time_format: str | None = None
    unit: str | None = None
    triples: int | None = None
    by: NamedNode | Literal["subject", "message"] | None = None
    context: Path | None = None
    items: str | None = None
    contexts: Path | None = None
    header: tuple[str, ...] | None = None
    delimiter: str | None = None
    order: Literal["arrival", "time"] = "arrival"
    max_ahead: timedelta | None = None
    is_live: bool = False


def parse_source(spec: str) -> tuple[str, SourceOptions]:
    """Return a location and its options, as on the command line: ``ticks.nt?triples=2&time=arrival``.

    Values may be percent-encoded; values with ``&`` must be. Raises SourceError for an unknown option or a
    bad value, naming the allowed ones.

    >>> parse_source("ticks.nt?triples=2&time=arrival")[1].triples
    2
    """
    location, _, query = spec.partition("?")
    if not location:
        raise SourceError(f"no location in {hide(spec)!r}: give a file, or - for standard input")
    values: dict[str, object] = {}
    for part in filter(None, query.split("&")):
        name, equals, raw = part.partition("=")
        value = unquote(raw)
        if not equals or not value:
            raise SourceError(f"option {name!r} of {hide(location)} has no value")
        if name in values:
            raise SourceError(f"option {name!r} of {hide(location)} is given twice")
        values[name] = read_option(name, value)
    return location, SourceOptions(**values)  # type: ignore[arg-type]  # see read_option


def read_option(name: str, value: str) -> object:
    """Convert the text of an option to the type of its field. Raises SourceError."""
    if name not in _READ:
        raise SourceError(f"unknown option {name!r}: one of {', '.join(_READ)}")
    return _READ[name](value)


def write_options(options: SourceOptions) -> dict[str, str]:
    """Return the options that differ from the defaults, as text for ``read_option``; paths are absolute."""
    usual = SourceOptions()
    changed = [name for name in OPTIONS if getattr(options, name) != getattr(usual, name)]
    return {name: _text(getattr(options, name)) for name in changed}


def _text(value: object) -> str:
    match value:
        case Path():
            return str(value.resolve())
        case tuple():
            return ",".join(value)
        case timedelta():
            return f"{value // timedelta(microseconds=1)} MICROSECONDS"
        case _:
            return str(value)


def _format(value: str) -> str:
    if value not in FORMATS:
        raise SourceError(f"unknown format {value!r}: one of {', '.join(FORMATS)}")
    return value


def _time_format(value: str) -> str:
    example = datetime(2001, 12, 31, 23, 59, 58, tzinfo=UTC)
    try:
        if datetime.strptime(example.strftime(value), value).year == example.year:
            return value
        problem = "it has no year"
    except ValueError as error:
        problem = str(error)
    raise SourceError(
        f"time_format={value!r} is not a format of strptime with a date: {problem}; write it as "
        "%d/%m/%Y %H:%M:%S"
    )


def _unit(value: str) -> str:
    if value not in UNITS:
        raise SourceError(f"unit={value!r} is unknown: one of {', '.join(UNITS)}")
    return value


def _triples(value: str) -> int:
    if not value.isascii() or not value.isdigit() or int(value) < 1:
        raise SourceError(f"triples={value!r} is not a number of triples per event: 1, 2, …")
    return int(value)


def _by(value: str) -> NamedNode | str:
    if value in ("subject", "message"):
        return value
    iri = read_time_option(value)
    if not isinstance(iri, NamedNode):
        raise SourceError(f"by={value!r} is neither 'subject' nor 'message' nor the IRI of a predicate")
    return iri


def _items(value: str) -> str:
    path = value.removeprefix("$.").removesuffix("[*]")
    if not all(path.split(".")) or set(path) & set("[]*"):
        raise SourceError(f"items={value!r} is not the path of an array: keys with dots between, feed.entity")
    return path


def _header(value: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in value.split(","))
    if not all(names) or len(set(names)) != len(names):
        raise SourceError(f"header={value!r} must name every column once, with commas between")
    return names


def _delimiter(value: str) -> str:
    if len(value) != 1 or value in '"\r\n':
        raise SourceError(f"delimiter={value!r} must be one character (a space is %20, a tab %09)")
    return value


def _order(value: str) -> str:
    if value not in ("arrival", "time"):
        raise SourceError(f"order={value!r} is neither 'arrival' nor 'time', which sorts the events")
    return value


def _max_ahead(value: str) -> timedelta:
    try:
        found = read_duration(value)
    except ValueError as error:
        raise SourceError(f"max_ahead: {error}") from None
    if not found:
        raise SourceError(f"max_ahead={value!r} must be more than 0, as in 1 DAYS")
    return found


_READ: Final[dict[str, Callable[[str], object]]] = {
    "format": _format,
    "time": read_time_option,
    "time_format": _time_format,
    "unit": _unit,
    "triples": _triples,
    "by": _by,
    "context": Path,
    "items": _items,
    "contexts": Path,
    "header": _header,
    "delimiter": _delimiter,
    "order": _order,
    "max_ahead": _max_ahead,
}

#: The names of all options, as written in a location.
OPTIONS: Final = tuple(_READ)

#: Formats that may have several graphs in one message.
_MESSAGES: Final = ("messages", "trig", "nq", "nt", "ttl", "jelly", "ndjsonld", "jsonld")

#: Options that only some formats have.
_ONLY: Final = {
    "triples": ("nt", "ttl", "jelly"),
    "context": ("csv", "ndjson"),
    "items": ("ndjson", "ndjsonld", "jsonld"),
    "contexts": ("ndjson", "ndjsonld", "jsonld"),
    "time_format": ("csv", "ndjson"),
    "unit": ("csv", "ndjson"),
    "header": ("csv",),
    "delimiter": ("csv",),
}


def resolve_format(location: str, options: SourceOptions) -> str:
    """Return the format of a source: its option, or its extension. Raises SourceError without either."""
    path = Path(location)
    extensions = [suffix.lower() for suffix in path.suffixes[-2:]]
    if extensions and extensions[-1] in COMPRESSED:
        extensions.pop()
    found = options.format or (EXTENSIONS.get(extensions[-1]) if extensions else None)
    if found is None:
        raise SourceError(
            f"{location}: its format cannot be told from its name: add ?format=, one of {', '.join(FORMATS)}"
        )
    if found not in FORMATS:
        raise SourceError(f"unknown format {found!r}: one of {', '.join(FORMATS)}")
    return found


def check_options(location: str, form: str, options: SourceOptions) -> None:
    """Raise SourceError for an option that ``form`` does not have."""
    for field in fields(options):
        only = _ONLY.get(field.name)
        if only and form not in only and getattr(options, field.name) is not None:
            raise SourceError(
                f"{location}: option {field.name!r} is for {' and '.join(only)}, not for {form}"
            )
    if options.by is not None:
        _check_by(location, form, options)
    is_column = isinstance(options.time, str) and options.time != "arrival"
    if is_column and form not in ("csv", "ndjson"):
        raise SourceError(
            f"{location}: time={options.time!r} is neither 'arrival' nor the IRI of a predicate nor a path "
            f"(<IRI>/<IRI>), and {form} has no columns"
        )
    if options.time_format is not None and options.unit is not None:
        raise SourceError(f"{location}: a time has a time_format= or a unit=, not both")
    if (options.time_format or options.unit) and options.time in (GENERATED_AT, "arrival"):
        raise SourceError(f"{location}: time_format= and unit= are for a column: name it by time=COLUMN")


def _check_by(location: str, form: str, options: SourceOptions) -> None:
    by = options.by if isinstance(options.by, str) else "IRI"
    only = {
        "subject": ("nt", "ttl", "jelly"),
        "message": _MESSAGES,
        "IRI": ("nt", "ttl", "nq", "trig", "jsonld"),
    }
    if form not in only[by]:
        raise SourceError(f"{location}: by={by} is for {', '.join(only[by])}, not for {form}")
    if options.triples is not None or options.items is not None:
        other = "triples=" if options.triples is not None else "items="
        raise SourceError(f"{location}: an event ends by {other} or by by=, not by both")
