"""Layered drawings: nothing is over anything that it hides."""

from __future__ import annotations

import re
from itertools import combinations, pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from spaseq.automaton.layered import Box, Drawn, DrawnPlace, Pair
from spaseq.automaton.routes import arrows
from tests.conftest import examples


@st.composite
def drawings(draw: st.DrawFn) -> tuple[list[DrawnPlace], dict[Pair, list[str]]]:
    """A few places in layers without gaps, and arrows between some of them."""
    depth = draw(st.integers(1, 4))
    layers = [*range(depth), *draw(st.lists(st.integers(0, depth - 1), max_size=6))]
    halves = draw(st.lists(st.sampled_from([20.0, 60.0]), min_size=len(layers), max_size=len(layers)))
    places = [DrawnPlace(layer, half, 15.0) for layer, half in zip(layers, halves, strict=True)]
    number = st.integers(0, len(places) - 1)
    lines = st.lists(st.sampled_from(["a", "some label"]), min_size=1, max_size=2)
    return places, draw(st.dictionaries(st.tuples(number, number), lines, max_size=8))


def points(drawn: Drawn) -> list[tuple[float, float]]:
    """Some points of an arrow: of its lines, and of its cubic curves."""
    path = re.search(r' d="([^"]+)"', drawn.lines)
    assert path is not None
    at: tuple[float, float] = (0.0, 0.0)
    found = []
    for kind, text in re.findall(r"([MLC])([^MLC]+)", path[1]):
        numbers = [float(number) for number in text.split()]
        ends = list(zip(numbers[::2], numbers[1::2], strict=True))
        a, b, c, d = (at, *ends) if kind == "C" else (at, at, ends[0], ends[0])
        for k in range(17 if kind != "M" else 0):
            t = k / 16
            weights = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3
            found.append(
                tuple(sum(w * p[i] for w, p in zip(weights, (a, b, c, d), strict=True)) for i in (0, 1))
            )
        at = ends[-1]
    return found


def boxes(places: list[DrawnPlace], centres: list[tuple[float, float]]) -> list[Box]:
    return [
        (x - p.half, y - p.tall, x + p.half, y + p.tall) for (x, y), p in zip(centres, places, strict=True)
    ]


@settings(max_examples=examples(150))
@given(drawings())
def test_places_are_apart_and_no_arrow_is_behind_one(
    drawing: tuple[list[DrawnPlace], dict[Pair, list[str]]],
) -> None:
    places, labels = drawing
    centres, drawn = arrows(places, labels)
    found = boxes(places, centres)
    for a, b in combinations(found, 2):
        assert a[2] < b[0] or b[2] < a[0] or a[3] < b[1] or b[3] < a[1]
    for (a, b), arrow in zip(labels, drawn, strict=True):
        if a != b:
            for x, y in points(arrow):
                assert not any(left < x < right and top < y < low for left, top, right, low in found), (a, b)


@settings(max_examples=examples(50))
@given(drawings())
def test_arrows_lead_from_place_to_place(drawing: tuple[list[DrawnPlace], dict[Pair, list[str]]]) -> None:
    places, labels = drawing
    centres, drawn = arrows(places, labels)
    for (a, b), arrow in zip(labels, drawn, strict=True):
        if a != b:
            path = points(arrow)
            for place, (x, y) in ((a, path[0]), (b, path[-1])):
                assert abs(abs(x - centres[place][0]) - places[place].half - 3) < 0.2
                assert abs(y - centres[place][1]) < places[place].tall
            assert all(abs(p[0] - q[0]) + abs(p[1] - q[1]) < 200 for p, q in pairwise(path))


def test_a_tree_has_its_labels_in_its_rows() -> None:
    """One place, six after it: each label beside its own, none over another."""
    places = [DrawnPlace(0, 40.0, 15.0), *[DrawnPlace(1, 30.0 + 10 * i, 15.0) for i in range(6)]]
    for labels in (
        {(0, i): ["some label"] for i in range(1, 7)},
        {(i, 0): ["some label"] for i in range(1, 7)},
    ):
        centres, drawn = arrows(places, labels)
        written = [arrow.boxes[1] for arrow in drawn]
        for a, b in combinations([*written, *boxes(places, centres)], 2):
            assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
        for (_, y), (_, top, _, bottom) in zip(centres[1:], written, strict=True):
            assert top < y < bottom


def test_a_chain_is_straight() -> None:
    places = [DrawnPlace(i, 20.0, 20.0, circle=True) for i in range(4)]
    centres, drawn = arrows(places, {(i, i + 1): ["x"] for i in range(3)})
    assert {y for _, y in centres} == {0.0}
    assert all(y == 0.0 for arrow in drawn for _, y in points(arrow))
