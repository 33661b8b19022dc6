"""Path queries whatever happens: exceptions anywhere, interrupts, threads. The graph answers as before."""

from __future__ import annotations

import json
import os
import random
import shlex
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path as FilePath
from typing import Any

import pytest
from typer.testing import CliRunner

import spaseq
import spaseq.paths
from spaseq.cli import app
from spaseq.errors import QueryError, SpaseqError
from spaseq.paths import KnowledgeGraph, Path, load
from spaseq.paths.search import pairs, reach
from tests.attack.faults import Faults, InjectedError, at_line, interrupted_after, patch_calls

Answer = Any
Query = Callable[[KnowledgeGraph], Answer]

PACKAGE = "spaseq.paths"

#: Two rings with a bridge, chains, a hub, a rare edge in the middle.
EDGES = (
    *((f"urn:{i}", "urn:a", f"urn:{(i + 1) % 5}") for i in range(5)),
    *((f"urn:{i}", "urn:b", f"urn:{i + 3}") for i in range(9)),
    *(("urn:2", "urn:c", f"urn:{i}") for i in (0, 7, 11)),
    ("urn:7", "urn:rare", "urn:4"),
    ("urn:11", "urn:a", "urn:11"),
)


def small() -> KnowledgeGraph:
    return load(EDGES, {"": "urn:"})


def found_pairs(*arguments: Any) -> Query:
    def ask(graph: KnowledgeGraph) -> Answer:
        sources, targets = graph.pairs(*arguments).arrays
        return sorted(zip(sources.tolist(), targets.tolist(), strict=True))

    return ask


def found_paths(mode: str, text: str, *arguments: Any) -> Query:
    def ask(graph: KnowledgeGraph) -> Answer:
        return Counter(map(numbers, graph.paths(text, *arguments, mode=mode)))

    return ask


def in_batches(graph: KnowledgeGraph) -> Answer:
    found = [batch.arrays for batch in graph.batches("(:a|:b)*/:c?")]
    return sorted(pair for arrays in found for pair in zip(*(ends.tolist() for ends in arrays), strict=True))


def some_batches(graph: KnowledgeGraph) -> Answer:
    """The first of a search that is given up."""
    search = graph.batches("(:a|:b)+", None, [":4", ":0", ":7"])
    first = bool(len(next(search)))
    del search
    return first


def some_paths(graph: KnowledgeGraph) -> Answer:
    """The first of a search that is given up."""
    search = graph.paths("(:a|:b)+", ":0", mode="TRAIL")
    first = numbers(next(search))
    del search
    return first


def numbers(path: Path) -> Answer:
    return path.nodes, path.predicates, path.forward


def retrieved(graph: KnowledgeGraph) -> Answer:
    relations = [["a", "b"], (":a/:c?", 0.5), ["^a", "^b"], "(:a|:b){1,3}/[:c]", ["nothing"]]
    found = spaseq.paths.retrieve(graph, relations, [":0", ":2"], question="a b", k=20)
    return found.as_json(), found.text()


def shown(graph: KnowledgeGraph) -> Answer:
    return sorted(graph.pairs(".+", [":2"])), graph.check(":a/:d", [":x"])


def linked(graph: KnowledgeGraph) -> Answer:
    """By a name that there is, and by one that is misspelled."""
    return [(c.node, c.score, c.by, c.label) for name in ("11", "rar", "urn") for c in graph.link(name)]


MODES = ("WALK", "TRAIL", "SIMPLE", "ACYCLIC")
QUERIES: dict[str, Query] = {
    "pairs": found_pairs("(:a|:b)*/:c?"),
    "pairs from some": found_pairs(":a+/[:c]", [":0", ":3"]),
    "pairs to some": found_pairs(":a*/(:b|!(:a|:c))", None, [":4", ":11", ":x"]),
    "pairs between": found_pairs("(:a|^:b)+", [":0", ":2", ":7"], [":4", ":0"]),
    "pairs from the middle": found_pairs("(:a|:b)+/:rare/:a{1,3}"),
    "batches": in_batches,
    "some batches": some_batches,
    "pairs, limited": lambda graph: len(graph.pairs("(:a|:b)+", limit=7)),
    "paths from the middle": found_paths("TRAIL", "(:a|:b)+/:rare/:a{1,3}"),
    "walks": found_paths("WALK", "(:a|:b){1,3}", ":0"),
    "some paths": some_paths,
    "retrieve": retrieved,
    "terms": shown,
    "names": linked,
    **{f"ALL {mode}": found_paths(mode, "(:a|^:b)+", ":0", [":2", ":4"]) for mode in MODES[1:]},
    **{f"ANY {mode}": found_paths(f"ANY {mode}", "(:a|:b)*", ":0") for mode in MODES},
    **{f"ALL SHORTEST {mode}": found_paths(f"ALL SHORTEST {mode}", ":a+/:b", None, ":7") for mode in MODES},
    "SHORTEST 3": found_paths("SHORTEST 3", "(:a|:b)+/[:c]", ":0", [":2", ":4"]),
}

