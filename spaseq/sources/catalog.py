"""A stream catalogue in RDF: the sources that ``FROM STREAM <iri>`` refers to.

Its terms are those of VoCaLS (streams and endpoints), DCAT (``dcat:accessURL``, ``dcat:mediaType``), RDF-STaX
(the stream's type) and ``vocab/spaseq.ttl``. ``vocab/catalog-shapes.ttl`` has the shapes of a catalogue.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from pyoxigraph import BlankNode, Literal, NamedNode, RdfFormat, parse

from spaseq.errors import SourceError
from spaseq.excerpts import hide
from spaseq.limits import Limits
from spaseq.nesting import NestingError, check_triple_terms, too_long
from spaseq.sources._bytes import MARK
from spaseq.sources._options import MEDIA_TYPES, SourceOptions, read_option
from spaseq.terms.dictionary import Term
from spaseq.terms.values import RDF

_VOCALS: Final = "http://w3id.org/rsp/vocals#"
_DCAT: Final = "http://www.w3.org/ns/dcat#"
_DCTERMS: Final = "http://purl.org/dc/terms/"
_OURS: Final = "https://w3id.org/spaseq#"
_IANA: Final = "https://www.iana.org/assignments/media-types/"

#: The schemes of live sources (see ``spaseq.connect``).
LIVE: Final = ("kafka", "mqtt", "mqtts", "ws", "wss", "http", "https", "ldes+http", "ldes+https")

_Description = dict[tuple[Term, str], list[Term]]


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """One stream: its title, the location of its events, and how to read them.

    ``location`` is a file, or text with the URL of a live source, which is not opened here.
    """

    stream: NamedNode
    title: str
    location: Path | str
    options: SourceOptions

    def __repr__(self) -> str:
        shown = hide(str(self.location))
        return f"CatalogEntry({self.stream!r}, {self.title!r}, location={shown!r}, options={self.options!r})"


def load_catalog(path: str | Path) -> dict[NamedNode, CatalogEntry]:
    """Load the streams of a catalogue in Turtle; relative locations are relative to its file.

    Raises SourceError if it cannot be read, or lacks the location or the format of a stream.
    """
    path = Path(path)
    description: _Description = defaultdict(list)
    streams: list[NamedNode] = []
    try:
        text = path.read_bytes().removeprefix(MARK)
        check_triple_terms(text, Limits())
        for s, p, o, _ in parse(text, format=RdfFormat.TURTLE, base_iri=path.absolute().as_uri()):
            if not isinstance(s, NamedNode | BlankNode) or not isinstance(o, NamedNode | BlankNode | Literal):
                continue
            description[s, p.value].append(o)
            if isinstance(s, NamedNode) and (p.value, o) == (RDF + "type", NamedNode(_VOCALS + "RDFStream")):
                streams.append(s)
    except OSError as error:
        raise SourceError(f"the catalogue {path} cannot be read: {error.strerror or error}") from error
    except SyntaxError as error:
        raise SourceError(f"the catalogue {path} is not Turtle: {error.msg}") from error
    except MemoryError as error:
        raise SourceError(f"the catalogue {path} cannot be read: {too_long(error)}") from None
    except NestingError as error:
        raise SourceError(f"the catalogue {path}: {error}") from None
    try:
        return {stream: _entry(stream, description) for stream in streams}
    except SourceError as error:
        raise SourceError(f"the catalogue {path}: {error}") from None


def _entry(stream: NamedNode, description: _Description) -> CatalogEntry:
    endpoint = _one(description, stream, _VOCALS + "hasEndpoint")
    location = _place(stream, _one(description, endpoint, _DCAT + "accessURL") if endpoint else None)
    if endpoint is None or location is None:
        raise SourceError(f"{stream} has no vocals:hasEndpoint with a dcat:accessURL")

    def text(node: Term, term: str) -> str | None:
        value = _one(description, node, term)
        return None if value is None else value.value

    time = text(stream, _OURS + "timePredicate") or text(stream, _OURS + "time")
    by = text(endpoint, _OURS + "by")
    media = text(endpoint, _DCAT + "mediaType")
    values = {
        "format": text(endpoint, _DCTERMS + "format") or _media_format(stream, media),
        "time": "arrival" if time == _OURS + "arrival" else time,
        "time_format": text(endpoint, _OURS + "timeFormat"),
        "unit": text(endpoint, _OURS + "unit"),
        "items": text(endpoint, _OURS + "items"),
        "triples": text(endpoint, _OURS + "triplesPerEvent"),
        "by": {_OURS + "subject": "subject", _OURS + "message": "message"}.get(by or "", by),
        "header": text(endpoint, _OURS + "header"),
        "delimiter": text(endpoint, _OURS + "delimiter"),
    }
    read = {name: read_option(name, value) for name, value in values.items() if value is not None}
    for name, term in (("context", _OURS + "context"), ("contexts", _OURS + "contexts")):
        place = _file(stream, _one(description, endpoint, term))
        if place is not None:
            read[name] = place
    title = text(stream, _DCTERMS + "title") or stream.value
    return CatalogEntry(stream, title, location, SourceOptions(**read))  # type: ignore[arg-type]  # see read_option


def _one(description: _Description, node: Term, predicate: str) -> Term | None:
    values = description.get((node, predicate), [])
    if len(values) > 1 and not predicate.startswith(_DCTERMS + "title"):
        raise SourceError(f"{node} has {len(values)} values for <{predicate}>: one is needed")
    return values[0] if values else None


def _place(stream: NamedNode, location: Term | None) -> Path | str | None:
    if isinstance(location, NamedNode) and urlsplit(location.value).scheme in LIVE:
        return location.value
    return _file(stream, location)


def _file(stream: NamedNode, location: Term | None) -> Path | None:
    if location is None:
        return None
    parts = urlsplit(location.value)
    if not isinstance(location, NamedNode) or parts.scheme != "file":
        raise SourceError(
            f"{stream}: {hide(location.value)} is neither a file nor a URL of {', '.join(LIVE)}"
        )
    return Path(unquote(parts.path))


def _media_format(stream: NamedNode, media: str | None) -> str | None:
    if media is None:
        return None
    name = media.removeprefix(_IANA)
    if name not in MEDIA_TYPES:
        raise SourceError(f"{stream}: unknown media type {name}: one of {', '.join(MEDIA_TYPES)}")
    return MEDIA_TYPES[name]
