"""Real trades, power and weather as rows: the conversion, and what the queries find in them."""

from __future__ import annotations

import csv
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import islice
from pathlib import Path

import spaseq
from tests.benchmarks.realdata import HOME_KB, ROOT, home_streams, power, trade_streams, trades, weather

Shared = Callable[[str], Path]
Rows = list[dict[str, str]]


def rows(path: Path) -> Rows:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def moment(row: dict[str, str]) -> datetime:
    return datetime.fromisoformat(row["time"])


def keep(path: Path, tickers: str, count: int) -> Rows:
    """The first rows of some tickers, to which the CSV file is cut."""
    with path.open(encoding="utf-8") as file:
        header = next(file)
        wanted = (line for line in file if line.split(",")[2] in tickers.split())
        path.write_text(header + "".join(islice(wanted, count)), encoding="utf-8")
    return rows(path)


def test_trades_are_merged_in_order(shared: Shared, tmp_path: Path) -> None:
    count = trades(shared("stock-inet-ticks"), tmp_path / "trades.csv")
    read = rows(tmp_path / "trades.csv")
    assert count == len(read) == 224_473
    assert [int(row["sequence"]) for row in read] == sorted({int(row["sequence"]) for row in read})
    assert [moment(row) for row in read] == sorted(moment(row) for row in read)
    assert read[0] == {
        "time": "2003-05-01T07:01:03.126000Z",
        "sequence": "8",
        "ticker": "INTC",
        "volume": "100",
        "price": "27.8500",
        "side": "B",
    }


def test_power_and_weather_of_one_day(shared: Shared, tmp_path: Path) -> None:
    home = shared("umass-smart-homeC")
    assert power(home, tmp_path / "power.csv") == 85_167
    assert weather(home, tmp_path / "weather.csv") == 1_439
    for name in ("power.csv", "weather.csv"):
        read = rows(tmp_path / name)
        assert {row["time"][:10] for row in read} == {"2012-06-10"}
        assert [moment(row) for row in read] == sorted(moment(row) for row in read)
    assert read[0]["humidity"] == "93"
    assert read[0]["direction"] == "90"


def test_v_shapes(shared: Shared, tmp_path: Path) -> None:
    streams = trade_streams(shared("stock-inet-ticks").parent, tmp_path)
    by_ticker: dict[str, Rows] = {}
    for row in keep(tmp_path / "trades.csv", "IPIX RIMM", 12_000):
        by_ticker.setdefault(row["ticker"], []).append(row)
    expected = []
    for ticker, read in by_ticker.items():
        price = [Decimal(row["price"]) for row in read]
        for i in range(len(read)):
            bottom = i
            while bottom + 1 < len(read) and price[bottom + 1] < price[bottom]:
                bottom += 1
            end = bottom + 1
            while i < bottom and end < len(read) and price[end] > price[end - 1]:
                near = moment(read[end]) - moment(read[i]) <= timedelta(minutes=5)
                if near and price[bottom] <= Decimal("0.998") * price[i] and price[end] >= price[i]:
                    expected.append((ticker, moment(read[i]), price[i], price[bottom], moment(read[end])))
                end += 1
    query = spaseq.prepare((ROOT / "streams" / "stocks-trades.rq").read_text(encoding="utf-8"))
    found = [match.bindings for match in spaseq.run(query, streams=streams)]
    values = [
        (
            str(row["company"]).rpartition("/")[2],
            row["since"].toPython(),
            row["p1"].toPython(),
            row["bottom"].toPython(),
            row["until"].toPython(),
        )
        for (row,) in found
    ]
    assert len(expected) > 5
    assert sorted(values) == sorted(expected)


def test_windy_minutes_after_a_high_load(shared: Shared, tmp_path: Path) -> None:
    streams = home_streams(shared("umass-smart-homeC").parent, tmp_path)
    loads = rows(tmp_path / "power.csv")
    windy = [moment(row) for row in rows(tmp_path / "weather.csv") if int(row["windspeed"]) >= 2]
    low = [moment(row) for row in loads if Decimal(row["watts"]) < 300]
    expected = []
    for row in loads:
        since = moment(row)
        reach = since + timedelta(minutes=15)
        if Decimal(row["watts"]) >= 2000:
            near = [time for time in windy if since < time <= reach]
            for count, last in enumerate(near, 1):
                until = next((time for time in low if time > last), None)
                if until is not None and until <= reach:
                    expected.append((since, count, until))
    query = spaseq.prepare((ROOT / "streams" / "smart-grid-home.rq").read_text(encoding="utf-8"))
    found = [
        (match.start, len(match.events["B"]), match.end)
        for match in spaseq.run(query, streams=streams, kb=HOME_KB)
    ]
    assert expected
    assert sorted(found) == sorted(expected)