#: One by one, in masks, by components.
WAYS = {"alone": (1 << 20, 2, 4), "masks": (1, 0, 1 << 40), "components": (1, 0, -1)}


@pytest.fixture(scope="module")
def expected() -> dict[str, Answer]:
    """What fresh graphs answer."""
    return {name: ask(small()) for name, ask in QUERIES.items()}


@pytest.fixture
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A way of searching, and beginning in the middle, also on graphs of some edges."""
    name: str = getattr(request, "param", "masks")
    many, cost, components = WAYS[name]
    for constant, value in (("_MANY", many), ("_MASK_COST", cost), ("_COMPONENT_COST", components)):
        monkeypatch.setattr(reach, constant, value)
    for constant, value in (("_TRIED", 0), ("_BITS", 3), ("_WORDS", 2), ("_AT_ONCE", 4), ("_PART", 5)):
        monkeypatch.setattr(reach, constant, value)
    monkeypatch.setattr(pairs, "_WORTH", 1)
    return name


def answers_as(graph: KnowledgeGraph, expected: dict[str, Answer], *names: str) -> None:
    """Whether a graph answers as fresh ones do. Again and again, since a query may take any of its arrays."""
    for name in names or QUERIES:
        assert QUERIES[name](graph) == expected[name], name


#: What is asked after each exception: between them they use all that a graph keeps.
PROBES = ("pairs", "pairs between", "pairs from the middle", "batches", "ALL TRAIL", "ANY WALK", "retrieve")


CASES = [
    pytest.param(name, way, after, marks=() if place % 6 == 2 * number + after else pytest.mark.slow)
    for number, way in enumerate(WAYS)
    for place, name in enumerate(QUERIES)
    for after in (False, True)
]


@pytest.mark.few(0, ci=6)
@pytest.mark.parametrize(("name", "way", "after"), CASES, indirect=["way"])
@pytest.mark.usefixtures("way")
def test_an_exception_at_each_call(
    name: str, after: bool, expected: dict[str, Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of numpy, which may have no memory, and of a kernel, after which Ctrl-C is seen: on the same graph."""
    faults = Faults(MemoryError)
    graph, raised = small(), 0
    patch_calls(monkeypatch, PACKAGE, faults)
    for number in count(1):
        graph = graph if number % 3 else small()  # what it keeps is there already, or still to be made
        faults.at(number, after=after)
        try:
            answer = QUERIES[name](graph)
        except MemoryError:
            answer = None
            raised += 1
        assert (answer is None) == faults.hit
        faults.at(0, after=after)
        answers_as(graph, expected, name, PROBES[number % len(PROBES)])
        if answer is not None and number % 3 == 0:  # a fresh graph makes the most calls
            break
    answers_as(graph, expected)
    assert raised > 5


#: So many lines of each query on each way, by chance.
LINES = 200


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a search that is given up
@pytest.mark.parametrize("way", WAYS, indirect=True)
@pytest.mark.parametrize("name", QUERIES)
def test_an_exception_at_a_line(name: str, way: str, expected: dict[str, Answer]) -> None:
    """Of what runs in the package: wherever Ctrl-C may come."""
    with at_line(PACKAGE, 1 << 40) as left:
        QUERIES[name](small())
    lines = range(1, (1 << 40) - left[0] + 1)
    used = small()
    for number in random.Random(f"{name}, {way}").sample(lines, min(len(lines), LINES)):
        for graph in (small(), used):
            try:
                with at_line(PACKAGE, number):
                    answer = QUERIES[name](graph)
            except InjectedError:
                answers_as(graph, expected, name, PROBES[number % len(PROBES)])
            else:
                assert answer == expected[name]
    answers_as(used, expected)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.few(1)
