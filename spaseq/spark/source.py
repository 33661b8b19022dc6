"""``format("spaseq")``: RDF streams in files as rows of events, in batches or as a stream.

Spark starts processes that only plan with it. So what reads events is loaded when some are read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from spaseq.errors import SourceError
from spaseq.sources import BadEvent, SourceOptions
from spaseq.sources._options import read_option
from spaseq.spark._blocks import ARROW, BLOCKS, read_row
from spaseq.spark._files import join, names, normal, opened
from spaseq.spark._pieces import Cutter, Piece, Place, files
from spaseq.spark._settle import settle
from spaseq.terms import Dictionary

#: Pieces are so large, unless ``pieceBytes`` says another size.
PIECE: Final = 8 << 20

_OWN: Final = ("path", "stream", "rows", "piecebytes", "maxbytespertrigger", "follow", "checkpoint", "tasks")


def register(spark: SparkSession) -> None:
    """Makes ``format("spaseq")`` known to a session."""
    spark.dataSource.register(SpaseqDataSource)


class SpaseqDataSource(DataSource):
    """A stream in files: one row per event (``stream``, ``clock``, ``time``, ``n``, ``graph``, ``payload``).

    What is malformed is a row with its dead letter in ``bad``, which is null otherwise.

    Options: the path, which may be a folder or a pattern, read in the order of names; ``stream``, its IRI;
    those of a source (``format``, ``time``, ``triples``, ``context``, ``header``, ``delimiter``).
    As a stream also ``maxBytesPerTrigger`` (rounded up to pieces of ``pieceBytes``), ``follow`` (``true``:
    new files come, complete, with names that sort after those that are there), and ``checkpoint``, the
    checkpoint location of the query: without it, everything there is makes the first batch after a restart.
    """

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "spaseq"

    def schema(self) -> str:
        """The columns of its rows."""
        from spaseq.spark._rows import EVENTS

        return BLOCKS if self.options.get("rows") == "blocks" else EVENTS

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002  # it is our own
        """Everything there is."""
        return _BatchReader(_Input.of(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802  # Spark's name
        """What there is, bit by bit."""
        return _StreamReader(_Input.of(self.options))


@dataclass(frozen=True, slots=True)
class _Input:
    """What the options say."""

    path: str
    stream: str
    options: SourceOptions
    blocks: bool
    piece: int
    most: int | None
    follow: bool
    checkpoint: str | None
    tasks: int

    @classmethod
    def of(cls, given: Mapping[str, str]) -> _Input:
        """Raises SourceError for a missing, unknown or wrong option."""
        values = {name.lower(): value for name, value in given.items()}
        for needed in ("path", "stream"):
            if needed not in values:
                raise SourceError(f"format spaseq needs the option {needed!r}")
        source = {name: read_option(name, value) for name, value in values.items() if name not in _OWN}
        if source.get("order") == "time":
            raise SourceError(
                "order=time reads a source whole, and Spark reads it in pieces: let a DataFrame sort it, and "
                "give that to spaseq.spark.events, or allow for lateness"
            )
        most = values.get("maxbytespertrigger")
        return cls(
            path=values["path"],
            stream=values["stream"],
            options=SourceOptions(**source),  # type: ignore[arg-type]  # read_option gives the fields' types
            blocks=values.get("rows") == "blocks",
            piece=_positive("pieceBytes", values.get("piecebytes", str(PIECE))),
            most=None if most is None else _positive("maxBytesPerTrigger", most),
            follow=values.get("follow", "false").lower() == "true",
            checkpoint=values.get("checkpoint"),
            tasks=_positive("tasks", values.get("tasks", str(os.cpu_count() or 1))),
        )

    def cutter(self) -> Cutter:
        """What cuts its files."""
        return Cutter(self.path, self.options, self.piece)


def _positive(name: str, value: str) -> int:
    if not value.isascii() or not value.isdigit() or int(value) < 1:
        raise SourceError(f"{name}={value!r} is not a positive number")
    return int(value)


@dataclass(frozen=True)
class _Task(InputPartition):
    """Pieces that one task reads, one after the other."""

    pieces: tuple[Piece, ...]
    ended: bool = False


def _tasks(pieces: Sequence[Piece], count: int) -> list[InputPartition]:
    """The pieces in so many tasks, neighbours together."""
    share = max(1, -(-len(pieces) // count))
    return [_Task(tuple(pieces[i : i + share])) for i in range(0, len(pieces), share)]


def _read(given: _Input, task: InputPartition) -> Iterator[pa.RecordBatch]:
    assert isinstance(task, _Task)
    rows = [piece.row(given.stream) for piece in task.pieces]
    if given.blocks:
        if task.ended:
            rows.append({"stream": given.stream, "ended": True})
        yield pa.RecordBatch.from_pylist(rows, schema=ARROW)
        settle()
        return
    from spaseq.spark._rows import ARROW as ROWS
    from spaseq.spark._rows import bad_row, rows_of

    dictionary = Dictionary()
    letters: list[BadEvent] = []
    for row in rows:
        for batch in read_row(row, dictionary, letters):
            yield rows_of(batch)
            dictionary.sweep()
        if letters:
            bad = [bad_row(letter, row["first"]) for letter in letters]
            yield pa.RecordBatch.from_pylist(bad, schema=ROWS)
            letters.clear()
    settle()


class _BatchReader(DataSourceReader):
    def __init__(self, given: _Input) -> None:
        self._given = given

    def partitions(self) -> Sequence[InputPartition]:
        pieces = [piece for piece, _ in self._given.cutter().after(Place())]
        return _tasks(pieces, self._given.tasks) or [_Task(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(self._given, partition)


class _StreamReader(DataSourceStreamReader):
    """Offsets are places. Spark asks for the latest one without saying where it is, so it is remembered."""

    def __init__(self, given: _Input) -> None:
        self._given = given
        self._last: Place | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's name
        return Place().json()

    def latestOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's name
        if self._last is None:
            self._last = self._logged()
        is_known = self._last is not None
        place = self._last or Place()
        size = 0
        given = self._given
        for piece, behind in given.cutter().after(place):
            place = behind
            size += behind.at - piece.begin
            if is_known and given.most is not None and size >= given.most:
                break
        else:
            place = Place(place.path, place.at, place.before, not given.follow)
        self._last = place
        return place.json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        first, last = Place(**start), Place(**end)
        pieces = []
        if (first.path, first.at) != (last.path, last.at):
            for piece, behind in self._given.cutter().after(first):
                pieces.append(piece)
                if (behind.path, behind.at) == (last.path, last.at):
                    break
        tasks = _tasks(pieces, self._given.tasks)
        if last.ended and not first.ended:
            tasks.append(_Task((), ended=True))
        return tasks

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(self._given, partition)

    def _logged(self) -> Place | None:
        """Where the query is by its checkpoint; its beginning if there is none yet, None if nobody knows."""
        if self._given.checkpoint is None:
            return None
        # Raises for a checkpoint that only Spark can read: taking it for none would double what was read.
        folder = join(normal(self._given.checkpoint), "offsets")
        found = (path.rpartition("/")[2] for path in names(folder))
        for log in sorted((int(name) for name in found if name.isdigit()), reverse=True):
            with opened(join(folder, str(log))) as file:
                lines = file.read().decode().splitlines()
            for line in lines:
                if line.startswith("{") and (place := self._mine(line)) is not None:
                    return place
        return Place()

    def _mine(self, line: str) -> Place | None:
        """The place that a line of Spark's log says, if it is one of this stream."""
        found = json.loads(line)
        if set(found) != {"path", "at", "before", "ended"}:
            return None
        paths = [str(path) for path in files(self._given.path)]
        return Place(**found) if found["path"] in paths else None
