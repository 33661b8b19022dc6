"""``spaseq serve``: run an engine behind HTTP."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from spaseq.bounds import Policy
from spaseq.cli.arguments import (
    UsageError,
    duration,
    limits,
)
from spaseq.cli.console import complain, reporting, warn
from spaseq.cli.options import LatencyOption, LimitOptions, MemoryOption, PolicyOption, Shapes
from spaseq.cli.queries import inputs, read_all
from spaseq.errors import EngineError, SpaseqError
from spaseq.language import prepare


def serve(
    query: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[QUERY...]", help="Files with a SPAseq query each.", show_default=False),
    ] = None,
    streams: Annotated[
        list[str] | None,
        typer.Option(
            "-s",
            "--stream",
            metavar="NAME_OR_IRI=SOURCE",
            help="Where a stream of the queries comes from; the others are sent by POST.",
        ),
    ] = None,
    kb: Annotated[
        list[str] | None,
        typer.Option("-g", "--kb", metavar="IRI=FILE", help="A background graph, in any RDF format."),
    ] = None,
    catalog: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A catalogue that says where streams come from.")
    ] = None,
    host: Annotated[
        str, typer.Option(help="Where to listen; what other machines can reach needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: one that is free.")] = 8000,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="SPASEQ_TOKEN", help="What requests must bring; others see it in the list of processes."
        ),
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The same, as the first line of a file.")
    ] = None,
    allow_write: Annotated[
        bool, typer.Option("--allow-write", help="Let requests change background graphs.")
    ] = False,
    wall_clock: Annotated[
        bool,
        typer.Option(
            "--wall-clock", help="Events without a time have that of their arrival; time goes on by itself."
        ),
    ] = False,
    demo: Annotated[
        bool,
        typer.Option("--demo", help="Play the five samples as live streams, with their queries registered."),
    ] = False,
    lateness: Annotated[
        timedelta,
        typer.Option(metavar="DURATION", parser=duration, help="How late an event may come and still count."),
    ] = "0s",  # type: ignore[assignment]  # typer parses it as if it was given
    dead_letters: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Append bad and late events here, one JSON object a line."),
    ] = None,
    shapes: Shapes = None,
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Keep queries, windows and numbers of matches here, for the next start."
        ),
    ] = None,
    limit: LimitOptions = None,
    latency: LatencyOption = None,
    memory: MemoryOption = None,
    policy: PolicyOption = Policy.SHARP,
) -> None:
    """Answer HTTP requests: register queries, send events, follow matches.

    Its first line says where it listens. A query of a file is named as the file. Ctrl-C and SIGTERM end every
    window, and readers have what that completes before the server goes.

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
        try:
            from spaseq.serve.newest.letters import Letters
            from spaseq.serve.process import serve as run
            from spaseq.serve.settings import Settings
        except ModuleNotFoundError as error:
            raise UsageError(
                f"spaseq serve needs FastAPI and uvicorn ({error.name} is missing): "
                "pip install 'spaseq[serve]'"
            ) from None
        from spaseq.engine import Engine
        from spaseq.engine.rejects import DeadLetterFile

        if demo and (query or streams or kb or catalog):
            raise UsageError("--demo has its own queries, streams and background graphs: give it alone")
        if state is not None and demo:
            raise UsageError("--state does not go with --demo, which plays its samples from the beginning")
        queries = read_all(query or [], limits(limit or ()))
        for warning in dict.fromkeys(w for prepared in queries.values() for w in prepared.warnings):
            warn(warning)
        named = {path.stem: str(path) for path in query or []}
        if len(named) < len(queries):
            raise UsageError("two queries have the same name, which is that of the file")
        given, graphs = inputs(queries, streams, kb, catalog, all_needed=False)
        if demo:
            from spaseq.serve import demo as shown

            samples = shown.cases()
            queries = {name: prepare(text) for name, text in shown.queries(samples).items()}
            named, graphs = {name: name for name in queries}, shown.knowledge(samples)
        try:
            settings = Settings(
                host=host,
                port=port,
                token=_token(token, token_file),
                allow_write=allow_write,
                wall_clock=wall_clock,
            )
        except EngineError as error:
            raise UsageError(str(error)) from None
        file = DeadLetterFile(dead_letters) if dead_letters is not None else None
        letters = Letters(settings.limits, file)
        engine = Engine(
            graphs,
            lateness=lateness,
            dead_letters=letters,
            limits=limits(limit or ()),
            latency=latency,
            memory=memory,
            policy=policy,
            shapes=shapes,
            state=state,
        )
        try:
            has_served = run(
                engine,
                settings,
                letters,
                queries={name: queries[path] for name, path in named.items()},
                sources=list(given.values()),
                started_at=lambda url: typer.echo(f"spaseq serves {url}"),
                failed=complain,
                player=(lambda engine: shown.play(engine, samples)) if demo else None,
            )
        finally:
            if file is not None:
                file.close()
        if not has_served:
            raise SpaseqError(f"port {port} of {host} cannot be listened on: another program may have it")


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
