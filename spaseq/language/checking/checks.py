"""The static checks in order (semantics, section 8): errors and warnings about a query before it runs."""

from __future__ import annotations

from collections.abc import Iterable

from spaseq.errors import QuerySyntaxError
from spaseq.language import syntax as s
from spaseq.language.checking.findings import Findings
from spaseq.language.checking.rules import check_rules
from spaseq.language.checking.sequences import check_sequence
from spaseq.language.checking.variables import VariableChecks
from spaseq.language.reading.hints import nearest
from spaseq.language.reading.source import QueryText


def check(query: s.Query) -> tuple[str, ...]:
    """Check a query and return its warnings.

    Raises QueryMeaningError for the first reason why it has no meaning, and QuerySyntaxError where it breaks
    a rule of SPARQL's syntax that the grammar cannot express.
    """
    source = QueryText(query.text, query.filename)
    findings = Findings(source)
    try:
        _declarations(query, findings)
        check_rules(query, source)
        check_sequence(query, findings)
        VariableChecks(query, findings).check()
    except RecursionError:
        raise source.error(QuerySyntaxError, "this is nested too deeply to be checked", 0) from None
    return findings.warnings


def _declarations(query: s.Query, findings: Findings) -> None:
    if query.window.size == 0:
        raise findings.error("a window of size 0 holds no match", query.window.span)
    register = query.register
    streams = register is not None and register.kind is s.RegisterKind.STREAM
    if register is not None and streams and not isinstance(query.form, s.Construct):
        hint = "write CONSTRUCT { … }, or REGISTER QUERY"
        raise findings.error(
            "a stream consists of graphs: REGISTER STREAM needs CONSTRUCT", register.span, hint
        )
    declared = [stream.name for stream in query.streams]
    for name, span in _repeated((stream.name, stream.span) for stream in query.streams):
        raise findings.error(f"a second stream called {name}", findings.word(name, span, after="STREAM"))
    for name, span in _repeated((gpm.name, gpm.span) for gpm in query.gpms):
        raise findings.error(f"a second GPM called {name}", findings.word(name, span, after="GPM"))
    for gpm in query.gpms:
        for name in gpm.streams:
            if name not in declared:
                alike = nearest(name, declared)
                hint = f"did you mean {alike}?" if alike else f"the query declares {', '.join(declared)}"
                place = findings.word(name, gpm.span, after="ON")
                raise findings.error(f"no stream is called {name}", place, hint)


def _repeated(named: Iterable[tuple[str, s.Span | None]]) -> list[tuple[str, s.Span | None]]:
    """Return the items with a name that an earlier item has."""
    seen: set[str] = set()
    again = []
    for name, span in named:
        if name in seen:
            again.append((name, span))
        seen.add(name)
    return again
