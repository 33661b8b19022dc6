"""``spaseq run``: check the options, then run in this process or on Spark."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from pathlib import Path

from spaseq.bounds import Policy
from spaseq.cli.arguments import RunEngine, UsageError, check_matcher, limits
from spaseq.cli.console import Interrupts
from spaseq.cli.running.cursor import Cursor, NotedWriter
from spaseq.cli.running.delivery import Found, deliver
from spaseq.cli.running.outputs import (
    check_outputs,
    check_records,
    filled,
    is_pattern,
    output,
    outputs,
    url_outputs,
)
from spaseq.cli.running.report import Report
from spaseq.cli.running.state import KeptOutputs, check_state
from spaseq.connect import LiveSource, is_url
from spaseq.engine import Engine, Source
from spaseq.engine.running import run_all
from spaseq.errors import FormatError
from spaseq.language.syntax import Query
from spaseq.patterns.kb import KnowledgeBase
from spaseq.results import Format, check_format, writer
from spaseq.results.batch import Match


@dataclass(frozen=True)
class RunRequest:
    """The options of a run, with queries and sources read.

    ``queries`` by the paths of their files, ``sources`` by the IRIs of their streams; ``out`` a path or a
    URL. ``checkpoint`` and ``follow`` are for Spark, ``state`` and ``policy`` for this process.
    """

    queries: Mapping[str, Query]
    sources: Mapping[str, Source]
    graphs: KnowledgeBase
    out: str | None
    form: Format | None
    lateness: timedelta
    idle: timedelta | None
    wall_clock: bool
    strict: bool
    dead_letters: Path | None
    shapes: Path | None
    engine: RunEngine
    checkpoint: Path | None
    follow: bool
    matcher: str | None
    limits: Sequence[str]
    latency: timedelta | None
    memory: int | None
    policy: Policy
    state: Path | None
    commit_every: timedelta | int
    why: bool

    @cached_property
    def first(self) -> str:
        """Return the path of the first query."""
        return next(iter(self.queries))

    @property
    def has_several(self) -> bool:
        """Return whether there are several queries."""
        return len(self.queries) > 1

    @property
    def url(self) -> str | None:
        """Return the URL for matches, or None."""
        return self.out if self.out is not None and is_url(self.out) else None

    @property
    def file(self) -> Path | None:
        """Return the file for matches; None for standard output, or a URL."""
        if self.out is None or self.url is not None:
            return None
        file = Path(self.out)
        return filled(file, self.first) if is_pattern(file) and not self.has_several else file

    @property
    def format(self) -> Format:
        """Return the format of results."""
        return self.form or (Format.NDJSON if self.url else Format.TABLE)


def execute(asked: RunRequest) -> None:
    """Run the queries until their streams end. Raises UsageError for options that exclude each other."""
    _check_output(asked)
    if asked.matcher is not None:
        for name, query in asked.queries.items():
            check_matcher(asked.matcher, query, asked.engine, name if asked.has_several else None)
    report = Report(asked.dead_letters, asked.strict, why=asked.why)
    if asked.engine is RunEngine.SPARK:
        _run_on_spark(asked, report)
    else:
        _run_here(asked, report)


def _check_output(asked: RunRequest) -> None:
    if asked.url:
        check_records(asked.format, asked.queries)
    elif asked.has_several:
        check_outputs(asked.file, asked.format, asked.queries)
    else:
        try:
            check_format(asked.format, asked.queries[asked.first])
        except FormatError as error:
            raise UsageError(f"-f {error}") from None


def _run_on_spark(asked: RunRequest, report: Report) -> None:
    if asked.state is not None:
        raise UsageError("--state is for --engine local: --checkpoint DIR is for --engine spark")
    if asked.checkpoint is not None and (asked.latency is not None or asked.memory is not None):
        raise UsageError(
            "under --latency and --memory a micro-batch that is repeated may find other matches, so that "
            "what is written of it cannot be gone on with: leave out --checkpoint, or use spaseq.spark.save"
        )
    if asked.policy is not Policy.SHARP:
        raise UsageError("--policy is for --engine local, to compare with: on Spark, sharp sheds")
    if asked.has_several:
        raise UsageError("--engine spark runs one query: start it for each")
    if asked.url or any(isinstance(source.location, LiveSource) for source in asked.sources.values()):
        raise UsageError("--engine spark reads and writes files; spaseq.spark has Kafka, too")
    try:
        from spaseq.cli.running.spark import start
        from spaseq.spark.stages._job import canonical
    except ImportError as error:
        raise UsageError(
            f"--engine spark needs PySpark ({error.name} is missing): pip install 'spaseq[spark]'"
        ) from None
    query = asked.queries[asked.first]
    cursor = None
    if asked.checkpoint is not None:
        cursor = Cursor(asked.checkpoint, asked.file, asked.format, report.letters)
        cursor.require(canonical(query))
    matches = start(
        query,
        asked.sources,
        asked.graphs,
        checkpoint=asked.checkpoint,
        cursor=cursor,
        follow=asked.follow,
        lateness=asked.lateness,
        idle=asked.idle,
        strict=asked.strict,
        latency=asked.latency,
        memory=asked.memory,
        shapes=asked.shapes,
        dead_letters=report.refuse,
        progress=report.progress,
    )
    with output(asked.file, cursor) as opened:
        single = writer(asked.format, query, opened)
        noted = NotedWriter(single, cursor, opened) if cursor else single
        deliver(_named(asked.first, matches), {asked.first: noted}, [noted], report, Interrupts())


def _named(name: str, matches: Generator[Match, None, None]) -> Found:
    """Yield the matches of one query, with its name."""
    with closing(matches):
        for match in matches:
            yield name, match


def _run_here(asked: RunRequest, report: Report) -> None:
    if asked.checkpoint is not None:
        raise UsageError("--checkpoint is for --engine spark: --state FILE is for --engine local")
    if asked.follow:
        raise UsageError("--follow is for --engine spark")
    if asked.policy is not Policy.SHARP and asked.latency is None and asked.memory is None:
        raise UsageError("--policy is what is shed first at a bound: say --latency or --memory, too")
    if asked.wall_clock and asked.idle is None:
        raise UsageError("--wall-clock moves the time of idle streams on: say --idle DURATION, too")
    if asked.state is not None:
        check_state(asked.state, asked.url or asked.file, asked.format, asked.sources.values())
    engine = Engine(
        asked.graphs,
        lateness=asked.lateness,
        idle=asked.idle,
        wall_clock=time.monotonic if asked.wall_clock else None,
        strict=asked.strict,
        dead_letters=report.refuse,
        matcher=asked.matcher,
        limits=limits(asked.limits),
        latency=asked.latency,
        memory=asked.memory,
        policy=asked.policy,
        shapes=asked.shapes,
        state=asked.state,
        commit_every=None,
    )
    kept = None if asked.state is None else KeptOutputs(engine, asked.queries, asked.commit_every, report)
    interrupts = Interrupts()
    matches = run_all(
        engine,
        asked.queries,
        asked.sources.values(),
        progress=report.progress,
        started=report.watch,
        failed=report.fail if asked.has_several else None,
        settled=None if kept is None else kept.settled,
        held=nullcontext if kept is None else interrupts.held,
        # Results sent to a URL cannot be withdrawn when the sources continue.
        ends=kept is None or not asked.url,
    )
    if asked.url or asked.has_several:
        to_url = url_outputs(asked.url, asked.format, asked.queries, kept) if asked.url else None
        places = to_url or outputs(asked.file, asked.format, asked.queries, kept)
        with closing(matches), places as (results, documents):
            deliver(matches, results, documents, report, interrupts)
        return
    with output(asked.file, kept) as opened:
        single = writer(asked.format, asked.queries[asked.first], opened)
        if kept is not None:
            kept.go_on(asked.first, single)
        deliver(matches, {asked.first: single}, [single], report, interrupts)
