"""``contexts=``: local copies of the JSON-LD contexts that documents name by URL. Nothing is fetched."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from spaseq.errors import SourceError
from spaseq.limits import Limits
from spaseq.nesting import check_json

_EXTENSIONS: Final = (".jsonld", ".json", "")


class Contexts:
    """Contexts by URL, from a folder or from a map (JSON: URL → file, relative to the map).

    In a folder, ``https://www.w3.org/ns/activitystreams`` is ``www.w3.org/ns/activitystreams.jsonld`` or
    ``activitystreams.jsonld`` (or ``.json``). Raises SourceError if neither is there.
    """

    def __init__(self, place: Path, limits: Limits) -> None:
        self._place = place
        self._limits = limits
        self._known: dict[str, object] = {}
        self._files: dict[str, Path] = {}
        if place.is_dir():
            return
        try:
            found = json.loads(place.read_bytes())
            self._files = {url: place.parent / file for url, file in found.items()}
        except OSError as error:
            raise SourceError(f"contexts={place} cannot be read: {error.strerror or error}") from error
        except (ValueError, AttributeError, TypeError):
            raise SourceError(
                f'contexts={place} is neither a folder nor a map, as {{"https://…": "FILE"}} is one'
            ) from None

    def filled(self, text: bytes) -> bytes:
        """Return a document with the contexts that it names inserted. Raises ValueError."""
        check_json(text, self._limits)
        return json.dumps(self._walk(json.loads(text))).encode()

    def resolve(self, context: object, above: tuple[str, ...] = ()) -> object:
        """Return a context with the contexts that it names inserted. Raises ValueError for a missing one."""
        if isinstance(context, str):
            return self._load(context, above)
        if isinstance(context, list):
            each = [self.resolve(part, above) for part in context]
            return [part for one in each for part in (one if isinstance(one, list) else [one])]
        if not isinstance(context, dict):
            return context
        found = {name: self._term(term, above) for name, term in context.items() if name != "@import"}
        imported = self.resolve(context["@import"], above) if "@import" in context else {}
        return {**imported, **found} if isinstance(imported, dict) else [imported, found]

    def _term(self, term: object, above: tuple[str, ...]) -> object:
        if isinstance(term, dict) and "@context" in term:
            return {**term, "@context": self.resolve(term["@context"], above)}
        return term

    def _walk(self, value: object) -> object:
        if isinstance(value, list):
            return [self._walk(part) for part in value]
        if not isinstance(value, dict):
            return value
        return {
            key: self.resolve(part) if key == "@context" else self._walk(part) for key, part in value.items()
        }

    def _load(self, url: str, above: tuple[str, ...]) -> object:
        if url in above:
            raise ValueError(f"the context {url} names itself, by {' and '.join(above)}")
        if url not in self._known:
            path = self._files.get(url) or next(filter(Path.is_file, self._candidates(url)), None)
            if path is None:
                raise ValueError(f"the context {url} is not in contexts={self._place}: {place_of(url)}")
            try:
                data = path.read_bytes()
                check_json(data, self._limits)
                document = json.loads(data)
            except (OSError, ValueError) as error:
                raise ValueError(f"the context {url} cannot be read from {path}: {error}") from None
            context = document.get("@context") if isinstance(document, dict) else None
            if context is None:
                raise ValueError(f'the context {url}, in {path}, has no "@context"')
            self._known[url] = self.resolve(context, (*above, url))
        return self._known[url]

    def _candidates(self, url: str) -> Iterator[Path]:
        if self._files or not self._place.is_dir():
            return
        parts = [part for part in f"{urlsplit(url).netloc}{urlsplit(url).path}".split("/") if part]
        if ".." in parts:
            return
        for name in ("/".join(parts), parts[-1] if parts else ""):
            yield from (self._place / f"{name}{extension}" for extension in _EXTENSIONS if name)


def place_of(url: str) -> str:
    """Return in words where a context's file must be.

    >>> place_of("https://www.w3.org/ns/activitystreams")
    'save it there as activitystreams.jsonld'
    """
    name = Path(urlsplit(url).path).name or urlsplit(url).netloc
    return f"save it there as {name if '.' in name else f'{name}.jsonld'}"


def named_in(context: object) -> list[str]:
    """Return the URLs that a context names at its top level."""
    parts = context if isinstance(context, list) else [context]
    return [part for part in parts if isinstance(part, str)]