def test_an_exception_while_a_graph_is_saved_or_opened(
    after: bool, expected: dict[str, Answer], tmp_path: FilePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is the old one or the new one, nothing lies beside it, and all graphs answer as before."""
    file = tmp_path / "small.spaseq"
    load([("urn:x", "urn:y", "urn:z")]).save(file)
    faults, graph, opened, raised = Faults(MemoryError), small(), None, 0
    patch_calls(monkeypatch, PACKAGE, faults)
    for number in count(1):
        graph = graph if number % 3 else small()
        faults.at(number, after=after)
        try:
            graph.save(file)
            opened = spaseq.paths.open(file)
            answer = QUERIES["pairs"](opened)
        except MemoryError:
            answer = None
            raised += 1
        assert (answer is None) == faults.hit
        faults.at(0, after=after)
        assert os.listdir(tmp_path) == [file.name]
        assert len(spaseq.paths.open(file)) in (1, len(small()))
        for one in (graph, opened):
            if one is not None:
                answers_as(one, expected, PROBES[number % len(PROBES)])
        if answer is not None and number % 3 == 0:
            break
    assert raised > 5


@pytest.mark.usefixtures("switching")
def test_threads_that_ask_one_graph_that_was_opened(expected: dict[str, Answer], tmp_path: FilePath) -> None:
    """Which checks its blocks, and makes its terms, when it is first asked."""
    small().save(tmp_path / "small.spaseq")
    for _ in range(3):
        graph, together = spaseq.paths.open(tmp_path / "small.spaseq"), threading.Barrier(4)

        def ask(name: str, graph: KnowledgeGraph = graph, together: threading.Barrier = together) -> None:
            together.wait()
            answers_as(graph, expected, name)

        with ThreadPoolExecutor(4) as threads:
            for asked in [threads.submit(ask, name) for name in PROBES[:4]]:
                asked.result()


@pytest.mark.few(0, ci=2)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Ctrl-C inside of a finalizer
@pytest.mark.parametrize(
    "way", [pytest.param("alone", marks=pytest.mark.slow), "masks", "components"], indirect=True
)
@pytest.mark.parametrize("mode", [None, "TRAIL", pytest.param("ANY SHORTEST", marks=pytest.mark.slow)])
@pytest.mark.usefixtures("way")
def test_real_interrupts(mode: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """At any moment of a query that takes longer, on one graph."""
    monkeypatch.setattr(reach, "_BITS", 64)
    numbered = random.Random(12)
    triples = [
        (f"urn:{numbered.randrange(1_500)}", f"urn:{'ab'[i % 2]}", f"urn:{numbered.randrange(1_500)}")
        for i in range(2_500)
    ]

    def ask(graph: KnowledgeGraph) -> Answer:
        if mode is None:
            return [column.tolist() for column in graph.pairs("(:a|:b)+").arrays]
        return [numbers(path) for path in graph.paths("(:a|:b)+", mode=mode, max_paths=2_000)]

    graph = load(triples, {"": "urn:"})
    wanted, interrupted = ask(load(triples, {"": "urn:"})), 0
    for _ in range(30):
        try:
            with interrupted_after(numbered.uniform(0.0005, 0.06)):
                ask(graph)
        except KeyboardInterrupt:
            interrupted += 1
            if interrupted % 5 == 0:
                assert ask(graph) == wanted
    assert interrupted > 0
    assert ask(graph) == wanted


# --- threads and generators


@pytest.fixture
def switching() -> Iterator[None]:
    """Threads take turns all the time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("way", WAYS, indirect=True)
@pytest.mark.usefixtures("switching", "way")
def test_threads_that_ask_one_graph(expected: dict[str, Answer]) -> None:
    """Each all queries, in an order of its own, from the first one on that a graph is ever asked."""
    for seed in range(2):
        graph, together = small(), threading.Barrier(4)

        def ask(number: int, seed: int = seed, graph: KnowledgeGraph = graph) -> None:
            names = list(QUERIES)
            random.Random(10 * seed + number).shuffle(names)
            together.wait()  # noqa: B023  # all threads of a round have ended before the next one
            answers_as(graph, expected, *names)

        with ThreadPoolExecutor(4) as threads:
            for asked in [threads.submit(ask, number) for number in range(4)]:
                asked.result()


@pytest.mark.usefixtures("switching")
def test_threads_that_share_a_search() -> None:
    graph = small()
    wanted = Counter(map(numbers, graph.paths("(:a|:b)+", ":0", mode="TRAIL")))
    search = graph.paths("(:a|:b)+", ":0", mode="TRAIL")
    with ThreadPoolExecutor(4) as threads:
        parts = [threads.submit(lambda: list(map(numbers, search))) for _ in range(4)]
        assert sum((Counter(part.result()) for part in parts), Counter()) == wanted


@pytest.mark.parametrize("way", WAYS, indirect=True)
@pytest.mark.usefixtures("way")
def test_searches_that_take_turns(expected: dict[str, Answer]) -> None:
    """Searches for paths, one of them given up at each turn, with queries in between."""
    graph = small()
    asked = {
        **{f"ALL {mode}": ("(:a|^:b)+", ":0", [":2", ":4"]) for mode in MODES[1:]},
        **{f"ANY {mode}": ("(:a|:b)*", ":0") for mode in MODES},
        **{f"ALL SHORTEST {mode}": (":a+/:b", None, ":7") for mode in MODES},
    }
    for _ in range(3):
        waiting = {name: graph.paths(*query, mode=name) for name, query in asked.items()}
        found: dict[str, Counter[Answer]] = {name: Counter() for name in waiting}
        for turn in count():
            given_up = (graph.paths("(:a|:b)+", mode="TRAIL"), graph.batches("(:a|^:b)+", None, [":4", ":x"]))
            assert all(map(next, given_up))
            for name, search in list(waiting.items()):
                path = next(search, None)
                if path is None:
                    del waiting[name]
                else:
                    found[name][numbers(path)] += 1
            del given_up
            answers_as(graph, expected, PROBES[turn % len(PROBES)])
            if not waiting:
                break
        assert found == {name: expected[name] for name in found}


def test_a_search_that_was_broken_off_does_not_seem_to_have_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    search = small().paths("(:a|:b)+", mode="TRAIL")
    next(search)
    monkeypatch.setattr(Path, "__init__", None)
    with pytest.raises(TypeError):
        next(search)
    monkeypatch.undo()
    with pytest.raises(SpaseqError, match="TypeError broke off this search"):
        next(search)


# --- limits


def star(rays: int, limit: int | None = None) -> KnowledgeGraph:
    """Through its middle, each of so many nodes leads to each of as many others; and ``EDGES``."""
    middle = [(f"urn:s{i}", "urn:a", "urn:m") for i in range(rays)]
    rest = [("urn:m", "urn:a", f"urn:t{i}") for i in range(rays)]
    return load([*middle, *rest, *EDGES], {"": "urn:"}, limits=spaseq.Limits(query_bytes=limit))


#: Queries, and what they take more memory for than they may.
GREEDY: dict[str, tuple[Query, int]] = {
    "pairs": (lambda graph: graph.pairs(":a/:a"), 1 << 21),
    "the places of a search": (lambda graph: graph.pairs(":a{300}", ":s0"), 1 << 20),
    "the marks of a search": (lambda graph: list(graph.paths(":a{300}", ":s0", mode="TRAIL")), 1 << 20),
    "paths in the making": (
        lambda graph: Counter(map(len, graph.paths("(:a|:b|^:b)+", ":0", ":4", shortest=9_000))),
        1 << 19,
    ),
    "the 900 edges of a node": (lambda graph: next(graph.paths(":a{2}", ":s0", mode="TRAIL")), 200_000),
    "the index of": (lambda graph: graph.pairs(":a/(!:b|[:a]/:a)"), 1 << 15),
    "901 paths": (lambda graph: spaseq.paths.retrieve(graph, [":a{1,2}"], ":s0", question="t7"), 1 << 21),
    "more paths": (lambda graph: spaseq.paths.retrieve(graph, [":a{1,2}"], ":s0"), 100_000),
}


@pytest.mark.parametrize("what", GREEDY)
@pytest.mark.few(1, ci=3)
def test_a_query_that_takes_too_much_memory(what: str) -> None:
    """Its error says what for, how much, and what to do; the graph answers all the same."""
    ask, limit = GREEDY[what]
    free, graph = star(900), star(900, limit)
    wanted = [ask(free), *map(len, free.batches(":a/:a", ":s7"))]
    for _ in range(2):
        with pytest.raises(spaseq.LimitError) as raised:
            ask(graph)
        assert raised.value.limit == "query_bytes"
        message = str(raised.value)
        assert what in message
        assert (
            f"is over the limit query_bytes={limit}: Limits(query_bytes=…), or --limit query-bytes="
            in message
        )
        assert ":a" in message or "retrieve by 1 expressions from 1 topics" in message  # the query
        if limit > 1 << 17:
            assert [len(batch) for batch in graph.batches(":a/:a", ":s7")] == wanted[1:]


def test_rooms_are_no_larger_than_what_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though the first sources have many answers, and one might think that all will."""
    many = [(f"urn:{i}", "urn:a", f"urn:t{k}") for i in range(70) for k in range(1_500)]
    few = [(f"urn:{i}", "urn:a", f"urn:t{i % 1_500}") for i in range(70, 6_000)]
    graph, asked = load(many + few, {"": "urn:"}), [0]
    numpy = reach.np

    class Noted:
        """numpy, the sizes noted of what is asked for."""

        def __getattr__(self, name: str) -> Any:
            return getattr(numpy, name)

        def empty(self, shape: Any, dtype: Any) -> Any:
            array = numpy.empty(shape, dtype)
            asked.append(array.nbytes)
            return array

    monkeypatch.setattr(reach, "np", Noted())
    monkeypatch.setattr(reach, "_TRIED", 0)
    found = graph.pairs(":a")
    assert len(found) == len(many) + len(few)
    assert max(asked) <= 2 * found.others.nbytes


def test_an_index_is_forgotten_when_it_grows_too_large() -> None:
    graph = load(EDGES, {"": "urn:"}, limits=spaseq.Limits(query_bytes=1 << 14))
    fresh = small()
    for number in range(200):
        text = f":a/(:b|!:x{number})/[:a]/:a"
        assert found_pairs(text)(graph) == found_pairs(text)(fresh)
    assert graph.snapshot.relations.added < 1 << 15 < fresh.snapshot.relations.added


# --- texts


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(" * 10_000 + ":a" + ")" * 10_000, "<path>:1:101: nested more than 100 deep"),
        ("(" * 10_000 + ":a" + ")+" * 10_000, "<path>:1:101: nested more than 100 deep"),
        ("(:a|" * 10_000 + ":a" + ")" * 10_000, "<path>:1:401: nested more than 100 deep"),
        ("^(" * 10_000 + ":a", "nested more than 100 deep"),
        (":a{1,99999999999999999999}", "99,999,999,999,999,999,999 steps, more than 4,096"),
        (":a{99999999999999999999,}", "99,999,999,999,999,999,999 steps, more than 4,096"),
        (":a{" + "9" * 5_000 + "}", "cannot be repeated so often"),
        ("/".join([":a"] * 20_000), "20,000 steps, more than 4,096"),
    ],
    ids=lambda text: text[:30],
)
def test_texts_that_ask_too_much(text: str, message: str) -> None:
    graph = small()
    for ask in (graph.pairs, graph.paths, graph.check, graph.batches):
        with pytest.raises(QueryError) as raised:
            ask(text)
        assert message in str(raised.value)
    rejected = spaseq.paths.retrieve(graph, [text, ":a"], ":0").rejected
    assert [message in one.reason for one in rejected] == [True]


def test_as_deep_as_may_be() -> None:
    text = "(:a/:b|(" * 50 + ":a" + ")+)" * 50
    assert found_pairs(text)(small()) == found_pairs(f"(:a/:b|:a)+|{text}")(small())


# --- the command line


COMMAND = (sys.executable, "-c", "from spaseq.cli import main; main()")


def run(graph: str, *arguments: str, reader: str = "cat") -> tuple[str, str, int]:
    """``spaseq paths … | reader``: what came through, standard error, the status of spaseq."""
    command = shlex.join(
        [sys.executable, "-c", "from spaseq.cli import main; main()", *arguments, "-g", graph]
    )
    done = subprocess.run(
        ["bash", "-c", f"{command} | {reader}; exit ${{PIPESTATUS[0]}}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout, done.stderr, done.returncode


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A star of 4,000,000 pairs."""
    path = tmp_path_factory.mktemp("graphs") / "star.nt"
    lines = [f"<urn:s{i}> <urn:a> <urn:m> .\n<urn:m> <urn:a> <urn:t{i}> .\n" for i in range(2_000)]
    path.write_text("".join(lines))
    return str(path)


@pytest.mark.few(0, ci=1)
@pytest.mark.parametrize(
    "options",
    [
        (),
        pytest.param(("-f", "csv"), marks=pytest.mark.slow),
        pytest.param(("-f", "ndjson"), marks=pytest.mark.slow),
        ("--mode", "TRAIL"),
        pytest.param(("--max", "1000000"), marks=pytest.mark.slow),
    ],
    ids=" ".join,
)
def test_a_reader_that_has_enough(kb: str, options: tuple[str, ...]) -> None:
    """As ``| head``: it gets its lines from a query that would take more memory than it may."""
    out, err, status = run(kb, "paths", "<urn:a>+", *options, "--limit", "query-bytes=1Mi", reader="head -3")
    assert (len(out.splitlines()), status) == (3, 0)
    assert err in ("", "there are more than 1,000,000\n")


def test_limits_on_the_command_line(kb: str) -> None:
    few = ("--limit", "query-bytes=64k", "-g", kb)
    for command in (("paths", "<urn:a>{300}"), ("retrieve", "<urn:a>{1,2}", "--topic", "urn:s1")):
        done = CliRunner().invoke(app, [*command, *few])
        assert (done.exit_code, done.stdout, len(done.stderr.splitlines())) == (1, "", 1)
        assert "is over the limit query_bytes=64000: Limits(query_bytes=…), or --limit query-b" in done.stderr
    done = CliRunner().invoke(app, ["paths", "<urn:a>", "--limit", "query-byte=7", "-g", kb])
    assert (done.exit_code, "is not a limit" in done.stderr) == (2, True)


CLOSED = (
    (">&-", 1, "standard output is closed"),
    ("2>&-", 0, ""),
    ("<&-", 0, ""),
    (">/dev/full", 1, "No space"),
)


@pytest.mark.few(0, ci=2)
@pytest.mark.parametrize(
    ("command", "redirection", "status", "said"),
    [
        pytest.param(command, *closed, marks=() if number == place else pytest.mark.slow)
        for number, command in enumerate(("paths", "retrieve"))
        for place, closed in enumerate(CLOSED)
    ],
)
def test_closed_streams(tmp_path: FilePath, command: str, redirection: str, status: int, said: str) -> None:
    (tmp_path / "kb.nt").write_text("<urn:a> <urn:p> <urn:b> .\n")
    options = ("--topic", "urn:a") if command == "retrieve" else ("--mode", "TRAIL")
    line = shlex.join([*COMMAND, command, "<urn:p>", "-g", "kb.nt", *options])
    done = subprocess.run(
        ["bash", "-c", f"{line} {redirection}"], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert (done.returncode, "Traceback" in done.stderr, said in done.stderr) == (status, False, True)
    assert bool(done.stdout) == (status == 0)


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("paths", "<urn:\udcff>"), 2, "is not an IRI"),
        (("paths", "<urn:p>", "--from", "\udcff"), 2, "found"),
        (("retrieve", "<urn:p>", "--topic", "urn:a", "-q", "\udcff", "-f", "json"), 0, ""),
        (("retrieve", "<urn:p>", '["\ud800"]', "--topic", "urn:a", "-f", "json"), 0, "left out"),
        (("retrieve", "[" * 100_000, "--topic", "urn:a"), 2, "is nested too deeply to be read"),
        (("retrieve", '[["p"], 1e999]', "--topic", "urn:a"), 2, "its weight is inf"),
    ],
)
def test_strange_arguments(tmp_path: FilePath, arguments: tuple[str, ...], status: int, said: str) -> None:
    """Bytes that are no UTF-8, texts of any depth."""
    (tmp_path / "kb.nt").write_text("<urn:a> <urn:p> <urn:b> .\n")
    done = CliRunner().invoke(app, [*arguments, "-g", str(tmp_path / "kb.nt")])
    assert (done.exit_code, said in done.stderr) == (status, True), done.output
    if "json" in arguments:
        json.loads(done.stdout)


def test_no_memory_on_the_command_line(tmp_path: FilePath, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise MemoryError("Unable to allocate 9 TiB")

    (tmp_path / "kb.nt").write_text("<urn:a> <urn:p> <urn:b> .\n")
    monkeypatch.setattr(reach, "one_by_one", refuse)
    done = CliRunner().invoke(app, ["paths", "<urn:p>", "-g", str(tmp_path / "kb.nt")])
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("error: there is no more memory: Unable to allocate 9 TiB; --limit ")
