"""Blocks: rows that name a range of bytes of a stream, or contain the bytes; the stateless stage reads them.

So the contents of files never pass through Spark, only their ranges do. A message of a broker is a block with
its own bytes.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import IO, Any, Final

import pyarrow as pa
from pyoxigraph import NamedNode

from spaseq.errors import SourceError
from spaseq.events import EventBatch
from spaseq.sources import BadEvent, SourceOptions, open_source
from spaseq.sources._options import read_option, write_options
from spaseq.spark.source._files import is_local, opened
from spaseq.terms.dictionary import Dictionary

#: ``first`` is the number of the first event. The bytes are ``data`` or, if that is null, ``begin`` to
#: ``end`` of ``path`` (null: the whole file). ``ended``: this stream brings no more events (``STREAM``), or
#: no stream does (``ALL``); then the rest is null.
BLOCKS: Final = (
    "stream string, first bigint, options string, data binary, "
    "path string, begin bigint, end bigint, ended string"
)

#: Values of ``ended``.
STREAM: Final = "stream"
ALL: Final = "all"

_ARROW: Final = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}


def arrow_schema(ddl: str) -> pa.Schema:
    """Return the Arrow schema for columns in DDL."""
    return pa.schema({name: _ARROW[kind] for name, kind in (column.split() for column in ddl.split(", "))})


#: The same columns as an Arrow schema.
ARROW: Final = arrow_schema(BLOCKS)


def read_row(row: Mapping[str, Any], dictionary: Dictionary, letters: list[BadEvent]) -> Iterator[EventBatch]:
    """Yield the events of a block; malformed ones are added to ``letters``."""
    # Here it pays from the first line on: the code stays loaded.
    import spaseq.sources.scan.fast  # noqa: F401

    location: str | IO[bytes]
    if row["data"] is not None:
        location = io.BytesIO(row["data"])
    elif row["begin"] is not None:
        location = _range(row["path"], row["begin"], row["end"])
    else:
        location = row["path"] if is_local(row["path"]) else opened(row["path"])
    options = options_of(row["options"])
    first = row["first"]
    stream = NamedNode(row["stream"])
    where = f"{row['path']}, " if row["data"] is None else ""
    where += f"after byte {row['begin']}: " if row.get("begin") else ""

    def refuse(letter: BadEvent) -> None:
        letters.append(replace(letter, position=f"{where}{letter.position}"))

    for batch in open_source(location, stream, dictionary, options, on_bad=refuse):
        yield replace(batch, n=batch.n + first) if first else batch


def _range(path: str, begin: int, end: int) -> IO[bytes]:
    """Return a range of bytes of a file. Raises SourceError if they are no longer there."""
    try:
        with opened(path) as file:
            file.seek(begin)
            data = file.read(end - begin)
    except FileNotFoundError:
        raise SourceError(f"{path}: deleted before bytes {begin:,} to {end:,} were read") from None
    if len(data) < end - begin:
        raise SourceError(f"{path}: shortened before bytes {begin:,} to {end:,} were read")
    return io.BytesIO(data)


def options_text(options: SourceOptions, form: str) -> str:
    """Return options as text, with this format."""
    return json.dumps(write_options(replace(options, format=form)))


@lru_cache(maxsize=64)
def options_of(text: str) -> SourceOptions:
    """Return the options that ``options_text`` wrote."""
    values = {name: read_option(name, value) for name, value in json.loads(text).items()}
    return SourceOptions(**values)  # type: ignore[arg-type]  # read_option gives the fields' types
