"""``format("spaseq")``: RDF streams in files as rows of events, in batches or as a stream.

Spark starts some processes only to plan with it. So the code that reads events is loaded on the first read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from spaseq.errors import SourceError
from spaseq.sources import BadEvent, SourceOptions
from spaseq.sources._options import read_option, write_options
from spaseq.spark._workers import freeze_worker
from spaseq.spark.source._blocks import ALL, ARROW, BLOCKS, STREAM, read_row
from spaseq.spark.source._pieces import PIECE, Cutter, Place
from spaseq.spark.source._triggers import takes_all
from spaseq.terms.dictionary import Dictionary

_OWN: Final = ("path", "stream", "streams", "rows", "piecebytes", "maxbytespertrigger", "follow", "tasks")


class SpaseqDataSource(DataSource):
    """A stream in files: one row per event (``stream``, ``clock``, ``time``, ``n``, ``graph``, ``payload``).

    A malformed event is a row with its dead letter in ``bad``, which is null otherwise.

    Options: ``path``, which may be a folder or a pattern, with files read in the order of their names;
    ``stream``, its IRI; and the options of a source (``format``, ``time``, ``triples``, ``context``, … as in
    ``SourceOptions``). A stream also takes ``maxBytesPerTrigger``, rounded up to pieces of ``pieceBytes``,
    and ``follow``. With ``follow`` set to ``true``, it waits for new, complete files; their names must sort
    after those of earlier files. Without it, files added after the end was reached are left to the next run.
    A run continues at the position in Spark's checkpoint: a partly read file must not have changed. With
    ``trigger(availableNow=True)``, one micro-batch reads everything that is there.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "spaseq"

    def schema(self) -> str:
        """Return the columns of its rows. ``load`` calls this, so wrong options are reported there."""
        from spaseq.spark.source._rows import EVENTS

        return BLOCKS if _Input.of(self.options).blocks else EVENTS

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002  # it is our own
        """Return a reader of all events."""
        return _BatchReader(_Input.of(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802  # Spark's name
        """Return a reader of the events micro-batch by micro-batch."""
        return _StreamReader(_Input.of(self.options), partial(takes_all, dict(self.options)))


@dataclass(frozen=True, slots=True)
class _Stream:
    """A stream: its IRI, where it is, and how it is read."""

    iri: str
    path: str
    options: SourceOptions

    @classmethod
    def of(cls, values: Mapping[str, str]) -> _Stream:
        """Raise SourceError for a missing, unknown or wrong option."""
        for needed in ("path", "stream"):
            if needed not in values:
                raise SourceError(f"format spaseq needs the option {needed!r}")
        source = {name: read_option(name, value) for name, value in values.items() if name not in _OWN}
        if source.get("order") == "time":
            raise SourceError(
                "order=time reads a source whole, and Spark reads it in pieces: let a DataFrame sort it, and "
                "give that to spaseq.spark.events, or allow for lateness"
            )
        options = SourceOptions(**source)  # type: ignore[arg-type]  # read_option gives the fields' types
        return cls(values["stream"], values["path"], options)

    def cutter(self, piece: int) -> Cutter:
        """Return the object that cuts its files into pieces of this size."""
        return Cutter(self.path, self.options, piece)


@dataclass(frozen=True, slots=True)
class _Input:
    """The parsed options."""

    streams: tuple[_Stream, ...]
    blocks: bool
    piece: int
    most: int | None
    follow: bool
    tasks: int

    @classmethod
    def of(cls, given: Mapping[str, str]) -> _Input:
        """Raise SourceError for a missing, unknown or wrong option.

        ``streams``, the options of several streams as a list in JSON, is for ``queries.planned``.
        """
        values = {name.lower(): value for name, value in given.items()}
        each = json.loads(values["streams"]) if "streams" in values else [values]
        most = values.get("maxbytespertrigger")
        return cls(
            streams=tuple(map(_Stream.of, each)),
            blocks=values.get("rows") == "blocks",
            piece=_positive("pieceBytes", values.get("piecebytes", str(PIECE))),
            most=None if most is None else _positive("maxBytesPerTrigger", most),
            follow=_flag("follow", values.get("follow", "false")),
            tasks=_positive("tasks", values.get("tasks", str(os.cpu_count() or 1))),
        )


def streams_text(streams: Mapping[str, tuple[str, SourceOptions]]) -> str:
    """Return the option ``streams``: for each stream, by its IRI, its location and its options."""
    each = []
    for iri, (location, options) in streams.items():
        each.append({"stream": iri, "path": location, **write_options(options)})
    return json.dumps(each)


def _positive(name: str, value: str) -> int:
    if not value.isascii() or not value.isdigit() or int(value) < 1:
        raise SourceError(f"{name}={value!r} is not a positive number")
    return int(value)


def _flag(name: str, value: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise SourceError(f"{name}={value!r} is neither true nor false")
    return value.lower() == "true"


#: A row of ``_blocks``.
_Row = Mapping[str, Any]


@dataclass(frozen=True)
class _Task(InputPartition):
    """Rows of ``_blocks`` that one task reads, one after the other."""

    rows: tuple[_Row, ...]


def _tasks(rows: Sequence[_Row], count: int) -> list[InputPartition]:
    """Return the rows divided into this many tasks, with neighbours together."""
    share = max(1, -(-len(rows) // count))
    return [_Task(tuple(rows[i : i + share])) for i in range(0, len(rows), share)]


def _read(given: _Input, task: InputPartition) -> Iterator[pa.RecordBatch]:
    assert isinstance(task, _Task)
    if given.blocks:
        yield pa.RecordBatch.from_pylist(list(task.rows), schema=ARROW)
        freeze_worker()
        return
    from spaseq.spark.source._rows import all_rows

    dictionary = Dictionary()
    letters: list[BadEvent] = []
    for row in task.rows:
        yield from all_rows(read_row(row, dictionary, letters), letters, dictionary, row["first"])
    freeze_worker()


class _BatchReader(DataSourceReader):
    def __init__(self, given: _Input) -> None:
        self._given = given

    def partitions(self) -> Sequence[InputPartition]:
        rows = [
            piece.row(stream.iri)
            for stream in self._given.streams
            for piece, _ in stream.cutter(self._given.piece).after(Place())
        ]
        return _tasks(rows, self._given.tasks) or [_Task(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(self._given, partition)


#: How far each stream was read, by its IRI.
_Places = dict[str, Place]


class _StreamReader(DataSourceStreamReader):
    """A reader of micro-batches; its offsets are the places of the streams.

    Spark asks for the latest offset without passing the current one, so the reader remembers it. A process
    that continues from a checkpoint learns it first: Spark plans an empty range at the last offset that it
    knows.
    """

    def __init__(self, given: _Input, takes_all: Callable[[], bool]) -> None:
        """``takes_all``: whether Spark will ask for the latest offset only once, see ``_triggers``."""
        self._given = given
        self._takes_all = takes_all
        self._last: _Places | None = None
        self._is_first = True

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's name
        return _json({stream.iri: Place() for stream in self._given.streams})

    def latestOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's name
        # If Spark asks only once, the answer is the end of all that is there.
        most = None if self._is_first and self._takes_all() else self._given.most
        self._is_first = False
        last = self._last or {}
        self._last = {
            stream.iri: self._after(stream, last.get(stream.iri, Place()), most)
            for stream in self._given.streams
        }
        return _json(self._last)

    def _after(self, stream: _Stream, place: Place, most: int | None) -> Place:
        """Return up to where a stream is read in the next micro-batch."""
        if place.ended:
            return place
        size = 0
        for piece, behind in stream.cutter(self._given.piece).after(place):
            place = behind
            size += behind.at - piece.begin
            if most is not None and size >= most:
                return place
        return replace(place, ended=not self._given.follow)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        first, last = self._places(start), self._places(end)
        if self._last is None:
            for stream in self._given.streams:
                stream.cutter(self._given.piece).require(last[stream.iri])
            # An ended stream may have got new files since.
            self._last = {iri: replace(place, ended=False) for iri, place in last.items()}
        rows: list[_Row] = []
        for stream in self._given.streams:
            # Cut as it was planned, which may have been with pieces of another size.
            cutter = stream.cutter(last[stream.iri].piece or self._given.piece)
            rows += [piece.row(stream.iri) for piece in cutter.between(first[stream.iri], last[stream.iri])]
        tasks = _tasks(rows, self._given.tasks)
        if start != end and (ends := _ends(last)):
            tasks.append(_Task(tuple(ends)))
        return tasks

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not self._given.blocks:
            assert isinstance(partition, _Task)
            partition = _Task(tuple(row for row in partition.rows if row["ended"] is None))
        return _read(self._given, partition)

    def _places(self, offset: Mapping[str, Any]) -> _Places:
        """Return the places in an offset. Raises SourceError if it belongs to other streams."""
        mine = sorted(stream.iri for stream in self._given.streams)
        if sorted(offset) != mine:
            raise SourceError(
                f"the checkpoint is of other streams, {', '.join(sorted(offset))}, than {', '.join(mine)}: "
                "give each query a checkpoint of its own"
            )
        return {iri: Place(**said) for iri, said in offset.items()}


def _json(places: _Places) -> dict[str, Any]:
    return {iri: asdict(place) for iri, place in places.items()}


def _ends(places: _Places) -> list[_Row]:
    """Return the rows about ended streams: one for each while others go on, then one for all.

    Each micro-batch repeats them, since Spark forgets the watermarks of single streams when it stops.
    """
    if all(place.ended for place in places.values()):
        return [_ended(next(iter(places)), ALL)]
    return [_ended(iri, STREAM) for iri, place in places.items() if place.ended]


def _ended(stream: str, what: str) -> _Row:
    return dict.fromkeys(ARROW.names) | {"stream": stream, "ended": what}
