"""``spaseq serve``: run an engine behind HTTP."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spaseq.bounds import Policy
from spaseq.cli.arguments import (
    UsageError,
    limits,
)
from spaseq.cli.console import complain, reporting
from spaseq.cli.options import (
    DeadLetters,
    LatencyOption,
    Lateness,
    LimitOptions,
    MemoryOption,
    PolicyOption,
    Shapes,
)
from spaseq.cli.queries import inputs, read_warned
from spaseq.errors import EngineError, SpaseqError
from spaseq.language import prepare
from spaseq.language.syntax import Query
from spaseq.limits import Limits

if TYPE_CHECKING:
    from spaseq.engine import AsyncEngine, Engine, Source
    from spaseq.patterns.kb import KnowledgeBase
    from spaseq.serve.newest.letters import Letters
    from spaseq.serve.settings import Settings

_Query = Annotated[
    list[Path] | None,
    typer.Argument(metavar="[QUERY...]", help="Files with a SPAseq query each.", show_default=False),
]
_Streams = Annotated[
    list[str] | None,
    typer.Option(
        "-s",
        "--stream",
        metavar="NAME_OR_IRI=SOURCE",
        help="Where a stream of the queries comes from; the others are sent by POST.",
    ),
]
_Kb = Annotated[
    list[str] | None,
    typer.Option("-g", "--kb", metavar="IRI=FILE", help="A background graph, in any RDF format."),
]
_Catalog = Annotated[
    Path | None, typer.Option(metavar="FILE", help="A catalogue that says where streams come from.")
]
_Host = Annotated[str, typer.Option(help="Where to listen; what other machines can reach needs a token.")]
_Port = Annotated[int, typer.Option(min=0, max=65535, help="0: one that is free.")]
_Token = Annotated[
    str | None,
    typer.Option(
        envvar="SPASEQ_TOKEN", help="What requests must bring; others see it in the list of processes."
    ),
]
_TokenFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The same, as the first line of a file.")
]
_AllowWrite = Annotated[bool, typer.Option("--allow-write", help="Let requests change background graphs.")]
_WallClock = Annotated[
    bool,
    typer.Option(
        "--wall-clock", help="Events without a time have that of their arrival; time goes on by itself."
    ),
]
_Demo = Annotated[
    bool,
    typer.Option("--demo", help="Play the five samples as live streams, with their queries registered."),
]
_State = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Keep queries, windows and numbers of matches here, for the next start."
    ),
]


def serve(
    query: _Query = None,
    streams: _Streams = None,
    kb: _Kb = None,
    catalog: _Catalog = None,
    host: _Host = "127.0.0.1",
    port: _Port = 8000,
    token: _Token = None,
    token_file: _TokenFile = None,
    allow_write: _AllowWrite = False,
    wall_clock: _WallClock = False,
    demo: _Demo = False,
    lateness: Lateness = "0s",  # type: ignore[assignment]  # typer parses it as if it was given
    dead_letters: DeadLetters = None,
    shapes: Shapes = None,
    state: _State = None,
    limit: LimitOptions = None,
    latency: LatencyOption = None,
    memory: MemoryOption = None,
    policy: PolicyOption = Policy.SHARP,
) -> None:
    """Answer HTTP requests: register queries, send events, follow matches.

    Its first line says where it listens. A query from a file has the name of the file. Ctrl-C and SIGTERM end
    every window; readers get the matches that this completes before the server ends.

    \b
    Examples:
      spaseq serve
      spaseq serve alerts/*.rq --kb http://example.org/kb=kb.ttl --port 0
      spaseq serve vshape.rq -s S=ticks.trig --wall-clock
      spaseq serve --state alerts.state
      spaseq serve --demo
      spaseq serve --host 0.0.0.0 --token-file token.txt
    """
    with reporting():
        if demo:
            _check_demo(query or streams or kb or catalog, state)
        _check_installed()
        from spaseq.engine import Engine
        from spaseq.engine.rejects import DeadLetterFile
        from spaseq.serve.newest.letters import Letters

        settings = _settings(host, port, _token(token, token_file), allow_write, wall_clock)
        kept = limits(limit or ())
        served = _demo() if demo else _served(query or [], kept, streams, kb, catalog)
        with closing(DeadLetterFile(dead_letters)) if dead_letters is not None else nullcontext() as file:
            letters = Letters(settings.limits, file)
            engine = Engine(
                served.graphs,
                lateness=lateness,
                dead_letters=letters,
                limits=kept,
                latency=latency,
                memory=memory,
                policy=policy,
                shapes=shapes,
                state=state,
            )
            served.run(engine, settings, letters)


def _check_demo(given: object, state: Path | None) -> None:
    if given:
        raise UsageError("--demo has its own queries, streams and background graphs: give it alone")
    if state is not None:
        raise UsageError("--state does not go with --demo, which plays its samples from the beginning")


def _check_installed() -> None:
    try:
        import spaseq.serve.process  # noqa: F401
    except ModuleNotFoundError as error:
        raise UsageError(
            f"spaseq serve needs FastAPI and uvicorn ({error.name} is missing): pip install 'spaseq[serve]'"
        ) from None


def _settings(host: str, port: int, token: str | None, allow_write: bool, wall_clock: bool) -> Settings:
    from spaseq.serve.settings import Settings

    try:
        return Settings(host, port, token, allow_write=allow_write, wall_clock=wall_clock)
    except EngineError as error:
        raise UsageError(str(error)) from None


@dataclass(frozen=True, slots=True)
class _Served:
    """What a server begins with: queries by name, sources, graphs; ``player`` sends the demo's events."""

    queries: dict[str, Query]
    sources: list[Source]
    graphs: KnowledgeBase
    player: Callable[[AsyncEngine], Coroutine[Any, Any, None]] | None = None

    def run(self, engine: Engine, settings: Settings, letters: Letters) -> None:
        from spaseq.serve.process import serve

        has_served = serve(
            engine,
            settings,
            letters,
            queries=self.queries,
            sources=self.sources,
            started_at=lambda url: typer.echo(f"spaseq serves {url}"),
            failed=complain,
            player=self.player,
        )
        if not has_served:
            place = f"port {settings.port} of {settings.host}"
            raise SpaseqError(f"{place} cannot be listened on: another program may have it")


def _demo() -> _Served:
    from spaseq.serve import demo

    samples = demo.cases()
    queries = {name: prepare(text) for name, text in demo.queries(samples).items()}
    return _Served(queries, [], demo.knowledge(samples), lambda engine: demo.play(engine, samples))


def _served(
    files: list[Path], kept: Limits, streams: list[str] | None, kb: list[str] | None, catalog: Path | None
) -> _Served:
    queries = read_warned(files, kept)
    named = {path.stem: queries[str(path)] for path in files}
    if len(named) < len(queries):
        raise UsageError("two queries have the same name, which is that of the file")
    given, graphs = inputs(queries, streams, kb, catalog, all_needed=False)
    return _Served(named, list(given.values()), graphs)


def _token(given: str | None, file: Path | None) -> str | None:
    if file is None:
        return given
    if given is not None:
        raise UsageError("--token and --token-file are two ways to say one thing")
    try:
        found = file.read_text(encoding="utf-8").partition("\n")[0].strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the token in {file} cannot be read: {error}") from None
    if not found:
        raise UsageError(f"the token in {file} is empty")
    return found
