"""Linked Data Event Streams, by a server of the tests' own that pages members, restarts and changes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pyoxigraph as ox
import pytest

import spaseq
from spaseq.connect import parse_location, reconnect, source
from spaseq.connect.clients import ldes
from spaseq.errors import SourceError, SpaseqWarning
from spaseq.sources import BadEvent
from spaseq.sources.catalog import load_catalog
from spaseq.terms.values import XSD
from tests.connect.events import EX, QUERY, STREAM, found, limited
from tests.connect.servers import PATIENCE, until

pytest.importorskip("httpx", reason="httpx is not installed (the extra http brings it)")

PREFIXES = """@prefix tree: <https://w3id.org/tree#> . @prefix ldes: <https://w3id.org/ldes#> .
@prefix dct: <http://purl.org/dc/terms/> . @prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix : <http://example.org/> .
"""

#: A member with a time that is not a tick.
DATED = f':stream tree:member :m . :m dct:created "2026-06-04T08:00:00Z"^^<{XSD}dateTime> .'

FINAL = {"Cache-Control": "public, max-age=604800, immutable"}
SOON = {"Cache-Control": "max-age=0"}


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages are asked again, and lost connections made again, after hundredths of a second."""
    monkeypatch.setattr(reconnect, "FIRST", 0.02)
    monkeypatch.setattr(ldes, "POLL_LEAST", 0.02)


@pytest.fixture(autouse=True)
def no_thread_remains() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    until(lambda: set(threading.enumerate()) <= before)


@dataclass
class Answer:
    """What is at a path."""

    text: str | bytes = ""
    headers: dict[str, str] = field(default_factory=dict)
    media: str = "text/turtle"
    status: int = 200


