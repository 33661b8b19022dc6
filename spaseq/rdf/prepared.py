"""SPAseq queries for ``Dataset.query``: their ``initNs``, ``base`` and ``initBindings``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

import pyoxigraph as ox
from rdflib.term import Node

from spaseq.errors import EngineError
from spaseq.language import syntax as s
from spaseq.language.checking.checks import check
from spaseq.language.reading.parser import parse
from spaseq.language.scope import gpm_variables, occurring, references
from spaseq.terms.interop import from_rdflib


def prepare(
    text: str,
    filename: str = "<query>",
    initNs: Mapping[str, str] | None = None,  # noqa: N803  # rdflib's name
    base: str | None = None,
) -> s.Query:
    """Prepare a query as ``spaseq.prepare`` does, with prefixes or parameters from outside.

    Raises QuerySyntaxError. The meaning of variables is checked when the query is evaluated, together with
    its ``initBindings``, so a query may have parameters that no GPM binds.
    """
    return parse(text, filename, _mentioned(initNs or {}, text), base)


def bound(query: s.Query, bindings: Mapping[str, Node]) -> s.Query:
    """Return the query with variables replaced by terms, checked.

    As in SPARQL, a variable is replaced by a join with the term: the GPMs that bind the variable get
    ``VALUES``. A variable that no GPM binds is a parameter: ``VALUES`` goes to the GPMs that mention it, or,
    if none does, to all GPMs that are not negated. Names that the query does not have are ignored. Raises
    QueryMeaningError. Raises EngineError for a blank node, which only its own event can contain.
    """
    negated = {ref.name for ref, under in references(query.sequence) if under}
    for key, value in bindings.items():
        name = str(key).lstrip("?$")
        if not re.search(rf"[?$]{re.escape(name)}\b", query.text):
            continue
        term = from_rdflib(value)
        if isinstance(term, ox.BlankNode):
            raise EngineError(f"initBindings: ?{name} is a blank node, which no event can share")
        chosen = (
            {gpm.name for gpm in query.gpms if name in gpm_variables(gpm)}
            or {gpm.name for gpm in query.gpms if name in occurring(gpm.pattern)}
            or {gpm.name for gpm in query.gpms if gpm.name not in negated}
        )
        query = replace(
            query, gpms=tuple(_restricted(g, name, term) if g.name in chosen else g for g in query.gpms)
        )
    return replace(query, warnings=check(query))


def _restricted(gpm: s.Gpm, name: str, term: ox.NamedNode | ox.Literal) -> s.Gpm:
    variable, elements = s.Var(name), gpm.pattern.elements
    if name in (v.name for v in (gpm.time, gpm.graph) if v is not None):  # AT and AS bind it themselves
        condition = s.Call("SAMETERM", (variable, s.Constant(term)))
        pattern = (*elements, s.Filter(condition))
    else:
        pattern = (s.Values((variable,), ((term,),)), *elements)
    return replace(gpm, pattern=replace(gpm.pattern, elements=pattern))


def _mentioned(prefixes: Mapping[str, str], text: str) -> dict[str, str]:
    """Return the prefixes that the text may use: rdflib passes some dozens with every query."""
    used: Iterable[str] = set(re.findall(r"([\w.-]*):", text))
    return {name: str(prefixes[name]) for name in used if name in prefixes}
