"""Real trades, power and weather as CSV rows, in order of time, for streams/contexts/*.jsonld to lift.

``python -m tests.benchmarks.realdata SHARED`` converts what lies in the folder of reference data
and runs the query of each over it: events a second, and the number of matches.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final

import spaseq

#: The trade files name no day: any day serves, and this is ours.
TRADING_DAY: Final = date(2003, 5, 1)

ROOT: Final = Path(__file__).parents[2]
CONTEXTS: Final = ROOT / "streams" / "contexts"
_STOCK: Final = "https://w3id.org/spaseq/example/stock/"
_GRID: Final = "https://w3id.org/spaseq/example/grid/"


def _write(target: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> int:
    """Rows as CSV with a header line; how many."""
    count = 0
    with target.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        for row in rows:
            writer.writerow(row)
            count += 1
    return count


def _stamp(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def _instant(unix: str) -> str:
    return _stamp(datetime.fromtimestamp(int(unix), UTC))


def clock_time(text: str) -> timedelta:
    """``hh:mm:ss.mmm`` with milliseconds that lack their leading zeros.

    >>> clock_time("18:35:40.29")
    datetime.timedelta(seconds=66940, microseconds=29000)
    """
    hours, minutes, rest = text.split(":")
    seconds, milliseconds = rest.split(".")
    return timedelta(
        hours=int(hours), minutes=int(minutes), seconds=int(seconds), milliseconds=int(milliseconds)
    )


def trades(folder: Path, target: Path) -> int:
    """All files of trades merged, by the sequence number that the exchange gave.

    The times of day count as UTC, on ``TRADING_DAY``.
    """
    rows = []
    for path in sorted(folder.glob("TimeAndSales_*.txt")):
        for line in path.read_text(encoding="ascii").splitlines():
            ticker, sequence, volume, price, clock, side = line.split()
            rows.append((int(sequence), ticker, volume, price, clock, side))
    rows.sort()
    midnight = datetime(TRADING_DAY.year, TRADING_DAY.month, TRADING_DAY.day, tzinfo=UTC)
    return _write(
        target,
        ("time", "sequence", "ticker", "volume", "price", "side"),
        (
            (_stamp(midnight + clock_time(clock)), sequence, ticker, volume, price, side)
            for sequence, ticker, volume, price, clock, side in rows
        ),
    )


def power(folder: Path, target: Path) -> int:
    """10 June 2012 of the home's meter: a reading a second, with gaps."""
    with (folder / "power" / "2012-Jun-10.csv").open(encoding="ascii", newline="") as file:
        rows = ((_instant(unix), "home-c", watts) for unix, watts in csv.reader(file))
        return _write(target, ("time", "house", "watts"), rows)


def weather(folder: Path, target: Path) -> int:
    """10 June 2012 of the home's weather station: a reading a minute, without rain and derived values."""
    wind = ("windspeed", "gustspeed", "direction")
    header = ("time", "station", "temperature", "humidity", "barometer", *wind)
    with (folder / "environmental" / "2012-June-10.csv").open(encoding="ascii", newline="") as file:
        rows = (
            (_instant(row[0]), "station-c", row[1], row[2], *row[4:8])  # row[3] is the dew point
            for row in csv.reader(file)
        )
        return _write(target, header, rows)


def trade_streams(shared: Path, folder: Path) -> dict[str, str]:
    """Sources for ``streams/stocks-trades.rq``, written to a folder."""
    trades(shared / "stock-inet-ticks", folder / "trades.csv")
    context = CONTEXTS / "stock-trades.jsonld"
    return {f"{_STOCK}stream/real-trades": f"{folder / 'trades.csv'}?context={context}"}


def home_streams(shared: Path, folder: Path) -> dict[str, str]:
    """Sources for ``streams/smart-grid-home.rq``, written to a folder."""
    home = shared / "umass-smart-homeC"
    power(home, folder / "power.csv")
    weather(home, folder / "weather.csv")
    return {
        f"{_GRID}stream/home-{kind}": f"{folder / kind}.csv?context={CONTEXTS / f'{kind}-readings.jsonld'}"
        for kind in ("power", "weather")
    }


HOME_KB: Final = {f"{_GRID}home-kb": str(ROOT / "kb" / "smart-grid-home.ttl")}


def main() -> None:
    """Convert, run, report."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("shared", type=Path, help="the folder of reference data")
    shared = parser.parse_args().shared
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for query, streams, kb in (
            ("stocks-trades", trade_streams(shared, folder), {}),
            ("smart-grid-home", home_streams(shared, folder), HOME_KB),
        ):
            prepared = spaseq.prepare((ROOT / "streams" / f"{query}.rq").read_text(encoding="utf-8"))
            last = None

            def progress(now: spaseq.Progress) -> None:
                nonlocal last
                last = now

            begin = time.perf_counter()
            matches = sum(1 for _ in spaseq.run(prepared, streams=streams, kb=kb, progress=progress))
            seconds = time.perf_counter() - begin
            assert last is not None
            print(
                f"{query}: {last.events} events in {seconds:.1f} s, {last.events / seconds:.0f} events/s; "
                f"{matches} matches; {last.bad} bad, {last.late} late events"
            )


if __name__ == "__main__":
    main()
