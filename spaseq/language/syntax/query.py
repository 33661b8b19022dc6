"""The query: all clauses together."""

from __future__ import annotations

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
from spaseq.language.syntax.printing import print_query
from spaseq.language.syntax.sequences import Seq
from spaseq.language.syntax.terms import Var


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
