"""Graphs in files: what is opened answers as what was saved, and what is damaged or stale is refused."""

from __future__ import annotations

import os
import pickle
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode
from typer.testing import CliRunner

import spaseq.paths
from spaseq.cli import app
from spaseq.errors import KnowledgeError
from spaseq.language.reading.source import QueryText
from spaseq.paths import KnowledgeGraph, load
from spaseq.paths.graph.saved.file import VERSION, mapped, write_whole
from spaseq.paths.language.expression import Expression
from tests.conftest import examples
from tests.paths.strategies import ends, graphs, paths

KB = '@prefix : <urn:> .\n:a :knows :b . :b :knows :c , [ :name "é \\\\ \\n" ] . :c :age 7 ; :name "C"@en .\n'


def spaseq_(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, [*arguments])
    return done.exit_code, done.stdout, done.stderr


@pytest.fixture
def kb(tmp_path: Path) -> Path:
    path = tmp_path / "kb.ttl"
    path.write_text(KB)
    return path


@pytest.fixture
def built(kb: Path) -> Path:
    file = kb.with_suffix(".spaseq")
    spaseq.paths.build(kb, file)
    return file


def answers(graph: KnowledgeGraph) -> object:
    queries = (".+", "^:knows*", ":knows/!:age", "[:name]", ":knows{2}/[:age 7]")
    return [sorted(zip(*(ids.tolist() for ids in graph.pairs(q).arrays), strict=True)) for q in queries]


def everything(graph: KnowledgeGraph) -> object:
    terms = [graph.ox_term(node) for node in range(graph.nodes)]
    numbers = [graph.node(term) for term in terms]
    predicates = [graph.ox_predicate(number) for number in range(graph.predicates)]
    columns = [column.tolist() for column in graph.edges()]
    return terms, numbers, predicates, columns, dict(graph.prefixes), len(graph)


@settings(max_examples=examples(60))
@given(st.data())
def test_what_is_opened_answers_as_what_was_saved(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    triples = data.draw(graphs())
    expression = Expression(data.draw(paths), {}, QueryText("", "<path>"))
    sources, targets = data.draw(ends), data.draw(ends)
    graph = load(triples)
    file = tmp_path_factory.getbasetemp() / "any.spaseq"
    graph.save(file)
    opened = spaseq.paths.open(file)
    assert everything(opened) == everything(graph)
    for one in (opened, pickle.loads(pickle.dumps(graph))):
        assert set(one.pairs(expression, sources, targets)) == set(graph.pairs(expression, sources, targets))


def test_terms_of_all_sorts(tmp_path: Path) -> None:
    objects = [
        *map(Literal, ("", "x" * 10_000, "é\n\\\"\t", "\U0001f600", "true")), Literal("a", language="en-GB"),
        Literal(7), Literal(True), BlankNode("b"), BlankNode(), NamedNode("urn:é"),
    ]  # fmt: skip
    graph = load([(NamedNode("urn:s"), NamedNode("urn:p"), value) for value in objects], {"": "urn:"})
    graph.save(tmp_path / "g.spaseq")
    opened = spaseq.paths.open(tmp_path / "g.spaseq")
    assert everything(opened) == everything(graph)
    assert [opened.node(value) for value in objects] == [graph.node(value) for value in objects]
    assert opened.node("urn:nobody") is None


def test_lines_and_their_blank_nodes(tmp_path: Path) -> None:
    """The compiled scanner's, whose blank nodes have no names until one asks."""
    path = tmp_path / "kb.nt"
    import spaseq.sources.scan.fast  # so that small files are read by it, too

    path.write_text("_:x <urn:p> _:y .\n_:y <urn:p> <urn:a> .\n")
    graph = load(path)
    graph.save(tmp_path / "kb.spaseq")
    one, other = (spaseq.paths.open(tmp_path / "kb.spaseq") for _ in range(2))
    assert everything(one) == everything(other) == everything(graph)


def test_a_graph_without_edges(tmp_path: Path) -> None:
    load([]).save(tmp_path / "none.spaseq")
    opened = spaseq.paths.open(tmp_path / "none.spaseq", {"": "urn:"})
    assert (len(opened), opened.nodes, len(opened.pairs(":a*"))) == (0, 0, 0)
    assert spaseq_("graph", "check", str(tmp_path / "none.spaseq"))[0] == 0


def test_load_opens_it(built: Path) -> None:
    graph = load(built, {"e": "urn:e:"})
    assert answers(graph) == answers(load(built.with_suffix(".ttl")))
    assert dict(graph.prefixes) == {"": "urn:", "e": "urn:e:"}
    with pytest.raises(KnowledgeError, match="format='ttl' is for other files"):
        load(built, format="ttl")


def test_saving_over_a_file_that_is_open(built: Path) -> None:
    graph = spaseq.paths.open(built)
    load([("urn:x", "urn:y", "urn:z")]).save(built)
    assert (len(graph), len(spaseq.paths.open(built))) == (6, 1)
    assert answers(graph) == answers(load(built.with_suffix(".ttl")))
    assert [path.name for path in built.parent.iterdir()].count(built.name) == len(
        list(built.parent.iterdir())
    ) - 1


def test_saving_what_was_opened(built: Path) -> None:
    graph = spaseq.paths.open(built)
    graph.save(built)
    again = spaseq.paths.open(built)
    assert everything(again) == everything(graph)
    again.pairs(":knows/[:age]/!:x*")  # adds to the arrays, which are mapped
    assert spaseq_("graph", "check", str(built))[0] == 0


def test_pickle(built: Path) -> None:
    opened = spaseq.paths.open(built, {"e": "urn:e:"}, spaseq.Limits(query_bytes=1 << 20))
    data = pickle.dumps(opened)
    assert len(data) < 4_000  # its file's name, not its arrays
    again = pickle.loads(data)
    assert (everything(again), again.limits) == (everything(opened), opened.limits)
    twice = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(load(built.with_suffix(".ttl"))))))
    assert answers(twice) == answers(opened)
    load([("urn:x", "urn:y", "urn:z")]).save(built)
    with pytest.raises(KnowledgeError, match="no longer the graph that was pickled"):
        pickle.loads(data)


