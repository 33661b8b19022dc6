"""``run``: queries over sources, from the first event to the last."""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO, Final

from spaseq.bounds import Policy, Shed, in_ms
from spaseq.connect import LiveSource, parse_location
from spaseq.engine.engine import Engine
from spaseq.engine.handle import Handle
from spaseq.engine.reading import Held, Source, Steps
from spaseq.engine.rejects import DeadLetters
from spaseq.errors import EngineError, SourceError, SpaseqError
from spaseq.language import as_query
from spaseq.language.syntax import Query
from spaseq.limits import Limits, NearLimit
from spaseq.patterns.kb import KnowledgeBase
from spaseq.patterns.kb import Source as Knowledge
from spaseq.results.batch import Match, MatchBatch, view
from spaseq.sources import SourceOptions
from spaseq.sources.columns.table import Table
from spaseq.why.diagnosis import failed_calls

#: A stream's source: a location with options (``ticks.nt?triples=2``), a URL (``mqtt://broker/t?format=nq``),
#: a path, a file, a table, a live source, a Source.
StreamSource = str | Path | IO[bytes] | Table | LiveSource | Source

#: Marks the end of all steps.
_OVER: Final = object()

#: Seconds between two reports of progress.
_REPORT_EVERY = 0.25


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run has come: the numbers of events read, of matches, and of rejected events.

    ``watermark``: the time up to which events are processed, a UTC datetime or a tick; None before the first
    event. ``more``: further messages for people. ``limit``: the limit that is closest to being exceeded.
    ``nonconforming``: how many of the ``bad`` events do not conform to the shapes.
    """

    events: int
    matches: int
    rows: int
    late: int
    bad: int
    watermark: datetime | int | None
    more: tuple[str, ...] = ()
    limit: NearLimit | None = None
    nonconforming: int = 0


def run(
    query: Query | str,
    streams: Mapping[str, StreamSource],
    kb: Mapping[str, Knowledge] | KnowledgeBase | None = None,
    *,
    lateness: timedelta = timedelta(0),
    idle: timedelta | None = None,
    wall_clock: Callable[[], float] | None = None,
    strict: bool = False,
    dead_letters: DeadLetters | str | Path | None = None,
    matcher: str | None = None,
    limits: Limits = Limits(),
    latency: timedelta | None = None,
    memory: int | None = None,
    policy: Policy | str = Policy.SHARP,
    shapes: Knowledge | None = None,
    progress: Callable[[Progress], None] | None = None,
    started: Callable[[Handle], None] | None = None,
) -> Run:
    """Return the matches of a query over streams that are read to their end, as they are found.

    ``streams``: for each stream of the query, by its name there or its IRI, where to read it. ``kb``:
    background graphs by IRI. ``progress`` is called a few times a second, and at the end. ``started`` is
    called at once with an object that has the query's counts and ``why``. The other parameters are
    ``Engine``'s. Raises ``QueryError``, ``KnowledgeError`` and ``SourceError`` at once, before the first
    match is read; and ``SourceError`` after the last match, if all events of a stream were malformed.
    """
    prepared = as_query(query, limits)
    engine = Engine(
        kb,
        lateness=lateness,
        idle=idle,
        wall_clock=wall_clock,
        strict=strict,
        dead_letters=dead_letters,
        matcher=matcher,
        limits=limits,
        latency=latency,
        memory=memory,
        policy=policy,
        shapes=shapes,
    )
    handle = engine.register(prepared)
    if started is not None:
        started(handle)
    steps = engine.pull(*_sources(prepared, streams))
    return Run(lambda size: _found(engine, {"": handle}, steps, size, progress, None))


def run_all(
    engine: Engine,
    queries: Mapping[str, Query],
    sources: Iterable[Source],
    *,
    progress: Callable[[Progress], None] | None = None,
    started: Callable[[Mapping[str, Handle]], None] | None = None,
    failed: Callable[[str, SpaseqError], None] | None = None,
    settled: Callable[[bool], None] | None = None,
    held: Held = nullcontext,
    ends: bool = True,
    max_rows: int = 65_536,
) -> Generator[tuple[str, MatchBatch], None, None]:
    """Yield the matches of several queries, each under its name, over sources that are read once.

    ``engine``: a new engine. Queries may run as a query set, and may read a stream that another query makes
    by REGISTER STREAM. The matches of one query come in its order; between queries there is no order.

    ``failed`` is called with each query that ends with an error, and the others continue; without it, the
    error ends the run. ``settled`` is called after each step, when all matches so far were taken and
    processed. Its argument is True before the windows end, and when the run is interrupted. ``held`` makes
    contexts that defer interrupts: each lasts for a step and its matches, until ``settled`` was called.
    ``ends``: the windows end with the sources; pass False if matches of these windows could not be undone.
    The other parameters and exceptions are those of ``run``; an ``EngineError`` names its query.
    """
    handles: dict[str, Handle] = {}
    for name, query in queries.items():
        try:
            handles[name] = engine.register(query, name=name if engine.is_durable else None)
        except EngineError as error:
            raise EngineError(f"{name}: {error}" if len(queries) > 1 else str(error)) from None
    if started is not None:
        started(handles)
    steps = engine.pull(*sources)
    steps.held = held
    return _found(engine, handles, steps, _Size(max_rows), progress, failed, settled, ends)


def _found(
    engine: Engine,
    handles: Mapping[str, Handle],
    steps: Steps,
    size: _Size,
    progress: Callable[[Progress], None] | None,
    failed: Callable[[str, SpaseqError], None] | None,
    settled: Callable[[bool], None] | None = None,
    ends: bool = True,
) -> Generator[tuple[str, MatchBatch], None, None]:
    """Yield matches while the engine goes on, each batch with the name of its query."""
    report = _ProgressReports(engine, handles.values(), progress)
    settle = settled or _ignore
    going = dict(handles)
    is_settled = True  # or no match is being processed
    raised: Exception | None = None
    try:
        while raised is None:
            try:
                if next(steps, _OVER) is _OVER:
                    break
            except Exception as error:  # of a callback or a source: matches found come first
                raised = error
            with steps.held():
                is_settled = False
                # Matching one step may take long.
                for found in _drained(going, size, failed):
                    yield found
                    report.if_due()
                report.if_due()
                settle(False)
                is_settled = True
        if raised is not None:
            raise raised
        with steps.held():
            is_settled = False
            settle(True)
        if ends:
            engine.finish()
            yield from _drained(going, size, failed)
        if not all(handle.done for handle in handles.values()):
            engine.check_read()
    except KeyboardInterrupt:
        # Matches found before Ctrl-C are not lost with the batch that it interrupted.
        with suppress(EngineError):  # says that the query was interrupted
            yield from _drained(going, size, None if failed is None else _ignore)
            if is_settled and steps.is_between:
                settle(True)
        raise
    finally:
        steps.close()
        engine.abandon()
        report.now()


def _ignore(*_: object) -> None:
    """Ignore a failed query, as the run was interrupted; or that all matches were taken."""


class _ProgressReports:
    """Reports the progress of a run at its beginning, a few times a second, and at its end."""

    def __init__(
        self, engine: Engine, handles: Collection[Handle], progress: Callable[[Progress], None] | None
    ) -> None:
        self._engine, self._handles, self._progress = engine, handles, progress
        self.now()

    def if_due(self) -> None:
        """Report if the last report was some time ago."""
        if time.monotonic() - self._at >= _REPORT_EVERY:
            self.now()

    def now(self) -> None:
        """Report."""
        self._at = time.monotonic()
        if self._progress is None:
            return
        engine, stats = self._engine, [handle.stats for handle in self._handles]
        shed = [s.shed for s in stats if s.shed is not None]
        self._progress(
            Progress(
                events=engine.events,
                matches=sum(s.matches for s in stats),
                rows=sum(s.rows for s in stats),
                late=engine.late,
                bad=engine.bad,
                watermark=engine.watermark,
                more=(*_given_up(shed), *failed_calls(engine.failed_calls)),
                limit=max((s.limit for s in stats if s.limit is not None), default=None),
                nonconforming=engine.nonconforming,
            )
        )


def _drained(
    going: dict[str, Handle], size: _Size, failed: Callable[[str, SpaseqError], None] | None
) -> Iterator[tuple[str, MatchBatch]]:
    """Yield the matches found and not taken. With ``failed``, remove failed queries."""
    for name, handle in list(going.items()):
        try:
            for batch in handle.batches(size.most):
                yield name, batch
        except SpaseqError as error:
            if failed is None:
                raise
            del going[name]
            failed(name, error)


def _given_up(shed: Sequence[Shed]) -> Iterator[str]:
    """Describe what queries shed to keep their bounds."""
    gone, passed = sum(s.partial_matches for s in shed), sum(s.passed_over for s in shed)
    what = [f"{gone:,} partial matches shed"] * bool(gone) + [f"passed over {passed:,} times"] * bool(passed)
    known = [s.recall for s in shed if s.recall is not None]
    if what:
        yield f"recall {min(known):.0%} ({', '.join(what)})" if known else ", ".join(what)
    if events := sum(s.events for s in shed):
        yield f"{events:,} events passed over"
    if doubtful := sum(s.doubtful for s in shed):
        yield f"{doubtful:,} matches may be others"
    if too_tight := [s.least for s in shed if s.too_tight and s.least is not None]:
        yield f"an event takes {in_ms(max(too_tight))} even if nothing is kept: the bound is below"


@dataclass(slots=True)
class _Size:
    """The most matches in a batch."""

    most: int = 1_000


class Run(Iterator[Match]):
    """The matches of a run, one by one or in batches. ``close`` ends it early.

    Each match comes once: matches that were taken one by one are not in a batch.
    """

    def __init__(self, batches: Callable[[_Size], Generator[tuple[str, MatchBatch], None, None]]) -> None:
        self._size = _Size()
        self._batches = batches(self._size)
        # A batch; its matches from number ``_at`` on were not taken.
        self._now: MatchBatch | None = None
        self._at = 0

    def __next__(self) -> Match:
        batch, at = self._now, self._at
        while batch is None or at == len(batch):
            self._now = None
            (_, batch), at = next(self._batches), 0
            self._now = batch
        self._at = at + 1
        return view(batch, at)

    def batches(self, max_rows: int = 65_536) -> Iterator[MatchBatch]:
        """Yield the matches in batches of at most ``max_rows``: as they are found, without waiting for more.

        Raises EngineError if ``max_rows`` is below 1, and what reading the streams raises.
        """
        if max_rows < 1:
            raise EngineError(f"max_rows={max_rows}: a batch has a match at least")
        self._size.most = max_rows
        while True:
            while self._now is not None and self._at < len(self._now):
                begin, self._at = self._at, min(self._at + max_rows, len(self._now))
                yield self._now.part(begin, self._at)
            self._now = None
            try:
                (_, self._now), self._at = next(self._batches), 0
            except StopIteration:
                return

    def close(self) -> None:
        """End the run: its sources are closed, and no further match is looked for."""
        self._now = None
        self._batches.close()


def _sources(query: Query, streams: Mapping[str, StreamSource]) -> list[Source]:
    """Return a source for every stream of the query; SourceError for a missing or an unknown one."""
    declared = {d.name: d.iri.value for d in query.streams}
    if not isinstance(streams, Mapping):
        first = next(iter(declared))
        raise SourceError(
            f"streams={streams!r:.60}: say which stream it is, such as {{{first!r}: {streams!r:.60}}}"
        )
    by_iri: dict[str, StreamSource] = {}
    for key, source in streams.items():
        iri = declared.get(str(key), str(key))
        if iri not in declared.values():
            near = difflib.get_close_matches(str(key), [*declared, *declared.values()], 1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            raise SourceError(f"the query has no stream {key}{hint}: it reads {_list(declared)}")
        if iri in by_iri:
            raise SourceError(f"two sources for stream {key}")
        by_iri[iri] = source
    missing = {name: iri for name, iri in declared.items() if iri not in by_iri}
    if missing:
        raise SourceError(f"no source for {_list(missing)}")
    return [_source(iri, source) for iri, source in by_iri.items()]


def _list(declared: Mapping[str, str]) -> str:
    return ", ".join(f"{name} <{iri}>" for name, iri in declared.items())


def _source(iri: str, source: StreamSource) -> Source:
    if isinstance(source, Source):
        return Source(iri, source.location, source.options)
    if isinstance(source, str):
        return Source(iri, *parse_location(source))
    if isinstance(source, LiveSource):
        return Source(iri, source, source.options)
    return Source(iri, source, SourceOptions())