class Pages(dict[str, "Answer | list[Answer]"]):
    """A server of pages by their paths, with queries. Of several answers the last one stays.

    ``asked``: the paths of the requests, ``headers`` what came with them.
    """

    def __init__(self, port: int = 0) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.headers: list[dict[str, str]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                answer = outer.get(self.path, Answer(status=404))
                if isinstance(answer, list):
                    answer = answer.pop(0) if len(answer) > 1 else answer[0]
                outer.asked.append(self.path)
                outer.headers.append(dict(self.headers))
                body = answer.text.encode() if isinstance(answer.text, str) else answer.text
                etag = answer.headers.get("ETag")
                is_known = etag is not None and self.headers.get("If-None-Match") == etag
                self.send_response(304 if is_known else answer.status)
                for name, value in ({"Content-Type": answer.media} | answer.headers).items():
                    self.send_header(name, value)
                self.end_headers()
                if not is_known:
                    self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def url(self, path: str = "/s", options: str = "") -> str:
        return f"ldes+http://127.0.0.1:{self.port}{path}{options}"

    def close(self) -> None:
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join(PATIENCE)
            self._server.server_close()


@pytest.fixture
def pages() -> Iterator[Pages]:
    server = Pages()
    yield server
    server.close()


def page(
    numbers: Sequence[int], *links: tuple[str, int | None], path: str = "dct:created", more: str = ""
) -> str:
    """A page of members, each with its number as time and value, and of links, some with a lower bound."""
    text = f"{PREFIXES}:stream a ldes:EventStream ; ldes:timestampPath {path} ; tree:view </s> .\n"
    for number in numbers:
        text += f":stream tree:member :m{number} . :m{number} dct:created {number} ; :v {number} .\n"
    for url, since in links:
        kind = "tree:Relation" if since is None else "tree:GreaterThanOrEqualToRelation"
        bound = "" if since is None else f"; tree:path {path} ; tree:value {since}"
        text += f"<> tree:relation [ a {kind} ; tree:node <{url}> {bound} ] .\n"
    return text + more


def chain(server: Pages, members: int, size: int, last: dict[str, str] = FINAL) -> None:
    """A stream of pages, each linked from the one before; all but the last are complete."""
    starts = range(0, members, size)
    for number, start in enumerate(starts):
        path = "/s" if number == 0 else f"/s?page={number}"
        is_last = start + size >= members
        links = [] if is_last else [(f"/s?page={number + 1}", start + size)]
        numbers = range(start, min(start + size, members))
        server[path] = Answer(page(numbers, *links), last if is_last else FINAL)


class Going:
    """Engines with one state, one after the other."""

    def __init__(self, state: Path) -> None:
        self._state = state

    def take(self, url: str, enough: int, *, commits: bool = True) -> list[int]:
        """Return the values of the next events, so many at least; all is lost without a commit."""
        values: list[int] = []
        engine = spaseq.Engine(state=self._state, commit_every=None)
        handle = engine.register(QUERY, name="q")
        try:
            steps = engine.pull(spaseq.Source(STREAM, source(url)))
            for _ in steps:
                values += [int(str(match.bindings[0]["v"])) for match in handle.matches()]
                if len(values) >= enough:
                    if commits:
                        engine.commit()
                    steps.close()
        finally:
            engine.abandon()
        return values


@pytest.fixture
def going(tmp_path: Path) -> Going:
    return Going(tmp_path / "state")


def test_relations_are_followed_and_complete_pages_read_once(pages: Pages) -> None:
    chain(pages, 300, 50)
    assert found(pages.url()) == [*range(300)]
    assert pages.asked == ["/s", *(f"/s?page={number}" for number in range(1, 6))]


def test_members_come_in_the_order_of_their_times_from_any_tree(pages: Pages) -> None:
    pages["/s"] = Answer(page([7], ("/old", None), ("/b", 5), ("/a", 2)), FINAL)
    pages["/a"] = Answer(page([4, 2, 3], ("/s", None)), FINAL)  # a circle
    pages["/b"] = Answer(page([6, 5], ("/a", None), ("/b", None)), FINAL)
    pages["/old"] = Answer(page([1, 0]), FINAL)
    assert found(pages.url()) == [*range(8)]
    assert pages.asked == ["/s", "/old", "/a", "/b"]


def test_a_relation_by_another_path_says_nothing_of_the_order(pages: Pages) -> None:
    link = "<> tree:relation [ a tree:GreaterThanRelation ; tree:path :v ; tree:value 9 ; tree:node </t> ] ."
    pages["/s"] = Answer(page([5], more=link), FINAL)
    pages["/t"] = Answer(page([3]), FINAL)
    assert found(pages.url()) == [3, 5]


def test_members_are_given_before_pages_with_later_ones_are_read(pages: Pages) -> None:
    pages["/s"] = Answer(page(range(3), ("/missing", 3)), FINAL)
    assert found(pages.url(), limited(3)) == [0, 1, 2]
    assert pages.asked == ["/s"]


def test_a_page_that_changes_is_asked_again(pages: Pages) -> None:
    before = Answer(page([0, 1]), SOON | {"ETag": '"1"'})
    pages["/s"] = [before, before, Answer(page([0, 1, 2], ("/t", 3)), FINAL | {"ETag": '"2"'})]
    pages["/t"] = Answer(page([3]), FINAL)
    assert found(pages.url()) == [0, 1, 2, 3]
    assert pages.asked == ["/s", "/s", "/s", "/t"]
    assert [seen.get("If-None-Match") for seen in pages.headers] == [None, '"1"', '"1"', None]


@pytest.mark.parametrize(
    ("said", "pause"),
    [("max-age=5", 5), ("max-age=0", 0.02), ("public, S-MaxAge=3", 60), ("no-cache", 60), ("", 60)],
)
def test_cache_control_says_when_a_page_is_asked_again(pages: Pages, said: str, pause: float) -> None:
    pages["/s"] = Answer(page([0]), {"Cache-Control": said} if said else {})
    client = client_of(pages.url())
    client.open(1)
    while not client._later:
        client.read(10, 0.1)
    assert client._pages[f"http://127.0.0.1:{pages.port}/s"].pause == pause
    client.close()


def client_of(url: str) -> ldes.LdesClient:
    location, options = parse_location(url)
    assert isinstance(location, spaseq.connect.LiveSource)
    return ldes.LdesClient(location.address, options, spaseq.Limits())


# --- restarts -----------------------------------------------------------------------------------


def test_a_restart_goes_on(pages: Pages, going: Going) -> None:
    chain(pages, 300, 50, SOON)
    assert going.take(pages.url(), 300) == [*range(300)]
    pages.asked.clear()
    chain(pages, 420, 50, SOON)
    assert going.take(pages.url(), 60, commits=False)[:60] == [*range(300, 360)]
    assert going.take(pages.url(), 120) == [*range(300, 420)]
    assert "/s" not in pages.asked
    assert "/s?page=4" not in pages.asked


@pytest.mark.parametrize("stop", [1, 3, 4, 6])
def test_a_restart_while_members_wait(pages: Pages, going: Going, stop: int) -> None:
    """Pages overlap, so that a page is read before all of its members can be given."""
    pages["/s"] = Answer(page([0, 1, 5, 6], ("/b", 2), ("/c", 4)), FINAL)
    pages["/b"] = Answer(page([2, 3, 7]), FINAL)
    pages["/c"] = Answer(page([4, 8, 9], ("/d", 100)), FINAL)
    pages["/d"] = Answer(page([100, 101]), SOON)
    first = going.take(pages.url(), stop)
    assert first + going.take(pages.url(), 12 - len(first)) == [*range(10), 100, 101]


def test_a_restart_of_the_server(pages: Pages) -> None:
    pages["/s"] = Answer(page([0, 1]), SOON)
    run = iter(spaseq.run(QUERY, {"S": pages.url()}))
    assert [str(next(run).bindings[0]["v"]) for _ in range(2)] == ["0", "1"]
    pages.close()
    servers: list[Pages] = []

    def begin() -> None:
        again = Pages(pages.port)
        servers.append(again)
        again["/s"] = Answer(page([0, 1, 2]), FINAL)

    threading.Timer(0.2, begin).start()
    assert [str(match.bindings[0]["v"]) for match in run] == ["2"]
    servers[0].close()


@pytest.mark.slow
def test_ten_thousand_members(pages: Pages, going: Going) -> None:
    chain(pages, 10_000, 250, SOON)
    first = going.take(pages.url(), 4_000)
    second = going.take(pages.url(), 10_000 - len(first))
    chain(pages, 10_300, 250, SOON)
    third = going.take(pages.url(), 300)
    assert first + second + third == [*range(10_300)]
    assert len(pages.asked) < 60


def test_what_is_remembered_is_bounded(pages: Pages, going: Going, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ldes, "REMEMBERED", 10)
    monkeypatch.setattr(ldes, "PAGES_KNOWN", 5)
    chain(pages, 60, 5, SOON)
    assert going.take(pages.url(), 60) == [*range(60)]
    client = client_of(pages.url())
    given = 0
    while given < 60:
        given += len(client.read(100, 0.1) or ())
    place = client.place
    assert len(ldes._unpacked(place["given"])) == 20
    assert len(ldes._unpacked(place["linked"])) == 5
    client.close()
    # A page with more members than are remembered: those that are older were given.
    pages["/s?page=11"] = Answer(page(range(30, 62)), SOON)
    assert going.take(pages.url(), 2) == [60, 61]


def test_members_without_an_order_that_were_forgotten(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ldes, "REMEMBERED", 10)
    pages["/s"] = Answer(page(range(12)).replace("ldes:timestampPath dct:created ;", ""), FINAL)
    with pytest.warns(SpaseqWarning, match="of those that were given 10 are remembered"):
        assert found(pages.url(options="?time=arrival")) == [*range(12)]


def test_members_that_wait_are_bounded(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ldes, "HELD", 100)
    pages["/s"] = Answer(page(range(3), ("/t", None)), FINAL)
    pages["/t"] = Answer(page([5]), FINAL)
    with pytest.raises(SourceError, match="give a view whose relations say from when on a page has members"):
        found(pages.url())
    pages["/s"] = Answer(page(range(3), ("/t", 4)), FINAL)
    assert found(pages.url()) == [0, 1, 2, 5]


# --- times --------------------------------------------------------------------------------------


def test_the_time_of_an_event(pages: Pages) -> None:
    more = ":stream tree:member :m9 . :m9 dct:created 9 ; dct:issued 2 ; :v 9 ; :in [ dct:created 1 ] ."
    pages["/s"] = Answer(page([], more=more), FINAL)

    def time(options: str) -> object:
        (match,) = spaseq.run(QUERY, {"S": pages.url(options=options)})
        return match.end

    assert time("") == 9
    assert time("?time=dct:issued") == 2
    assert type(time("?time=arrival")).__name__ == "datetime"
    letters: list[BadEvent] = []
    with pytest.raises(SourceError, match="its only event, member"):
        found(pages.url(options="?time=prov:generatedAtTime"), dead_letters=letters.append)
    assert "nothing says <http://www.w3.org/ns/prov#generatedAtTime>" in letters[0].reason


def test_a_path_of_several_steps(pages: Pages) -> None:
    text = page([], ("/b", 5), path="( :phase dct:created )")
    for number in (4, 3):
        text += (
            f":stream tree:member :n{number} . :n{number} :phase [ dct:created {number} ] ; :v {number} .\n"
        )
    pages["/s"] = Answer(text, FINAL)
    pages["/b"] = Answer(status=503)
    assert found(pages.url(), limited(2)) == [3, 4]


def test_an_event_is_a_member_with_its_blank_nodes_and_its_graph(pages: Pages) -> None:
    text = (
        page([])
        + """:stream tree:member :m1 .
        :m1 dct:created 1 ; :v 1 ; :in [ :deep [ :v 2 ] ] ; :other :m2 . :m2 :v 3 . [] :v 4 .
        :m1 { :x :v 5 } :g { :x :v 6 }"""
    )
    pages["/s"] = Answer(text, FINAL, "application/trig")
    query = QUERY.replace("SELECT ?v", "SELECT ?g ?v").replace("ON S {", "ON S AS ?g {")
    rows = [row for match in spaseq.run(query, {"S": pages.url()}) for row in match.bindings]
    assert sorted(str(row["v"]) for row in rows) == ["1", "2", "5"]
    assert {str(row["g"]) for row in rows} == {f"{EX}m1"}


@pytest.mark.parametrize("form", ["ttl", "trig", "nq", "nt", "jsonld"])
def test_formats(pages: Pages, form: str) -> None:
    formats = {
        "ttl": ox.RdfFormat.TURTLE,
        "trig": ox.RdfFormat.TRIG,
        "nq": ox.RdfFormat.N_QUADS,
        "nt": ox.RdfFormat.N_TRIPLES,
        "jsonld": ox.RdfFormat.JSON_LD,
    }
    texts: dict[str, bytes] = {}
    for path, text in [("/s", page([1], ("/t", 2))), ("/t", page([2]))]:
        quads = ox.parse(text, format=ox.RdfFormat.TURTLE, base_iri=f"http://127.0.0.1:{pages.port}{path}")
        texts[path] = ox.serialize(quads, format=formats[form]) or b""
        pages[path] = Answer(texts[path], FINAL, f"{formats[form].media_type}; charset=utf-8")
    assert found(pages.url()) == [1, 2]
    pages.update({path: Answer(text, FINAL, "text/plain") for path, text in texts.items()})
    assert found(pages.url(options=f"?format={form}")) == [1, 2]


def test_contexts_are_local(pages: Pages, tmp_path: Path) -> None:
    (tmp_path / "c.jsonld").write_text(
        '{"@context": {"@vocab": "https://w3id.org/tree#", "created": "http://purl.org/dc/terms/created",'
        '"timestampPath": {"@id": "https://w3id.org/ldes#timestampPath", "@type": "@id"},'
        '"v": "http://example.org/v"}}'
    )
    text = """{"@context": "http://example.org/c", "@id": "", "timestampPath": "http://purl.org/dc/terms/created",
        "member": {"@id": "urn:m", "created": 1, "v": 7}}"""
    pages["/s"] = Answer(text, FINAL, "application/ld+json")
    assert found(pages.url(options=f"?contexts={tmp_path}")) == [7]
    with pytest.raises(SourceError, match=r"/s: the page cannot be read as jsonld: .*contexts=FOLDER"):
        found(pages.url())


# --- where pages are ----------------------------------------------------------------------------


def test_a_stream_leads_to_its_view_and_pages_elsewhere(pages: Pages) -> None:
    stream = f"{PREFIXES}:stream a ldes:EventStream ; ldes:timestampPath dct:created ; tree:view </moved> ."
    pages["/s"] = Answer(stream)
    pages["/moved"] = Answer(status=302, headers={"Location": "/v/1"})
    pages["/v/1"] = Answer(page([1], ("2", 2)), FINAL)
    pages["/v/2"] = Answer(page([2], ("1", None)), FINAL)
    assert found(pages.url()) == [1, 2]
    assert pages.asked == ["/s", "/moved", "/v/1", "/v/2"]
    pages["/moved"] = Answer(status=302, headers={"Location": "/moved"})
    with pytest.raises(SourceError, match="redirected more than 5 times"):
        found(pages.url())


def test_credentials_are_for_their_own_server(pages: Pages) -> None:
    other = Pages()
    pages["/s?key=a"] = Answer(page([1], (f"http://127.0.0.1:{other.port}/t", 2), ("/u", 3)), FINAL)
    pages["/u"] = Answer(page([3]), FINAL)
    other["/t"] = Answer(page([2]), FINAL)
    assert found(pages.url(options="?token=hush&query=key%3Da")) == [1, 2, 3]
    assert [seen["Authorization"] for seen in pages.headers] == ["Bearer hush"] * 2
    assert [seen.get("Authorization") for seen in other.headers] == [None]
    other.close()


def test_a_page_that_is_gone(pages: Pages) -> None:
    pages["/s"] = Answer(page([1], ("/gone", None)), FINAL)
    with pytest.warns(
        SpaseqWarning, match=r"/gone: the server answers 404: the rest of this page is not read"
    ):
        assert found(pages.url()) == [1]


def test_a_page_that_cannot_be_read_now_is_asked_again(pages: Pages) -> None:
    pages["/s"] = Answer(page([1], ("/t", 2)), FINAL)
    pages["/t"] = [Answer(status=503), Answer(page([2])[:-30]), Answer(page([2]), FINAL)]
    assert found(pages.url()) == [1, 2]
    pages["/t"] = Answer(status=503)
    with pytest.raises(SourceError, match=r"http://127.0.0.1:\d+/t: the server answers 503"):
        found(pages.url(options="?retry=100ms"))


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", "", "neither tree:member nor tree:relation nor tree:view"),
        (
            page([], path="[ ]") + DATED,
            "",
            r"neither a predicate nor a sequence .*: time= says .*time=dct:created",
        ),
        (
            page([]).replace("ldes:time", "ldes:no") + DATED,
            "",
            r"no ldes:timestampPath: .* is one: time=dct:created",
        ),
        (f"{PREFIXES}:s tree:view <a> , <b> .", "", "several views: give one of http"),
        (page([]) + ":s tree:member [ :v 1 ] .", "", "a tree:member is not an IRI"),
        (page([], ("ftp://example.org/x", None)), "", r"a page is at ftp://example\.org/x"),
        (page([]) + "oops", "", r"/s: the page cannot be read as ttl: line \d+"),
        (page([1]), "?by=subject", "each tree:member is an event: leave by= out"),
        (page([1]), "?format=csv", "the format of its pages is one of ttl, trig, nq, nt, jsonld"),
        (page([1]), "?order=time", "order=time waits for the end"),
        (page([1]), "?group=g", r"unknown option 'group' of ldes\+http://"),
    ],
)
def test_what_is_wrong_is_said(pages: Pages, text: str, options: str, message: str) -> None:
    pages["/s"] = Answer(text, FINAL)
    with pytest.raises(SourceError, match=message):
        found(pages.url(options=options))


