"""Every benchmark runs, and its answers are right, on small inputs; how fast it is does not matter here."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from xml.etree.ElementTree import fromstring

import pytest

from tests.benchmarks.__main__ import BENCHMARKS, find, main
from tests.benchmarks.charts import panels, svg
from tests.benchmarks.measure import Measurement, check
from tests.benchmarks.trades import higher, n_quads, rising_and_falling, sinking, v_shapes

#: Those that measure nothing without reference data.
ON_DATA = {"gmark": "gmark", "metaqa": "metaqa", "rag": "metaqa", "sharp-paths": "metaqa"}


# rdflib's own Dataset.query uses what rdflib 7.6 deprecates.
@pytest.mark.filterwarnings("ignore:Dataset:DeprecationWarning")
@pytest.mark.few(0, ci=3)
@pytest.mark.parametrize(
    "name", [name for name in BENCHMARKS if name not in ("spark", "peers")]
)  # tests/spark has a session; peers need the network, and have a test of their own
def test_quick(name: str, shared: Callable[[str], Path]) -> None:
    benchmark = find(name)
    if benchmark is None:
        pytest.skip("its module is not there")
    if name in ON_DATA:
        shared(ON_DATA[name])
    measured = list(benchmark(True))
    assert measured
    for measurement in measured:
        assert measurement.benchmark == name
        assert measurement.ratio is None or measurement.ratio > 0


def test_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    main(["real", "--quick", "--json"])
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["benchmark"] == "real"


def test_charts() -> None:
    cases = {"Q3, window 9, 50% of the latency, sharp": 0.9, "Q3, window 9, 10% of the latency, sharp": 0.3}
    measured = [Measurement("sharp", case, None, "", facts={"recall": y}) for case, y in cases.items()]
    other = "Q3, window 9, 50% of the latency, random-state"
    measured += [
        Measurement("sharp", other, 2.0, "", facts={"recall": 0.5}),
        Measurement("sharp", "?", 1.0, ""),
    ]
    (panel,) = panels(measured)
    assert panel.title == "Q3, window 9: recall by latency"
    assert panel.lines == {"sharp": {"50%": 0.9, "10%": 0.3}, "random-state": {"50%": 0.5}}
    drawn = fromstring(svg([panel]))
    assert len(drawn.findall(".//{*}polyline")) == 2
    assert len(drawn.findall(".//{*}circle")) == 3


def test_inputs_are_the_same_every_time() -> None:
    assert n_quads(rising_and_falling(50, 5), 6) == n_quads(rising_and_falling(50, 5), 6)


def test_reference_answers() -> None:
    trades = rising_and_falling(200, companies=3)
    by_hand = 0
    for company in range(3):
        prices = [trade.price for trade in trades if trade.company == company]
        for i in range(len(prices)):
            for j in range(i + 2, len(prices)):
                by_hand += all(p < prices[i] for p in prices[i + 1 : j]) and prices[j] > prices[i]
    assert v_shapes(trades) == by_hand > 0
    falling = sinking(60)
    pairs = 0
    for i, trade in enumerate(falling):
        later = (j for j in range(i + 1, len(falling)) if falling[j].price > trade.price)
        pairs += next(later, i + 99) - i <= 5
    assert higher(falling, 5) == pairs > 0


def test_wrong_answers_stop_a_benchmark() -> None:
    with pytest.raises(AssertionError, match="matches: 1 instead of 2"):
        check("matches", 1, 2)
