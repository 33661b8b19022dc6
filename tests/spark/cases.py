"""Random queries and streams for Spark: what Hypothesis draws, and queries of the whole language."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyoxigraph as ox
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.matching.random_sequences import PLAIN, random_query, random_sample
from tests.matching.random_skips import random_skip
from tests.streams import NS, Letter, letters, query

_TIME = ox.NamedNode("http://www.w3.org/ns/prov#generatedAtTime")
_INTEGER = ox.NamedNode("http://www.w3.org/2001/XMLSchema#integer")


SEQUENCES = [
    "A ; B",
    "A , B",
    "A : B",
    "A , B+[,] , C",
    "A ; B+ ; C",
    "A : B+[:] : C",
    "A ; !B ; C",
    "A ; B ; !C",
    "!A ; B ; C",
    "A ; B? ; C",
    "A ; !B",
    "A ; (B | C)",
    "A ; (B & C)",
    "ALL(A, B, C)",
    "(A ; B)+",
]
WINDOWS = ["3 SECONDS SLIDING", "8 SECONDS SLIDING", "4 SECONDS", "3 EVENTS", "4 EVENTS SLIDING"]
TAILS = ["", "", "", "EMIT LAST", "EMIT NEXT", "EMIT MAX", "CONSUME ANY", "EMIT LAST CONSUME ANY", "LIMIT 2"]
FILTERS = ["", "", "FILTER(?bv > ?av)", "FILTER EXISTS { ?b :v ?av }"]


@st.composite
def streams(draw: st.DrawFn) -> list[Letter]:
    """Letters of one or two streams and two keys, in order of time; several may come at once."""
    count = draw(st.integers(0, 14))
    time = 0
    words: list[tuple[int, str, str, str]] = []
    for _ in range(count):
        time += draw(st.sampled_from([0, 1, 1, 1, 2, 6]))
        words.append((time, draw(st.sampled_from(["S", "S", "S2"])), draw(st.sampled_from("abcx")),
                      draw(st.sampled_from("kl"))))  # fmt: skip
    return [letters(f"{s}.{kind}@{t}={t}/{key}")[0] for t, s, kind, key in sorted(words)]


@st.composite
def queries(draw: st.DrawFn) -> str:
    seq = draw(st.sampled_from(SEQUENCES))
    names = [name for name in "ABC" if name in seq]
    by_key = draw(st.booleans())
    gpms = {name: f"?{name.lower()} :k ?k ." if by_key else "" for name in names}
    if "B" in names and "A" in names and not seq.startswith("!"):
        gpms["B"] += draw(st.sampled_from(FILTERS))
    head = draw(st.sampled_from(["SELECT *", "SELECT *", "CONSTRUCT { ?a :then ?b , [] }", "ASK"]))
    if ("A" not in names or "B" not in names or "!" in seq) and head.startswith("CONSTRUCT"):
        head = "SELECT *"
    return query(
        seq,
        draw(st.sampled_from(WINDOWS)),
        gpms,
        streams=("S", "S2"),
        head=head,
        partition="?k" if by_key else "",
        tail=draw(st.sampled_from(TAILS)),
    )


@dataclass(frozen=True)
class Happening:
    """An event of a case: what ``tests.spark.stages.pushed`` wants to know of it."""

    name: str
    stream: str
    time: int
    turtle: str

    @property
    def triples(self) -> str:
        """Its graph as N-Triples."""
        return "".join(f"{quad.triple} .\n" for quad in ox.parse(self.turtle, format=ox.RdfFormat.TURTLE))


@dataclass(frozen=True)
class Case:
    """A query, and the events of its streams in order."""

    text: str
    events: tuple[Happening, ...]

    @property
    def start(self) -> int:
        """Where tumbling windows begin."""
        return min((event.time for event in self.events), default=0)

    def __str__(self) -> str:
        lines = [f"{e.time} {e.stream} {e.name}: {e.turtle}" for e in self.events]
        return "\n".join(["", self.text, *lines])


def drawn(count: int, derandomized: bool) -> list[Case]:
    """So many cases, half of them of each kind."""
    found: list[Case] = []
    half = settings(
        max_examples=count // 2,
        derandomize=derandomized,
        database=None,
        phases=[Phase.generate],
        deadline=None,
    )

    @half
    @given(queries(), streams())
    def simple(text: str, events: Sequence[Happening]) -> None:
        found.append(Case(text, tuple(_happenings((e.stream, e.time, e.turtle) for e in events))))

    @half
    @given(st.integers(0, 2**64 - 1))
    def whole(seed: int) -> None:
        found.append(of_the_whole_language(random.Random(seed)))

    simple()
    whole()
    return found


def of_the_whole_language(rng: random.Random) -> Case:
    """A query of ``random_sequences``, whose GPMs ask for types too, and a stream of small graphs."""
    kind = rng.random()
    if kind < 0.4:
        drawn_query = random_query(rng)
    elif kind < 0.7:
        drawn_query = random_query(rng, most=4, whole_language=True)
    else:
        drawn_query = random_skip(rng, most=4, whole_language=True)
    window = random_sample(rng, drawn_query, 7, steps=False).window
    unit, slides = ("EVENTS" if window.counted else "SECONDS"), (" SLIDING" if window.sliding else "")
    text = re.sub(r"WITHIN 10 SECONDS( TUMBLING)?", f"WITHIN {window.size} {unit}{slides}", drawn_query.text)
    for name, kind in drawn_query.types.items():
        text = text.replace(f"{{ [] :v ?v{name}", f"{{ [] a :{kind} ; :v ?v{name}")
    streams = sorted({stream for read in drawn_query.streams.values() for stream in read})
    keys = sorted({key for names in drawn_query.binds.values() for key in names})
    rare = rng.choice([0.5, 0.15])
    time = rng.choice([0, 0, -7, 1_600_000_000])
    events = []
    for _ in range(rng.randint(2, 6 if "ALL(" in text else 10)):
        time += rng.choice([0, 1, 1, 2])
        nodes = [_node(rng, keys, rare) for _ in range(rng.choice([1, 1, 1, 2]))]
        events.append((f"s{rng.choice(streams)}", time, f"@prefix : <{NS}> . {' '.join(nodes)}"))
    # Events of one time count in the order of their streams, where windows count.
    return Case(text, tuple(_happenings(sorted(events, key=lambda event: (event[1], event[0])))))


def _node(rng: random.Random, keys: Iterable[str], rare: float) -> str:
    said = [f"a :{rng.choice('xxxy')}", f":v {rng.choice(PLAIN)}"]
    said += [f":{key} {PLAIN[rng.random() < rare]}" for key in keys if rng.random() < 0.9]
    said += [f":{name} {rng.choice(PLAIN)}" for name in "wmq" if rng.random() < 0.4]
    return f"[] {' ; '.join(said)} ."


def _happenings(events: Iterable[tuple[str, int, str]]) -> list[Happening]:
    return [Happening(f"g{i}", *event) for i, event in enumerate(events)]


def write(case: Case, folder: Path) -> dict[str, str]:
    """The events of a case as N-Quads, a file for each stream that its query declares; their paths."""
    folder.mkdir(parents=True)
    paths = {}
    for name, iri in re.findall(r"FROM STREAM (\w+) <([^>]+)>", case.text):
        path = folder / f"{name}.nq"
        path.write_text("".join(_quads(e) for e in case.events if NS + e.stream == iri), encoding="utf-8")
        paths[iri] = str(path)
    return paths


def _quads(event: Happening) -> str:
    graph = ox.NamedNode(NS + event.name)
    quads = [ox.Quad(graph, _TIME, ox.Literal(str(event.time), datatype=_INTEGER), ox.DefaultGraph())]
    parsed = ox.parse(event.turtle, format=ox.RdfFormat.TURTLE)
    quads += [ox.Quad(quad.subject, quad.predicate, quad.object, graph) for quad in parsed]
    return "".join(f"{quad} .\n" for quad in quads)