def test_a_page_that_is_not_rdf(pages: Pages) -> None:
    pages["/s"] = Answer("<html>", FINAL, "text/html")
    with pytest.raises(SourceError, match="the server answers text/html, which is not a page in RDF"):
        found(pages.url())
    with pytest.raises(SourceError, match="the server answers 404"):
        found(pages.url("/t"))


def test_a_member_without_a_time_is_a_dead_letter(pages: Pages) -> None:
    letters: list[BadEvent] = []
    pages["/s"] = Answer(page([1]) + ":stream tree:member :m2 , :m3 . :m2 :v 2 .", FINAL)
    assert found(pages.url(), dead_letters=letters.append) == [1]
    assert [letter.position for letter in letters] == [f"member {EX}m2", f"member {EX}m3"]
    assert "the ldes:timestampPath of its stream" in letters[0].reason


# --- beside others ------------------------------------------------------------------------------


def test_a_history_then_the_stream(pages: Pages, tmp_path: Path) -> None:
    """What was recorded has the graphs and the times of the members."""
    chain(pages, 20, 5)
    path = tmp_path / "past.trig"
    path.write_text(PREFIXES + "".join(f":m{n} {{ :m{n} dct:created {n} ; :v {n} }}\n" for n in range(12)))
    url = f"{path}?time=dct:created"
    assert found(source(pages.url(), history=url)) == [*range(20)]


