"""``ldes+http://`` and ``ldes+https://``: the members of a Linked Data Event Stream, each as a message.

Pages are read in the order of the earliest times of their members, by their relations. A member is returned
once no unread page may have an earlier one. A page that may change is requested again.
"""

from __future__ import annotations

import re
import time
from base64 import b64decode, b64encode
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import blake2b
from heapq import heappop, heappush
from itertools import count
from pathlib import PurePosixPath
from typing import Final
from urllib.parse import urldefrag, urljoin, urlsplit

import numpy as np
from pyoxigraph import NamedNode, Quad, RdfFormat, serialize

from spaseq.connect.address import SCHEMES, Address
from spaseq.connect.again import Place, same
from spaseq.connect.clients._extra import context, required
from spaseq.connect.clients.http import Body
from spaseq.connect.clients.tree import PAGES, Page, parse_page
from spaseq.connect.live import CONNECT, ENOUGH_BYTES
from spaseq.connect.messages import Message, form_of, now
from spaseq.connect.reconnect import DisconnectedError
from spaseq.errors import SourceError, warn
from spaseq.events import EARLIEST, END
from spaseq.excerpts import hide
from spaseq.limits import Limits
from spaseq.sources import SourceOptions
from spaseq.sources._bytes import LONGEST
from spaseq.sources._options import EXTENSIONS, GENERATED_AT, MEDIA_TYPES
from spaseq.sources.assembly.sink import instead
from spaseq.sources.formats.contexts import Contexts
from spaseq.sources.time_option import TimePath
from spaseq.sources.times import read_time
from spaseq.terms.dictionary import Term

#: How many of the last members returned are remembered, to skip repetitions: 350 KB of a state file.
REMEMBERED: Final = 1 << 14

#: The most pages remembered, and the most pages to be read or requested again.
PAGES_KNOWN: Final = 1 << 16

#: Bytes of members that wait for pages with earlier ones.
HELD: Final = 1 << 28

#: Seconds after which a page that may change is requested again: without Cache-Control, and at least.
POLL: Final = 60.0
POLL_LEAST: Final = 1.0

#: Attempts for a page that cannot be parsed: it may have been read while it was written.
_TRIES: Final = 3

#: The most redirects in a row, and the statuses of redirects.
_MOVES: Final = 5
_MOVED: Final = (301, 302, 303, 307, 308)
_UNCHANGED: Final = 304
_GONE: Final = (404, 410)

_MAX_AGE: Final = re.compile(r"max-age=(\d{1,9})")
_ACCEPT: Final = (
    "application/n-quads, application/trig, text/turtle, application/n-triples, application/ld+json;q=0.5"
)


@dataclass(slots=True)
class _Known:
    """A page that is to be read, may change, or has members that wait.

    No member is earlier than ``since``.
    """

    url: str
    since: int = EARLIEST
    waiting: int = 0
    is_final: bool = False
    etag: str = ""
    pause: float = POLL


class _SeenMembers:
    """The digests of the members returned last, the newest last, with the time of each.

    ``floor``: all members before this time were returned.
    """

    def __init__(self, numbers: Sequence[int] = (), floor: int = EARLIEST) -> None:
        half = len(numbers) // 2
        self._times = OrderedDict(zip(numbers[:half], numbers[half:], strict=True))
        self.floor = floor

    @property
    def numbers(self) -> list[int]:
        """Return the digests, then the times."""
        return [*self._times, *self._times.values()]

    def has(self, name: int, time: int) -> bool:
        """Return whether a member was returned; a member without a time has the time ``EARLIEST``."""
        return name in self._times or EARLIEST < time < self.floor

    def add(self, name: int, time: int) -> bool:
        """Remember a member. Return whether another one was forgotten."""
        self._times[name] = time
        if len(self._times) <= REMEMBERED:
            return False
        _, gone = self._times.popitem(last=False)
        # Other members of the same time may not be forgotten yet.
        self.floor = max(self.floor, gone + (next(iter(self._times.values())) > gone))
        return True


