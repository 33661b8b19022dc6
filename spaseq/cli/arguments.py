"""Values from command-line arguments: durations, sources per stream, background graphs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from functools import reduce
from math import inf
from pathlib import Path
from typing import Final

import typer
from pyoxigraph import NamedNode

from spaseq.connect import LiveSource, Location, after, hide, parse_location, resolved
from spaseq.errors import EngineError, SourceError, SpaseqError
from spaseq.language.reading.hints import nearest
from spaseq.language.syntax import Query, RegisterKind
from spaseq.limits import Limits
from spaseq.sources import SourceOptions
from spaseq.sources.catalog import CatalogEntry
from spaseq.sources.spans import read_duration

#: The location of a stream, and how it is read.
Source = tuple[Location, SourceOptions]

_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(kB|MB|GB|KiB|MiB|GiB|B|)")
_BYTES: Final = {"": 1, "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9} | {
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
}


class UsageError(SpaseqError):
    """The command line asks for something impossible; exit status 2."""


class RunEngine(StrEnum):
    """The engine that runs a query."""

    LOCAL = "local"
    SPARK = "spark"


class PathsFormat(StrEnum):
    """Output formats of ``paths``; the last four are for ``--explain``, SVG also for paths."""

    TABLE = "table"
    NDJSON = "ndjson"
    CSV = "csv"
    NQUADS = "nquads"
    TEXT = "text"
    DOT = "dot"
    SVG = "svg"
    JSON = "json"


class RetrieveFormat(StrEnum):
    """Output formats of ``retrieve``: ``text`` has triples by their labels, ``table`` scores and paths."""

    TEXT = "text"
    TABLE = "table"
    JSON = "json"
    NQUADS = "nquads"
    SVG = "svg"


class PathsEngine(StrEnum):
    """The engine that evaluates a path query."""

    LOCAL = "local"
    SPARK = "spark"
    GRAPHFRAMES = "graphframes"


def check_matcher(name: str, query: Query, engine: RunEngine, file: str | None = None) -> None:
    """Raise ``UsageError`` if the matcher of that name cannot run the query on ``engine``.

    ``file``: the file of the query, if there are several.
    """
    if engine is not RunEngine.LOCAL:
        raise UsageError("--matcher is for --engine local")
    # Imported here: most runs leave the choice to the planner.
    from spaseq.automaton.normal import normalise
    from spaseq.matching.planner import check

    try:
        check(name, normalise(query))
    except EngineError as error:
        where = "" if file is None else f"{file}: "
        raise UsageError(f"--matcher: {where}{error}") from None


def duration(text: str) -> timedelta:
    """Return a duration such as ``5s``. Raises ``typer.BadParameter``."""
    try:
        return read_duration(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def size(text: str) -> int:
    """Return a number of bytes such as ``2GB``.

    >>> size("2GB"), size("1.5MiB"), size("4096")
    (2000000000, 1572864, 4096)
    """
    found = _SIZE.fullmatch(text.strip())
    if found is None or not 1 <= (count := float(found[1]) * _BYTES[found[2] or ""]) < inf:
        raise typer.BadParameter(f"{text!r} is not a size: write a number and kB, MB, GB, KiB, MiB or GiB")
    return int(count)


def latency(text: str) -> timedelta:
    """Return a bound such as ``50ms``."""
    found = duration(text)
    if not found:
        raise typer.BadParameter(f"{text!r} is not a bound: it must be above 0")
    return found


def often(text: str) -> timedelta | int:
    """Return an interval: a duration, or a number of events."""
    if not text.strip().isdecimal():
        return duration(text)
    if not (count := int(text)):
        raise typer.BadParameter("0 events are too few: write 1 or more, or a duration")
    return count


def limits(assignments: Iterable[str]) -> Limits:
    """Return the limits from the values of ``--limit``."""
    try:
        return reduce(Limits.updated, assignments, Limits())
    except EngineError as error:
        raise UsageError(f"--limit {error}") from None


def knowledge(assignments: Iterable[str]) -> dict[str, Path]:
    """Return the values of ``--kb``: graph IRI → file."""
    graphs: dict[str, Path] = {}
    for assignment in assignments:
        iri, equals, file = assignment.rpartition("=")  # IRIs have "=" more often than file names
        iri = iri.removeprefix("<").removesuffix(">")
        if not equals or not iri or not file:
            raise UsageError(f"--kb {assignment!r} is not IRI=FILE")
        if iri in graphs:
            raise UsageError(f"--kb gives <{iri}> twice")
        graphs[iri] = Path(file)
    return graphs


def stream_sources(
    queries: Mapping[str, Query],
    assignments: Iterable[str],
    catalog: Mapping[NamedNode, CatalogEntry] | None,
    *,
    all_needed: bool = True,
) -> dict[str, Source]:
    """Return stream IRI → source, for every stream that the queries read from outside.

    ``assignments`` are the values of ``-s``; the catalogue supplies the others. Raises UsageError for a name
    that no query declares, or that two queries declare for different streams. Raises it for a stream given
    twice, unless the second source is live and continues the first. If ``all_needed``, also raises it for a
    stream without a source.
    """
    given: dict[str, Source] = {}
    for assignment in assignments:
        iri, spec = _split(queries, assignment)
        try:
            location, options = parse_location(spec)
            if iri in given:
                if not isinstance(location, LiveSource):
                    raise SourceError("this stream has a source already; only a live one goes on with a file")
                location = after((given[iri],), location)
            given[iri] = location, options
        except SourceError as error:
            raise UsageError(f"-s {hide(assignment)}: {error}") from None
    declared = {stream.iri: stream.name for query in queries.values() for stream in query.streams}
    for stream in declared:
        entry = catalog.get(stream) if catalog else None
        if stream.value not in given and entry is not None:
            try:
                given[stream.value] = resolved(entry.location, entry.options)
            except SourceError as error:
                raise UsageError(f"the catalogue, {stream}: {error}") from None
    registered = [query.register for query in queries.values() if query.register is not None]
    made = {register.iri for register in registered if register.kind is RegisterKind.STREAM}
    missing = [f"{n} {iri}" for iri, n in declared.items() if iri.value not in given and iri not in made]
    if missing and all_needed:
        raise UsageError(_missing(missing, catalog))
    if sum(location == "-" for location, _ in given.values()) > 1:
        raise UsageError("standard input (-) can be one stream only")
    return given


def _split(queries: Mapping[str, Query], assignment: str) -> tuple[str, str]:
    """Split ``NAME=SOURCE`` or ``IRI=SOURCE``: return the IRI of a stream of the queries, and its source.

    An IRI may itself contain ``=``, so declared names and IRIs are looked for first.
    """
    streams: dict[str, dict[str, str]] = {}
    for file, query in queries.items():
        for s in query.streams:
            for text in (s.name, s.iri.value, f"<{s.iri.value}>"):
                streams.setdefault(text, {}).setdefault(s.iri.value, file)
    for text in sorted(streams, key=len, reverse=True):
        if assignment.startswith(f"{text}="):
            if len(streams[text]) > 1:
                (one, first), (other, second), *_ = streams[text].items()
                raise UsageError(
                    f"-s {hide(assignment)}: {text} is <{one}> in {first} "
                    f"and <{other}> in {second}: give IRIs"
                )
            return next(iter(streams[text])), assignment[len(text) + 1 :]
    name, equals, _ = assignment.partition("=")
    if not equals:
        raise UsageError(f"-s {hide(assignment)!r} is not NAME=SOURCE or IRI=SOURCE")
    alike = nearest(name, streams)
    names = dict.fromkeys(s.name for query in queries.values() for s in query.streams)
    many = len(queries) > 1
    declare = "they declare" if many else "it declares"
    hint = f"did you mean {alike}?" if alike else f"{declare} {_listed(names)}"
    who = "no query declares a" if many else "the query declares no"
    raise UsageError(f"-s {hide(assignment)}: {who} stream {name}: {hint}")


def _missing(missing: Sequence[str], catalog: Mapping[NamedNode, CatalogEntry] | None) -> str:
    lines = [f"no source for stream {_listed(missing)}"]
    if catalog is None:
        lines.append("hint: give each one with -s NAME=FILE, or a catalogue that has it with --catalog FILE")
    else:
        known = _listed(sorted(str(iri) for iri in catalog)) or "no streams"
        lines.append(f"hint: give each one with -s NAME=FILE; the catalogue has {known}")
    return "\n".join(lines)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)