def test_a_catalogue_names_a_stream_and_its_times(pages: Pages, tmp_path: Path) -> None:
    pages["/s"] = Answer(
        page([], more=":stream tree:member :m . :m dct:created 9 ; dct:issued 2 ; :v 9 ."), FINAL
    )
    catalog = f"""@prefix vocals: <http://w3id.org/rsp/vocals#> . @prefix spaseq: <https://w3id.org/spaseq#> .
        <{STREAM}> a vocals:RDFStream ; spaseq:timePredicate <http://purl.org/dc/terms/issued> ;
            vocals:hasEndpoint [ <http://www.w3.org/ns/dcat#accessURL> <{pages.url()}> ] ."""
    for text, time in [(catalog, 2), (catalog.replace("spaseq:timePredicate", "spaseq:other"), 9)]:
        (tmp_path / "catalog.ttl").write_text(text)
        (entry,) = load_catalog(tmp_path / "catalog.ttl").values()
        (match,) = spaseq.run(QUERY, {"S": spaseq.Source(STREAM, entry.location, entry.options)})
        assert match.end == time


def test_a_page_of_the_field(pages: Pages, shared: Callable[[str], Path]) -> None:
    case = shared("field-cases")
    text = (case / "ldes.ttl").read_text()
    pages["/page1"] = Answer(text.replace("ex:page1", "</page1>").replace("ex:page2", "</page2>"), FINAL)
    pages["/page2"] = Answer("@prefix tree: <https://w3id.org/tree#> . <urn:s> tree:view </page1> .", FINAL)
    every = QUERY.replace(f"<{EX}v>", f"<{EX}level>")
    times = [f"{match.end:%H:%M}" for match in spaseq.run(every, {"S": pages.url("/page1")})]
    assert times == ["09:00", "09:10", "09:20"]
    (match,) = spaseq.run((case / "rise.rq").read_text(), {"S": pages.url("/page1")})
    assert [(str(row["a"]), str(row["b"])) for row in match.bindings] == [("5", "9")]
    assert pages.asked == ["/page1", "/page2"] * 2
