"""The commands that query a graph (``spaseq paths``, ``spaseq retrieve``) or build one (``spaseq graph``)."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spaseq.cli.arguments import (
    PathsEngine,
    PathsFormat,
    RetrieveFormat,
    UsageError,
    limits,
)
from spaseq.cli.console import reporting
from spaseq.cli.options import (
    GraphFile,
    GraphFormat,
    LimitOptions,
    OutputFile,
    Returning,
    SearchLatency,
    SearchMemory,
)

if TYPE_CHECKING:
    from spaseq.paths import KnowledgeGraph

_Path = Annotated[
    str, typer.Argument(metavar="EXPR", help="A path expression, as in SPARQL.", show_default=False)
]
_Sources = Annotated[
    list[str] | None,
    typer.Option("--from", metavar="TERM", help="Where paths begin; any node if not given."),
]
_Targets = Annotated[
    list[str] | None, typer.Option("--to", metavar="TERM", help="Where paths end; any node if not given.")
]
_Mode = Annotated[
    str | None,
    typer.Option(metavar="MODE", help="The paths themselves, and which: WALK, TRAIL, SIMPLE, ACYCLIC, …"),
]
_Shortest = Annotated[
    int | None, typer.Option(metavar="K", min=1, help="So many shortest paths for each pair of ends.")
]
_Most = Annotated[int | None, typer.Option("--max", metavar="N", min=0, help="At most so many answers.")]
_Engine = Annotated[
    PathsEngine,
    typer.Option(help="What looks for them; spark and graphframes find pairs, of graphs that are large."),
]
_Explained = Annotated[bool, typer.Option("--explain", help="Draw the automaton (-f text, dot, svg, json).")]
_Format = Annotated[PathsFormat | None, typer.Option("-f", "--format", help="How answers are written.")]


def paths(
    path: _Path,
    graph: GraphFile = None,
    graph_format: GraphFormat = None,
    sources: _Sources = None,
    targets: _Targets = None,
    mode: _Mode = None,
    shortest: _Shortest = None,
    most: _Most = None,
    latency_: SearchLatency = None,
    memory: SearchMemory = None,
    engine: _Engine = PathsEngine.LOCAL,
    explained: _Explained = False,
    format_: _Format = None,
    limit: LimitOptions = None,
    out: OutputFile = None,
) -> None:
    """Ask a graph which nodes a path joins, or for the paths.

    The answers are pairs of nodes; with --mode or --shortest they are paths.

    \b
    Examples:
      spaseq paths ":knows+" -g kb.ttl --from :alice
      spaseq paths "(:starred_in|^:starred_in)/:release_year" -g kb.ttl -f csv
      spaseq paths ":knows*" -g kb.ttl --from :alice --to :bob --mode "ALL SHORTEST" -f nquads
      spaseq paths ":knows{1,3}" -g kb.ttl --from :alice --mode TRAIL -f svg -o paths.svg
      spaseq paths ":knows{1,3}/[a :Person]" --explain -f svg -g kb.ttl -o automaton.svg

    \b
    A path is made of predicates by / | * + ? ^ !(…) and (…), as in SPARQL, and
      {n,m} {n,} {n} {,m}   n to m times, at least n, n, at most m times
      .                     any predicate
      [a :Film ; :year 1999]   only at nodes that have these values
    --mode is GQL's: ALL, ANY, ANY SHORTEST, ALL SHORTEST or SHORTEST k, then WALK, TRAIL, SIMPLE or ACYCLIC.
    Prefixes are those of the graph's file, and of PREFIX at the beginning of EXPR.
    """
    with reporting():
        from spaseq.cli.graphs.paths import PathRequest, answer_paths, explain_path
        from spaseq.paths import Budget, load

        if explained:
            explain_path(path, graph, graph_format, format_, out)
        elif graph is None:
            raise UsageError("no graph: name its file with -g FILE")
        else:
            opened = partial(load, graph, format=graph_format, limits=limits(limit or ()))
            budget = Budget(latency=latency_, memory=memory)
            request = PathRequest(path, sources, targets, mode, shortest, most, budget)
            answer_paths(opened, request, engine, format_, out)


_Expressions = Annotated[
    list[str] | None,
    typer.Argument(metavar="EXPR", help="Path expressions, or lists of relation names as JSON."),
]
_Topics = Annotated[
    list[str] | None,
    typer.Option("--topic", metavar="TERM", help="Where paths begin: terms or names; one or several."),
]
_Labels = Annotated[
    list[str] | None,
    typer.Option("--labels", metavar="TERM", help="A predicate whose values are names, too; or several."),
]
_Question = Annotated[
    str | None, typer.Option("-q", "--question", metavar="TEXT", help="What paths are ranked by.")
]
_File = Annotated[
    str | None,
    typer.Option("--expressions", metavar="FILE", help="A JSON list of expressions; - is standard input."),
]
_K = Annotated[int, typer.Option("-k", metavar="N", min=0, help="At most so many paths.")]
_BudgetTokens = Annotated[
    int | None, typer.Option(metavar="N", min=0, help="At most so many words and punctuation marks.")
]
_BudgetPaths = Annotated[int, typer.Option(metavar="N", min=0, help="At most so many paths are looked at.")]
_RetrieveMode = Annotated[
    str | None,
    typer.Option(metavar="MODE", help="WALK, TRAIL, SIMPLE or ACYCLIC paths."),
]
_RetrieveFormat = Annotated[
    RetrieveFormat,
    typer.Option("-f", "--format", help="text: triples by their labels; table: scores, too."),
]


def retrieve(
    expressions: _Expressions = None,
    graph: GraphFile = None,
    graph_format: GraphFormat = None,
    topics: _Topics = None,
    labels: _Labels = None,
    question: _Question = None,
    file: _File = None,
    k: _K = 10,
    budget_tokens: _BudgetTokens = None,
    budget_paths: _BudgetPaths = 10_000,
    latency_: SearchLatency = None,
    memory: SearchMemory = None,
    mode: _RetrieveMode = None,
    returning: Returning = True,
    format_: _RetrieveFormat = RetrieveFormat.TEXT,
    limit: LimitOptions = None,
    out: OutputFile = None,
) -> None:
    """Find what a graph says about a topic, along relation paths, for a language model to read.

    \b
    Examples:
      spaseq retrieve -g kb.ttl --topic "Edward Arnold" "^:starred/:directed_by" -k 5
      spaseq retrieve -g kb.ttl --topic :arnold -q "Who directed his films?" '["^starred", "directed by"]'
      llm "…" | spaseq retrieve -g kb.ttl --topic :arnold --expressions - --budget-tokens 500
      spaseq retrieve -g kb.ttl --topic :arnold "(.|^.){1,2}" -f svg -o arnold.svg

    \b
    EXPR is a path expression (see spaseq paths --help), or relation names as a language model writes them, a
    JSON list: ["^starred", "directed by"], ^ from object to subject. A file has a list of them, each with a
    weight or without: [["^starred", "directed by"], [":starred/:year", 0.5]].
    With a question, the paths most like it come first. Expressions that cannot be used are left out.
    """
    with reporting():
        from spaseq.cli.graphs.retrieve import RetrieveRequest, answer_retrieve
        from spaseq.paths import Budget, load

        if graph is None:
            raise UsageError("no graph: name its file with -g FILE")
        if not topics:
            raise UsageError("no topic: say where paths begin with --topic TERM")
        budget = Budget(paths=budget_paths, tokens=budget_tokens, latency=latency_, memory=memory)
        opened = partial(load, graph, format=graph_format, limits=limits(limit or ()))
        request = RetrieveRequest(topics, labels or (), question, k, budget, mode, returning)
        answer_retrieve(opened, expressions or [], file, request, format_, out)


graph_commands = typer.Typer(
    help="Keep a graph in a file that opens at once.", no_args_is_help=True, rich_markup_mode=None
)


@graph_commands.command()
def build(
    source: Annotated[
        Path, typer.Argument(metavar="FILE", help="A graph in any RDF format.", show_default=False)
    ],
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", metavar="FILE", help="The file to make; else FILE's name, with .spaseq."),
    ] = None,
    graph_format: GraphFormat = None,
    base: Annotated[
        str | None, typer.Option(metavar="IRI", help="What plain names in a CSV or TSV file are appended to.")
    ] = None,
    only: Annotated[
        str | None, typer.Option("--named-graph", metavar="IRI", help="The one named graph to read.")
    ] = None,
    sources: Annotated[
        str | None,
        typer.Option(
            metavar="graph|IRI",
            help="What names the sources of triples: their named graphs, or annotations with a predicate.",
        ),
    ] = None,
) -> None:
    """Make a file of a graph that other commands open at once (-g), however large it is.

    After FILE has changed, the built file is refused until you build it again.

    \b
    Examples:
      spaseq graph build kb.ttl
      spaseq graph build edges.tsv --base http://example.org/
      spaseq paths ":knows+" -g kb.spaseq --from :alice
    """
    with reporting():
        from spaseq.paths.graph.opening import SUFFIX
        from spaseq.paths.graph.opening import build as make

        target = out or source.with_suffix(SUFFIX)
        made = make(source, target, graph_format, None, base, only, sources)
        typer.echo(f"{target}: {_sizes(made)}", err=True)


@graph_commands.command()
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file of build's.", show_default=False)],
) -> None:
    """Check every byte of a built graph, and whether the file that it was made of has changed since.

    Without this command, opening a built graph checks its header, and reading checks each block.
    """
    with reporting():
        from spaseq.paths.graph.opening import check_file

        typer.echo(f"{file}: whole: {_sizes(check_file(file))}")


@graph_commands.command()
def relations(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A graph in any RDF format, or built.", show_default=False)
    ],
    topics: Annotated[
        list[str], typer.Argument(metavar="TOPIC...", help="Names or terms of nodes.", show_default=False)
    ],
    hops: Annotated[int, typer.Option(min=1, help="The most relations of a path.")] = 2,
    most: Annotated[int, typer.Option("-k", min=0, help="At most this many paths of each length.")] = 100,
    returning: Returning = True,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """List the relation paths that leave a topic, with examples of what they reach.

    \b
    Examples:
      spaseq graph relations kb.ttl "Edward Arnold"
    """
    with reporting():
        from spaseq.paths import load

        found = load(file).relations_of(topics, hops, most, returning=returning)
        typer.echo(json.dumps(found.as_json(), ensure_ascii=False, indent=2) if as_json else found.text())


def _sizes(graph: KnowledgeGraph) -> str:
    return f"{len(graph):,} edges, {graph.nodes:,} nodes, {graph.predicates:,} predicates"
