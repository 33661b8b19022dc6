"""An rdflib app that is not changed, but for a query in a file, gains streams."""

from __future__ import annotations

from pathlib import Path

import pytest
from rdflib import Dataset

import spaseq
from spaseq.rdf import register
from tests.rdf import trades
from tests.rdf.app.report import report
from tests.rdf.trades import PREFIXED, TRADES, E

pytestmark = trades.pytestmark

QUERIES = Path(__file__).parent / "app"

KNOWN = """@prefix : <http://example.org/> .
GRAPH :kb { :acme :name "Acme" ; :sector "tools" . :bolt :name "Bolt" ; :sector "parts" . }"""


@pytest.fixture
def dataset() -> Dataset:
    dataset = Dataset()
    dataset.parse(data=KNOWN, format="trig")
    return dataset


def test_the_app_before(dataset: Dataset) -> None:
    assert list(report(dataset, QUERIES / "companies.rq")) == ["name\tsector", "Acme\ttools", "Bolt\tparts"]
    assert "spaseq" not in (QUERIES / "report.py").read_text()


def test_the_app_with_a_service_in_its_query(dataset: Dataset) -> None:
    engine = spaseq.Engine()
    with register(engine, PREFIXED, "falls"):
        reports = []
        for tick, price in enumerate([14, 12, 9, 8]):
            engine.push(TRADES, f"<{E.acme}> <{E.price}> {price} .", tick)
            reports.append(list(report(dataset, QUERIES / "fallen.rq")))
    nothing = ["name\tsector\tp1\tp2\twhen", "Acme\ttools\t-\t-\t-", "Bolt\tparts\t-\t-\t-"]
    assert reports[0] == nothing
    assert reports[1] == [nothing[0], "Acme\ttools\t14\t12\t1", nothing[2]]
    assert reports[2] == [nothing[0], "Acme\ttools\t14\t12\t1", "Acme\ttools\t12\t9\t2", nothing[2]]
    assert reports[3] == reports[2]
