"""``rows``: CSV and NDJSON bytes, lifted by a JSON-LD context, and tables in memory to batches of events."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from io import BytesIO, TextIOWrapper

import pyarrow as pa
import pyoxigraph as ox

import spaseq
from spaseq.sources import SourceOptions, open_source
from spaseq.sources.columns.table import Table
from spaseq.terms.dictionary import Dictionary
from tests.benchmarks.ingest import read
from tests.benchmarks.measure import Measurement, check, side_by_side
from tests.benchmarks.realdata import CONTEXTS
from tests.benchmarks.trades import Trade, moment, rising_and_falling

_HEADER = ("time", "sequence", "ticker", "volume", "price", "side")


def benchmark(quick: bool) -> Iterator[Measurement]:
    """Six columns a row, against ``csv.reader`` and ``json.loads`` alone over the same bytes.

    The same rows as a table of Arrow, against our reading of them as CSV.
    """
    count = 500 if quick else 100_000
    rows = [_row(trade, number) for number, trade in enumerate(rising_and_falling(count, companies=100))]
    header = ",".join(_HEADER)
    texts = {
        "csv": "\n".join([header, *map(",".join, rows), ""]),
        "ndjson": "".join(json.dumps(dict(zip(_HEADER, row, strict=True))) + "\n" for row in rows),
    }
    parsers: dict[str, Callable[[bytes], None]] = {"csv": _read_csv, "ndjson": _read_json}
    for form, text in texts.items():
        data = text.encode()
        options = SourceOptions(format=form, context=CONTEXTS / "stock-trades.jsonld")
        parse = parsers[form]
        check("events", read(data, options), count)
        ours, parser = side_by_side(
            1 if quick else 5, lambda d=data, o=options: read(d, o), lambda d=data, p=parse: p(d)
        )
        yield Measurement(
            "rows",
            form,
            parser / ours,
            "csv.reader" if form == "csv" else "json.loads",
            {"rows": count / ours, "parsed rows": count / parser},
        )
    data, options = (
        texts["csv"].encode(),
        SourceOptions(format="csv", context=CONTEXTS / "stock-trades.jsonld"),
    )
    source = _table(rows)
    check("events", _read_table(source), count)
    ours, as_csv = side_by_side(1 if quick else 5, lambda: _read_table(source), lambda: read(data, options))
    yield Measurement(
        "rows", "table", as_csv / ours, "the same as CSV", {"rows": count / ours, "CSV": count / as_csv}
    )


def _table(rows: Sequence[tuple[str, ...]]) -> Table:
    time, number, ticker, volume, price, side = zip(*rows, strict=True)
    columns = {
        "at": pa.array([datetime.fromisoformat(moment) for moment in time]),
        "n": pa.array(map(int, number)),
        "ticker": pa.array(ticker),
        "volume": pa.array(map(int, volume)),
        "price": pa.array(map(float, price)),
        "side": pa.array(side),
    }
    template = """
        @prefix : <http://example.org/> .
        <http://example.org/{ticker}/{n}> :at ?at ; :n ?n ; :of <http://example.org/{ticker}> ;
            :volume ?volume ; :price ?price ; :side ?side . """
    return spaseq.table(pa.table(columns), time="at", template=template)


def _read_table(source: Table) -> int:
    batches = open_source(source, ox.NamedNode("urn:s"), Dictionary(), on_bad=print)
    return sum(map(len, batches))


def _row(trade: Trade, number: int) -> tuple[str, ...]:
    price = f"{trade.price // 100}.{trade.price % 100:02d}"
    volume, side = str(100 * (number % 50 + 1)), "BS"[number % 2]
    return moment(number), str(number), f"T{trade.company}", volume, price, side


def _read_csv(data: bytes) -> None:
    for _ in csv.reader(TextIOWrapper(BytesIO(data), encoding="utf-8", newline="")):
        pass


def _read_json(data: bytes) -> None:
    for line in data.splitlines():
        json.loads(line)
