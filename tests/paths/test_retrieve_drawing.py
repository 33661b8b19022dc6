"""Paths as a graph of networkx and as a picture, from Python and from the command line."""

from __future__ import annotations

import re
from itertools import combinations
from math import dist
from pathlib import Path
from xml.etree import ElementTree

import networkx as nx
import pytest
import rdflib
from typer.testing import CliRunner, Result

from spaseq.cli import app
from spaseq.paths import load, retrieve, to_networkx
from spaseq.paths.drawing import svg

SVG = "{http://www.w3.org/2000/svg}"
TURTLE = """
@prefix : <http://e.org/> .
:alice :knows :bob , :carol ; :trusts :bob . :bob :knows :dave , :bob . :carol :knows :dave .
:dave :knows :alice ; :says "<so & so>" .
"""
ALICE = rdflib.URIRef("http://e.org/alice")
BOB = rdflib.URIRef("http://e.org/bob")
KNOWS = rdflib.URIRef("http://e.org/knows")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "kb.ttl"
    path.write_text(TURTLE)
    return path


def boxes(picture: str) -> list[tuple[str, tuple[float, float, float, float]]]:
    """The places of a picture: label and (left, top, right, bottom)."""
    root = ElementTree.fromstring(picture)
    texts = [(*_numbers(text, "x", "y"), text.text or "") for text in root.iter(f"{SVG}text")]
    found = []
    for rect in root.iter(f"{SVG}rect"):
        if str(rect.get("class")).startswith("state"):
            x, y, width, height = _numbers(rect, "x", "y", "width", "height")
            centre = (x + width / 2, y + height / 2 + 4.5)
            inside = [text for tx, ty, text in texts if dist((tx, ty), centre) < 0.3]
            assert len(inside) == 1
            found.append((inside[0], (x, y, x + width, y + height)))
    return found


def _numbers(element: ElementTree.Element, *names: str) -> tuple[float, ...]:
    return tuple(float(str(element.get(name))) for name in names)


def test_the_subgraph(file: Path) -> None:
    graph = load(file)
    network = to_networkx(graph.paths(":knows{1,2}", sources=":alice", mode="ACYCLIC"))
    assert isinstance(network, nx.MultiDiGraph)
    assert {data["label"]: data["depth"] for _, data in network.nodes(data=True)} == {
        "alice": 0,
        "bob": 1,
        "carol": 1,
        "dave": 2,
    }
    assert network.number_of_edges() == 4
    assert network.edges[ALICE, BOB, KNOWS] == {"label": "knows"}
    assert nx.has_path(network, ALICE, rdflib.URIRef("http://e.org/dave"))


def test_a_retrieval_has_scores(file: Path) -> None:
    found = retrieve(load(file), [["knows"], (["knows", "knows"], 0.5), (["^knows"], 0.2)], ":alice")
    network = to_networkx(found)
    assert len(network.edges) == len(found.triples)
    assert network.edges[ALICE, BOB, KNOWS]["score"] == 1.0  # of the best path it is on
    assert sorted(data["score"] for *_, data in network.edges(data=True)) == [0.2, 0.5, 0.5, 0.5, 1.0, 1.0]


def test_every_place_is_drawn_and_none_over_another(file: Path) -> None:
    picture = svg(to_networkx(retrieve(load(file), ["(.|^.){1,3}"], ":alice", k=100)))
    found = boxes(picture)
    assert {label for label, _ in found} == {"alice", "bob", "carol", "dave", "<so & so>"}
    for (_, a), (_, b) in combinations(found, 2):
        assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
    root = ElementTree.fromstring(picture)
    left, top, width, height = map(float, str(root.get("viewBox")).split())
    for _, box in found:
        assert left <= box[0] <= box[2] <= left + width
        assert top <= box[1] <= box[3] <= top + height
    labels = [text.text for text in root.iter(f"{SVG}text")]
    assert labels.count("knows") == 6
    assert labels.count("trusts") == 1
    begin = {label: box[0] for label, box in found}
    assert begin["alice"] < min(begin["bob"], begin["carol"]) < begin["<so & so>"]


def test_labels_are_cut_in_pictures_only() -> None:
    graph = load([("urn:a", "urn:p", "x" * 200)])
    network = to_networkx(retrieve(graph, [["p"]], "urn:a"))
    assert max(len(data["label"]) for _, data in network.nodes(data=True)) == 200
    assert max(len(label) for label, _ in boxes(svg(network))) == 40


def test_no_paths_are_a_picture_too() -> None:
    assert [label for label, _ in boxes(svg(to_networkx([])))] == ["no paths"]


def test_a_path_of_no_edges_at_a_term_that_is_no_node(file: Path) -> None:
    network = to_networkx(load(file).paths(":knows?", sources=":nobody"))
    assert [data for _, data in network.nodes(data=True)] == [
        {"label": "<http://e.org/nobody>", "depth": 0},
    ]


def spaseq(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["paths", *map(str, arguments)])


def test_command_line(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "picture.svg"
    done = spaseq(":knows+", "-g", file, "--from", ":alice", "--mode", "TRAIL", "-f", "svg", "-o", out)
    assert done.exit_code == 0, done.output
    assert {label for label, _ in boxes(out.read_text())} == {"alice", "bob", "carol", "dave"}
    assert re.search("<title>Paths from alice</title>", out.read_text())
    two = spaseq(":knows{1,3}", "-g", file, "--from", ":alice", "--mode", "TRAIL", "--max", 1, "-f", "svg")
    assert "there are more than 1" in two.stderr
    assert len(boxes(two.stdout)) == 2


@pytest.mark.parametrize(("form", "said"), [("svg", "add --mode"), ("dot", "is for --explain")])
def test_what_cannot_be_drawn(file: Path, form: str, said: str) -> None:
    done = spaseq(":knows", "-g", file, "-f", form)
    assert done.exit_code == 2
    assert said in done.stderr