class LdesClient:
    """Reads the pages of a stream. It ends when no page is left that may change.

    ``of_members``: how the messages are to be read.
    """

    def __init__(self, address: Address, options: SourceOptions, limits: Limits) -> None:
        """Create a client. Raises SourceError for options that members do not have."""
        required("httpx", "http")
        context(address)  # reports errors of ca= now
        if options.by is not None:
            raise SourceError(f"{address}: each tree:member is an event: leave by= out")
        if options.format not in (None, *PAGES):
            raise SourceError(f"{address}: the format of its pages is one of {', '.join(PAGES)}")
        self.of_members = replace(options, format="nq", contexts=None)
        form_of(str(address), self.of_members)
        self._address, self._options, self._limits = address, options, limits
        self._others = tuple(setting for setting in address.settings if setting[0] != "token")
        self._contexts = Contexts(options.contexts, limits) if options.contexts else None
        # The object ``GENERATED_AT`` is the default. ``time=prov:generatedAtTime``, written out, is not it.
        self._is_stamped = options.time is GENERATED_AT
        self._path: tuple[NamedNode, ...] | None = None  # what members are ordered by; () if nothing
        self._root = _plain(replace(address, scheme=address.scheme.removeprefix("ldes+")).url)
        self._pages: dict[str, _Known] = {}
        self._linked: OrderedDict[int, None] = OrderedDict()
        self._queue: list[tuple[int, int, _Known]] = []  # to be read now, by earliest time
        self._later: list[tuple[float, int, _Known]] = []
        self._held: list[tuple[int, int, int, _Known, Message]] = []
        self._held_bytes = 0
        self._waiting: set[int] = set()
        self._given = _SeenMembers()
        self._number = count()
        self._tries, self._has_warned = 0, False
        self._body: Body | None = None
        self._url, self._parts, self._size = "", [b""], 0
        self._link(self._root, EARLIEST)

    # --- as a client ----------------------------------------------------------------------------

    def open(self, seconds: float) -> None:
        """Request the next page, if one is due."""
        if not self._queue:
            return
        if self._held_bytes > HELD:
            raise SourceError(
                f"{self._address}: members of more than {HELD:,} bytes wait, since any page that is left may "
                "have earlier ones: give a view whose relations say from when on a page has members "
                "(tree:GreaterThanOrEqualToRelation, with the ldes:timestampPath as its tree:path)"
            )
        self._body = self._ask(self._queue[0][2], seconds)
        self._parts, self._size = [], 0

    def read(self, most: int, seconds: float) -> Sequence[Message] | None:
        while self._body is None and self._later and self._later[0][0] <= time.monotonic():
            _, number, page = heappop(self._later)
            heappush(self._queue, (page.since, number, page))
        if found := self._ready(most):
            return found
        if self._body is None:
            self.open(self._address.seconds("connect", CONNECT))
        if self._body is None:
            if not self._later:
                return None
            time.sleep(max(0.0, min(seconds, self._later[0][0] - time.monotonic())))
            return ()
        block = self._body.take(seconds)
        if block is None:
            self._complete(self._queue[0][2], self._body)
        else:
            self._parts.append(block)
            self._size += len(block)
            if self._size > LONGEST:
                raise SourceError(f"{hide(self._url)}: a page of more than {LONGEST} bytes")
        return ()

    def done(self, messages: Sequence[Message]) -> None:
        """Do nothing: the server keeps its members."""

    @property
    def place(self) -> Place:
        """Return the pages that are left, and the digests of known members and pages."""
        return {
            "of": str(self._address),
            "path": None if self._path is None else [step.value for step in self._path],
            "floor": self._given.floor,
            "given": _packed(self._given.numbers),
            "linked": _packed([*self._linked]),
            # The URL of the source may have a secret in its query.
            "pages": [["" if p.url == self._root else p.url, p.since] for p in self._pages.values()],
        }

    def resume(self, place: Place) -> None:
        same(place, str(self._address), str(self._address))
        self._path = None if place["path"] is None else tuple(map(NamedNode, place["path"]))
        self._given = _SeenMembers(_unpacked(place["given"]), place["floor"])
        self._linked = OrderedDict.fromkeys(_unpacked(place["linked"]))
        self._pages, self._queue = {}, []
        for url, since in place["pages"]:
            self._add(url or self._root, since)

    def close(self) -> None:
        if self._body is not None:
            self._body.close()
            self._body = None

    # --- members --------------------------------------------------------------------------------

    def _ready(self, most: int) -> list[Message]:
        """Return members that are earlier than all members of unread pages."""
        bound = self._queue[0][0] if self._queue and self._path else END
        found: list[Message] = []
        size = 0
        while self._held and len(found) < most and size < ENOUGH_BYTES and self._held[0][0] < bound:
            key, _, name, page, message = heappop(self._held)
            found.append(message)
            size += len(message.value)
            self._waiting.discard(name)
            page.waiting -= 1
            self._settle(page)
            if self._given.add(name, key) and not self._path and not self._has_warned:
                self._has_warned = True
                warn(
                    f"{self._address}: nothing says the order of its members, and of those that were given "
                    f"{REMEMBERED:,} are remembered: older ones come again with a page that changes"
                )
        self._held_bytes -= size
        return found

    def _hold(self, page: _Known, said: Page) -> None:
        """Take the new members of a page."""
        path, arrived = self._path or (), now()
        for member in said.members:
            if not isinstance(member, NamedNode):
                raise SourceError(
                    f"{hide(page.url)}: a tree:member is not an IRI, by which it could be known again"
                )
            name, rows = _digest(member.value), said.rows(member)
            ends = TimePath(path).ends(rows, member) if path else []
            key = _first(ends)
            if name in self._waiting or self._given.has(name, key):
                continue
            quads = [Quad(*row, member) for row in rows]  # type: ignore[arg-type]  # rows are of quads
            problem = ""
            if self._is_stamped:
                quads += [Quad(member, GENERATED_AT, end) for end in ends]
                if not ends:
                    problem = f"no time: nothing says {TimePath(path)}, the ldes:timestampPath of its stream"
            value = serialize(quads, format=RdfFormat.N_QUADS) or b""
            message = Message(value, f"member {member.value}", arrived, problem)
            heappush(self._held, (key, next(self._number), name, page, message))
            self._waiting.add(name)
            self._held_bytes += len(value)
            page.waiting += 1

    # --- pages ----------------------------------------------------------------------------------

    def _link(self, url: str, since: int) -> None:
        """Queue a page that was not linked before."""
        name = _digest(url)
        if name not in self._linked:
            self._add(url, since)
        self._linked[name] = None
        self._linked.move_to_end(name)
        if len(self._linked) > PAGES_KNOWN:
            self._linked.popitem(last=False)

    def _add(self, url: str, since: int) -> None:
        """Queue a page."""
        page = self._pages[url] = _Known(url, since)
        heappush(self._queue, (since, next(self._number), page))
        if len(self._pages) > PAGES_KNOWN:
            raise SourceError(
                f"{self._address}: more than {PAGES_KNOWN:,} pages may change: let the server answer "
                "Cache-Control: immutable for those that are complete"
            )

    def _ask(self, page: _Known, seconds: float) -> Body:
        """Return the response for a page after redirects; ``_url`` is its final URL."""
        asked = {"Accept": _ACCEPT} | ({"If-None-Match": page.etag} if page.etag else {})
        answers = (200, _UNCHANGED, *_MOVED, *(() if page.url == self._root else _GONE))
        self._url = page.url
        for _ in range(_MOVES):
            if not self._url.startswith(("http://", "https://")):
                raise SourceError(
                    f"{self._address}: a page is at {hide(self._url)}, which HTTP does not reach"
                )
            # Credentials are sent to the source's own server only.
            is_own = urlsplit(self._url)[:2] == urlsplit(self._root)[:2]
            address = self._address if is_own else replace(self._address, user="", settings=self._others)
            body = Body(address, seconds, asked, answers, self._url)
            if body.status not in _MOVED:
                return body
            body.close()
            self._url = _plain(urljoin(self._url, body.headers.get("Location", "")))
            self._linked[_digest(self._url)] = None
        raise SourceError(f"{hide(page.url)}: it is redirected more than {_MOVES} times in a row")

    def _complete(self, page: _Known, body: Body) -> None:
        """Handle the end of a page."""
        self.close()
        if body.status in _GONE:
            warn(f"{hide(page.url)}: the server answers {body.status}: the rest of this page is not read")
            page.is_final = True
        elif body.status != _UNCHANGED:
            self._take(page, b"".join(self._parts), body.media)
        heappop(self._queue)
        said = body.headers.get("Cache-Control", "").lower()
        if self._url == page.url:
            page.etag = body.headers.get("ETag", page.etag)
        if age := _MAX_AGE.search(said):
            page.pause = max(POLL_LEAST, float(age[1]))
        page.is_final |= "immutable" in said
        self._settle(page)
        if not page.is_final:
            heappush(self._later, (time.monotonic() + page.pause, next(self._number), page))

    def _settle(self, page: _Known) -> None:
        """Forget a page with nothing left."""
        if page.is_final and not page.waiting:
            self._pages.pop(page.url, None)

    def _take(self, page: _Known, text: bytes, media: str) -> None:
        """Read a page: its members, and the pages that it links to."""
        suffix = PurePosixPath(urlsplit(self._url).path).suffix
        form = self._options.format or MEDIA_TYPES.get(media) or EXTENSIONS.get(suffix)
        if form not in PAGES:
            raise SourceError(
                f"{hide(self._url)}: the server answers {media or 'without a Content-Type'}, which is not a "
                f"page in RDF: give the URL of one, or say by ?format= how it is written: {', '.join(PAGES)}"
            )
        try:
            text = self._contexts.filled(text) if self._contexts and form == "jsonld" else text
            said = Page(parse_page(text, form, self._url, self._limits))
        except ValueError as error:
            self._tries += 1
            reason = f"{hide(self._url)}: the page cannot be read as {form}: {error}"
            if self._tries < _TRIES:
                raise DisconnectedError(reason) from None
            raise SourceError(reason) from None
        self._tries = 0
        if self._path is None:
            self._begin(page, said)
        links = said.links(self._path or ())
        if page.url == self._root and not said.members and not links:
            self._enter(page, said)
        for url, since in links.items():
            self._link(_plain(url), since)
        self._hold(page, said)

    def _begin(self, page: _Known, said: Page) -> None:
        """Find out what members are ordered by, as soon as a page says it or has members."""
        missing = "the stream has no ldes:timestampPath"
        try:
            self._path = said.timestamp_path()
        except ValueError as error:
            missing = str(error)
        if self._path is not None or not said.members:
            return
        if self._is_stamped:
            rows = [row for m in said.members[:1] if isinstance(m, NamedNode) for row in said.rows(m)]
            raise SourceError(f"{hide(page.url)}: {missing}: time= says the time of members: {instead(rows)}")
        match self._options.time:
            case TimePath(steps=steps):
                self._path = steps
            case NamedNode() as predicate:
                self._path = (predicate,)
            case _:
                self._path = ()

    def _enter(self, page: _Known, said: Page) -> None:
        """Continue at the view that a page describes, if the page is only a description of the stream."""
        views = sorted({_plain(view) for view in said.views})
        if not views:
            raise SourceError(
                f"{hide(page.url)}: it has neither tree:member nor tree:relation nor tree:view, so it is not "
                "a page of a Linked Data Event Stream: give the URL of one"
            )
        if page.url in views or self._url in views:
            return  # it has no members yet
        if len(views) > 1:
            raise SourceError(f"{hide(page.url)}: it has several views: give one of {', '.join(views)}")
        page.is_final = True
        self._link(views[0], EARLIEST)


def _digest(text: str) -> int:
    """Return the digest by which a name is recognized."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little", signed=True)


def _first(ends: Sequence[Term]) -> int:
    """Return the earliest time among terms; ``EARLIEST`` if there is none."""
    for end in ends:
        with suppress(ValueError):
            return read_time(end).value
    return EARLIEST


def _packed(numbers: Sequence[int]) -> str:
    return b64encode(np.array(numbers, dtype="<i8").tobytes()).decode()


def _unpacked(text: str) -> list[int]:
    found: list[int] = np.frombuffer(b64decode(text), dtype="<i8").tolist()
    return found


def _plain(url: str) -> str:
    """Return the URL of a page for comparison: without a fragment, and without the default port."""
    parts = urlsplit(urldefrag(url).url)
    scheme = SCHEMES.get(parts.scheme)
    return parts._replace(netloc=parts.netloc.removesuffix(f":{scheme.port}" if scheme else "")).geturl()
