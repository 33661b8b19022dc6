"""The query: all clauses together, and its text, which parses to an equal query."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pyoxigraph import NamedNode

from spaseq.language.syntax.clauses import (
    Ask,
    Construct,
    Consume,
    Emit,
    Gpm,
    Register,
    Skip,
    StreamDeclaration,
    Window,
)
from spaseq.language.syntax.patterns import Filter, Modifiers, Select
from spaseq.language.syntax.printing import INDENT, Printer, print_sequence
from spaseq.language.syntax.sequences import Seq
from spaseq.language.syntax.terms import Var, decimal


@dataclass(frozen=True, slots=True)
class Query:
    """A SPAseq query. ``str`` returns its canonical text, which parses to an equal tree.

    ``warnings`` are the findings of the static checks that do not stop it.
    """

    form: Select | Ask | Construct
    window: Window
    streams: tuple[StreamDeclaration, ...]
    sequence: Seq
    gpms: tuple[Gpm, ...]
    partition: tuple[Var, ...] = ()
    knowledge: tuple[NamedNode, ...] = ()
    filters: tuple[Filter, ...] = ()
    emit: Emit = Emit.ALL
    consume: Consume = Consume.NONE
    skip: Skip | None = None
    modifiers: Modifiers = field(default=Modifiers())
    register: Register | None = None
    prefixes: tuple[tuple[str, str], ...] = field(default=(), compare=False, repr=False)
    text: str = field(default="", compare=False, repr=False)
    filename: str = field(default="<query>", compare=False, repr=False)
    warnings: tuple[str, ...] = field(default=(), compare=False, repr=False)

    def __str__(self) -> str:
        return print_query(self)

    def gpm(self, name: str) -> Gpm:
        """Return the GPM of this name. Raises KeyError if the query defines none."""
        for gpm in self.gpms:
            if gpm.name == name:
                return gpm
        raise KeyError(name)

    def stream(self, name: str) -> NamedNode:
        """Return the IRI of the stream that the query calls ``name``. Raises KeyError for an unknown name."""
        for declaration in self.streams:
            if declaration.name == name:
                return declaration.iri
        raise KeyError(name)


def print_query(query: Query) -> str:
    """Return the canonical text of a query; its prefixes are kept and used."""
    printer = Printer(query.prefixes)
    text = "\n".join(_lines(query, printer)) + "\n"
    return text if printer.base is None else f"BASE {printer.base}\n{text}"


def _lines(query: Query, printer: Printer) -> Iterator[str]:
    for name, iri in query.prefixes:
        yield f"PREFIX {name}: <{iri}>"
    if query.register is not None:
        yield f"REGISTER {query.register.kind} {printer.term(query.register.iri)} AS"
    yield printer.form(query.form)
    yield f"WITHIN {decimal(query.window.size)} {query.window.unit} {query.window.kind}"
    if query.partition:
        yield f"PARTITION BY {' '.join(map(str, query.partition))}"
    for stream in query.streams:
        yield f"FROM STREAM {stream.name} {printer.term(stream.iri)}"
    for graph in query.knowledge:
        yield f"FROM NAMED {printer.term(graph)}"
    yield "WHERE {"
    yield f"{INDENT}SEQ({print_sequence(query.sequence)})"
    for gpm in query.gpms:
        yield INDENT + printer.gpm(gpm)
    for condition in query.filters:
        yield INDENT + printer.element(condition, INDENT)
    yield "}"
    if query.emit is not Emit.ALL:
        yield f"EMIT {query.emit}"
    if query.consume is not Consume.NONE:
        yield f"CONSUME {query.consume}"
    if query.skip is not None:
        yield f"AFTER MATCH SKIP {' '.join(filter(None, (query.skip.mode, query.skip.gpm)))}"
    yield from printer.modifiers(query.modifiers)