@pytest.mark.slow
def test_another_process(built: Path) -> None:
    program = (
        "import sys, pickle\n"
        "graph = pickle.load(sys.stdin.buffer)\n"
        "print(sorted(map(str, graph.pairs(':knows+', [':a']))))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], input=pickle.dumps(spaseq.paths.open(built)), capture_output=True,
        check=True,
    )  # fmt: skip
    assert b"urn:b" in done.stdout


@pytest.mark.slow
def test_every_byte_counts(built: Path) -> None:
    """Whatever byte is changed, opening or checking the file says that it is damaged, or no graph at all."""
    whole = built.read_bytes()
    step = max(1, len(whole) // 50)
    unnoticed = 0
    for place in range(0, len(whole), step):
        changed = bytearray(whole)
        changed[place] ^= 0x41
        built.write_bytes(changed)
        code, _, error = spaseq_("graph", "check", str(built))
        assert (code, "Traceback" in error) in ((0, False), (1, False)), error
        unnoticed += code == 0
        assert code == 0 or "damaged" in error or "no graph" in error or "of format" in error
    blocks = spaseq.paths.open(_written(built, whole)).file
    assert blocks is not None
    padding = len(whole) - sum(block.size for block in blocks.blocks.values())
    assert unnoticed <= padding // step + len(blocks.blocks)


def _used(file: Path) -> object:
    """All that a graph of a file says."""
    graph = load(file)
    names = [graph.link(name, k=2) for name in ("C", "age", "noone")]
    return everything(graph), answers(graph), [str(names)], str(graph.names.alike("age")), graph.predicates


def _damages(built: Path, times: int, seed: int) -> None:
    """Bits that are flipped, and ends that are missing: the one error, or nothing else than before."""
    whole, rng = built.read_bytes(), random.Random(seed)
    said, found = _used(built), 0
    for number in range(times):
        changed = bytearray(whole)
        at = rng.randrange(len(whole))
        if number % 5 == 0:
            del changed[at:]
        else:
            changed[at] ^= 1 << rng.randrange(8)
        built.write_bytes(changed)
        try:
            answers = _used(built)
        except KnowledgeError as error:
            answers, found = said if str(built) in str(error) else error, found + 1
        assert answers == said, number
    assert found > 0.9 * times


def test_damages(built: Path) -> None:
    _damages(built, 100, 1)


#: How many files are damaged: a tenth in CI.
TIMES = [pytest.param(1_000, marks=pytest.mark.slow), pytest.param(10_000, marks=pytest.mark.long)]


@pytest.mark.parametrize("times", TIMES)
def test_many_damages(built: Path, times: int) -> None:
    _damages(built, times, 2)


def _crafted(built: Path, times: int, seed: int) -> None:
    """Numbers out of bounds with right checksums are refused, or do no harm."""
    rng, file = random.Random(seed), mapped(built)
    changeable = [name for name in file.names() if not name.startswith("names.")]
    found = 0
    for _ in range(times):
        arrays = {name: file.array(name) for name in file.names()}
        name = rng.choice(changeable)
        array = arrays[name] = arrays[name].copy()
        if rng.random() < 0.2:
            arrays[name] = array.reshape(-1)[: rng.randrange(array.size)]
        else:
            kind = np.iinfo(array.dtype)
            array.reshape(-1)[rng.randrange(array.size)] = rng.choice([kind.min, kind.max, -1 % kind.max, 7])
        bad = built.with_name("bad.spaseq")
        write_whole(bad, file.facts, arrays)
        try:
            _used(bad)
        except KnowledgeError as error:
            found += f"{bad}: the file is damaged" in str(error)
        except (ValueError, UnicodeDecodeError, KeyError, AssertionError):
            pass  # a term is another one
    assert found > times // 2


@pytest.mark.slow
def test_crafted(built: Path) -> None:
    _crafted(built, 100, 3)


@pytest.mark.parametrize("times", TIMES)
def test_much_crafted(built: Path, times: int) -> None:
    _crafted(built, times, 4)


@pytest.mark.parametrize("left", [0, 5, 12, 24, 100, -64, -1])
def test_a_file_that_ends_early(built: Path, left: int) -> None:
    built.write_bytes(built.read_bytes()[:left])
    with pytest.raises(KnowledgeError, match=r"damaged|no graph|empty"):
        spaseq.paths.open(built)


def test_damage_is_seen_at_first_touch(built: Path) -> None:
    """Opening reads no block; what needs the damaged one fails, again and again; the rest answers."""
    whole = bytearray(built.read_bytes())
    file = spaseq.paths.open(built).file
    assert file is not None
    whole[file.blocks["edges.p"].start] ^= 1
    built.write_bytes(whole)
    graph = spaseq.paths.open(built)
    assert graph.node(":a") == 0
    for _ in range(2):
        with pytest.raises(KnowledgeError, match=r"checksum of its block edges\.p is wrong: build it anew"):
            graph.pairs(":knows")
    assert graph.node(":a") == 0


def test_another_version(built: Path) -> None:
    whole = bytearray(built.read_bytes())
    whole[8] = VERSION + 1
    built.write_bytes(whole)
    with pytest.raises(
        KnowledgeError, match=rf"it is of format {VERSION + 1}, and this spaseq reads {VERSION}"
    ):
        spaseq.paths.open(built)


def test_numbers_out_of_bounds_with_right_checksums(built: Path) -> None:
    """What another program has written."""
    file = mapped(built)
    for name in ("edges.s", "targets", "node_ids", "node_of", "table.slots", "edges.begins"):
        arrays = {other: file.array(other) for other in file.names()}
        arrays[name] = arrays[name].copy()
        arrays[name][0] = 1_000_000
        write_whole(built.parent / "bad.spaseq", file.facts, arrays)
        code, _, error = spaseq_("graph", "check", str(built.parent / "bad.spaseq"))
        assert (code, f"block {name} is out of bounds" in error) == (1, True)


def test_stale(kb: Path, built: Path) -> None:
    os.utime(kb, (1, 1))  # as copies have it: what it says is the same
    assert answers(spaseq.paths.open(built)) == answers(load(kb))
    kb.write_text(KB.replace(":c :age 7", ":d :age 7"))  # of the same length
    for command in (("graph", "check", str(built)), ("paths", ":knows", "-g", str(built))):
        code, out, error = spaseq_(*command)
        assert (code, out) == (1, "")
        assert f"it was made of {kb}, which has changed since" in error
        assert f"spaseq graph build {kb} -o {built}" in error
    assert spaseq_("graph", "build", str(kb), "-o", str(built))[0] == 0
    assert answers(spaseq.paths.open(built)) == answers(load(kb))
    moved = kb.rename(kb.with_name("elsewhere.ttl"))  # without its source, a file is what it is
    assert answers(spaseq.paths.open(built)) == answers(load(moved))


@pytest.mark.slow
def test_the_command_line(kb: Path, tmp_path: Path) -> None:
    built = str(kb.with_suffix(".spaseq"))
    code, out, error = spaseq_("graph", "build", str(kb))
    assert (code, out, error) == (0, "", f"{built}: 6 edges, 7 nodes, 3 predicates\n")
    assert spaseq_("graph", "check", built) == (0, f"{built}: whole: 6 edges, 7 nodes, 3 predicates\n", "")
    for command in (
        ("paths", ":knows+", "--from", ":a", "-f", "csv", "--to", ":c"),
        ("paths", ":knows+", "--explain"),
        ("retrieve", ":knows/:knows*/:age", "--topic", ":a", "-f", "table"),
    ):
        assert spaseq_(*command, "-g", built) == spaseq_(*command, "-g", str(kb))
    other = tmp_path / "kb.dat"
    other.write_text(KB)
    assert spaseq_("graph", "build", str(other), "--graph-format", "ttl")[0] == 0
    for arguments, said in (
        (("build", str(tmp_path / "none.ttl")), "No such file"),
        (("build", str(kb), "-o", str(kb)), "own file, which is not written over"),
        (("build", str(kb), "-o", str(tmp_path / "no" / "kb.spaseq")), "No such file"),
        (("check", str(kb)), "this is no graph that spaseq has saved"),
        (("check", str(tmp_path)), "directory"),
    ):
        code, out, error = spaseq_("graph", *arguments)
        assert (code, out, said in error) == (1, "", True), error
    assert kb.read_text() == KB


def _written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path
