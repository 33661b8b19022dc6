"""``spaseq run -o``: the file, files or URL that matches are written to."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO, Final

from spaseq.cli.arguments import UsageError
from spaseq.cli.console import standard_output
from spaseq.cli.running.cursor import Cursor
from spaseq.cli.running.state import KeptOutputs
from spaseq.connect import hide
from spaseq.errors import FormatError, SourceError
from spaseq.language.syntax import Query
from spaseq.results import Format, ResultWriter, check_format, writer
from spaseq.results.writers.several import check_formats, writers

#: Stands for the name of a query in the path of ``-o``.
_PLACE: Final = "{query}"

#: The writer of each query, and the writers to close at the end.
Outputs = tuple[Mapping[str, ResultWriter], Iterable[ResultWriter]]


def check_outputs(path: Path | None, form: Format, queries: Mapping[str, Query]) -> None:
    """Raise UsageError for outputs that are impossible.

    That is a format that cannot hold a query's results, or one path for two queries.
    """
    try:
        if path is None or not is_pattern(path):
            check_formats(form, queries)
            return
        owners: dict[Path, str] = {}
        for name, query in queries.items():
            own = filled(path, name)
            other = owners.setdefault(own, name)
            if other != name:
                raise UsageError(f"-o {path}: {other} and {name} would both be written to {own}")
            try:
                check_format(form, query)
            except FormatError as error:
                raise FormatError(f"{error} (in {name})") from None
    except FormatError as error:
        raise UsageError(f"-f {error}") from None


@contextmanager
def outputs(
    path: Path | None, form: Format, queries: Mapping[str, Query], kept: KeptOutputs | None = None
) -> Iterator[Outputs]:
    """Yield the writers of several queries, to ``path`` or standard output.

    All write to one document, or, if the path has ``{query}``, each to its own; ``{query}`` is the name of
    the query's file without its extension.
    """
    if path is None or not is_pattern(path):
        with output(path, kept) as file:
            several, documents = writers(form, queries, file)
            if kept is not None:
                for document in documents:
                    kept.go_on(None, document)
            yield several, documents
        return
    with ExitStack() as files:
        each = {
            name: writer(form, query, files.enter_context(output(filled(path, name), kept)))
            for name, query in queries.items()
        }
        if kept is not None:
            for name, one in each.items():
                kept.go_on(name, one)
        yield each, each.values()


def check_records(form: Format, queries: Mapping[str, Query]) -> None:
    """Raise UsageError for a format that cannot be sent to a URL, or cannot hold a query's results."""
    from spaseq.connect.writing import check_records as check

    for query in queries.values():
        try:
            check(form, query)
        except FormatError as error:
            raise UsageError(f"-f {error}") from None


@contextmanager
def url_outputs(
    url: str, form: Format, queries: Mapping[str, Query], kept: KeptOutputs | None = None
) -> Iterator[Outputs]:
    """Yield the writers that send matches to the URL of ``-o``. Raises UsageError for an error in the URL."""
    # Imported here: most runs write to a file.
    from spaseq.connect.sinks import open_sink
    from spaseq.connect.writing import RECORDS, RecordWriter

    try:
        sink = open_sink(url, RECORDS[form]) if kept is None else kept.outbox(url, RECORDS[form])
    except SourceError as error:
        raise UsageError(f"-o {hide(url)}: {error}") from None
    # An outbox belongs to the state, which closes it.
    with closing(sink) if kept is None else nullcontext():
        each = {name: RecordWriter(form, query, name, sink) for name, query in queries.items()}
        if kept is not None:
            for name, one in each.items():
                kept.go_on(name, one)
        yield each, each.values()


def is_pattern(path: Path) -> bool:
    """Return whether the path of ``-o`` has a placeholder for the query."""
    return _PLACE in str(path)


def filled(path: Path, query: str) -> Path:
    """Return the path of ``-o`` for a query.

    >>> str(filled(Path("out/{query}.csv"), "alerts/acme.rq"))
    'out/acme.csv'
    """
    return Path(str(path).replace(_PLACE, Path(query).stem))


@contextmanager
def output(path: Path | None, cursor: Cursor | KeptOutputs | None = None) -> Iterator[IO[bytes]]:
    """Yield the file of ``-o``, or standard output; with a ``cursor`` a file is continued."""
    if path is None:
        yield standard_output()
    else:
        opened = path.open("wb") if cursor is None else cursor.open(path)
        try:
            with suppress(BrokenPipeError), opened as file:  # closing a broken pipe raises again
                yield file
        except OSError as error:
            # An error of a write does not name the file, unlike an error of an open.
            if error.errno == errno.ENOSPC and error.filename is None:
                raise OSError(error.errno, error.strerror, str(path)) from None
            raise
