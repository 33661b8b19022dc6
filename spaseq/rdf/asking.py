"""Changes to rdflib in programs that import ``spaseq.rdf``; other programs load nothing.

rdflib evaluates ``SERVICE <urn:x-spaseq:NAME>`` by a custom evaluation. But rdflib offers every query to the
store before it looks at ``processor``. A store with its own SPARQL engine would get SPAseq queries and our
services: Oxigraph reports a syntax error for SPAseq, and a service name without a host. Therefore
``Graph.query`` and ``Graph.update`` are wrapped, with the same signatures and results. They do not offer the
store SPAseq queries, nor SPARQL queries with a service of ours. In these SPARQL queries the columns of the
services are also declared: ``SELECT *``, OPTIONAL and CONSTRUCT need them, and rdflib looks for variables in
the text of a query only.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from typing import Any, Final
from weakref import WeakKeyDictionary

from rdflib import plugin
from rdflib.graph import Graph
from rdflib.plugins.sparql import CUSTOM_EVALS
from rdflib.plugins.sparql.algebra import translatePrologue, translateQuery, translateUpdate
from rdflib.plugins.sparql.parser import parseQuery, parseUpdate
from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.plugins.sparql.sparql import Prologue, Query, QueryContext, Update
from rdflib.store import Store
from rdflib.term import URIRef, Variable

from spaseq.errors import EngineError
from spaseq.language import syntax
from spaseq.rdf.services import PARSER, SCHEME, SERVICES, columns_of_services

_SERVICE: Final = re.compile(r"\bservice\b", re.IGNORECASE)

#: A mark of SPAseq, looked for when the text does not parse as SPARQL.
_SPASEQ: Final = re.compile(r"\bSEQ\s*\(.*\bDEFINE\s+GPM\b", re.IGNORECASE | re.DOTALL)

_SAY: Final = "this is a SPAseq query: ask it with processor='spaseq' (and result='spaseq' for its matches)"

#: Queries prepared by rdflib, with the columns at the time of their translation.
_PREPARED: Final[WeakKeyDictionary[Query | Update, tuple[object, Query | Update]]] = WeakKeyDictionary()


def listen() -> None:
    """Register the custom evaluation, the wrappers and the store ``spaseq-window`` with rdflib."""
    CUSTOM_EVALS["spaseq"] = evaluate
    Graph.query = _heard(Graph.query, "query_object", _query)  # type: ignore[method-assign]
    Graph.update = _heard(Graph.update, "update_object", _update)  # type: ignore[method-assign]
    # Not an entry point: code that opens every known store, as rdflib's own tests do, expects to write.
    plugin.register("spaseq-window", Store, "spaseq.rdf.window", "WindowStore")


def evaluate(ctx: QueryContext, part: CompValue) -> Iterable[Any]:
    """Evaluate a SERVICE of ours; raise NotImplementedError for every other part, as rdflib requires."""
    if part.name == "ServiceGraphPattern":
        iri = ctx[part.term]
        if (SERVICES and iri is None) or (isinstance(iri, str) and iri.startswith(SCHEME)):
            from spaseq.rdf.service import solutions

            return solutions(ctx, part, iri)
    raise NotImplementedError


_Translate = Callable[[str, str | None, Mapping[str, Any]], Query | Update]


def _heard(method: Callable[..., Any], name: str, translate: _Translate) -> Callable[..., Any]:
    """Wrap ``Graph.query`` or ``Graph.update``; the parameter ``name`` is the query."""
    signature = inspect.signature(method)

    @wraps(method)
    def asked(*args: Any, **kwargs: Any) -> Any:
        call = signature.bind(*args, **kwargs)
        given = call.arguments
        what = given[name]
        if _is_for_processor(given.get("processor")):
            given["use_store_provided"] = False
        elif isinstance(what, syntax.Query):
            raise EngineError(_SAY)
        elif _names_service(given, what):
            given[name] = _translated(given, what, translate)
            given["use_store_provided"] = False
        try:
            return method(*call.args, **call.kwargs)
        except Exception as error:
            if isinstance(what, str) and not isinstance(error, EngineError) and _is_spaseq(given, what):
                raise EngineError(_SAY) from error
            raise

    return asked


def _is_for_processor(processor: object) -> bool:
    if isinstance(processor, str) or processor is None:
        return processor == "spaseq"
    return type(processor).__module__ == "spaseq.rdf.processor"


def _is_spaseq(given: Mapping[str, Any], text: str) -> bool:
    return not _is_for_processor(given.get("processor")) and _SPASEQ.search(text) is not None


# --- services -----------------------------------------------------------------------------------


def _names_service(given: Mapping[str, Any], what: object) -> bool:
    """Return whether a text, or rdflib's prepared form of one, mentions our services anywhere.

    The mention may be by a prefix, in a BIND, or in ``initBindings``. A service's IRI that occurs only in the
    data is not recognized: such a query needs ``use_store_provided=False``.
    """
    text, names, _ = _text(given, what)
    if not text or _SERVICE.search(text) is None:
        return False
    if not given.get("use_store_provided", True):
        return True
    ours = SCHEME.removeprefix("urn:")  # also after a prefix that is <urn:>
    if ours in text:
        return True
    prefixes = [prefix for prefix, iri in names.items() if ours in str(iri)]
    if any(re.search(rf"(?<![\w.-]){re.escape(prefix)}:", text) for prefix in prefixes):
        return True
    return any(ours in str(term) for term in (given.get("initBindings") or {}).values())


def _text(given: Mapping[str, Any], what: object) -> tuple[str, Mapping[str, Any], str | None]:
    """Return the query as text, with its prefixes and base; "" if the text is unknown."""
    if isinstance(what, str):
        graph = given["self"]
        names = given.get("initNs") or dict(graph.namespaces())
        return what, names, given.get("kwargs", {}).get("base")
    text, names, base = getattr(what, "_original_args", ("", {}, None))
    return text, names, base


def _translated(given: Mapping[str, Any], what: object, translate: _Translate) -> Query | Update:
    """Return the query in rdflib's algebra, with the columns of the services in it."""
    text, names, base = _text(given, what)
    if not isinstance(what, Query | Update):
        return translate(text, base, names)
    known = columns_of_services()
    before, translated = _PREPARED.get(what, (None, what))
    if before != known:
        translated = translate(text, base, names)
        _PREPARED[what] = known, translated
    return translated


def _query(text: str, base: str | None, names: Mapping[str, Any]) -> Query:
    with PARSER:
        parsed = parseQuery(text)
    _tell(parsed[1], translatePrologue(parsed[0], base, names))
    return translateQuery(parsed, base, names)


def _update(text: str, base: str | None, names: Mapping[str, Any]) -> Update:
    with PARSER:
        parsed = parseUpdate(text)
    prologue: Prologue | None = None
    for said, request in zip(parsed.prologue or (), parsed.request or (), strict=False):
        prologue = translatePrologue(said, base, names, prologue)
        _tell(request, prologue)
    return translateUpdate(parsed, base, names)


def _tell(tree: CompValue, prologue: Prologue) -> None:
    """Give each SERVICE of a parse tree the columns of its service, for rdflib to find.

    A SERVICE with a variable gets the columns of all services that the query names, or, if it names none, of
    all services.
    """
    known = columns_of_services()
    parts = list(_parts(tree))
    named = known.keys() & {_iri(part, prologue) for part in parts}
    for part in parts:
        if isinstance(part, CompValue) and part.name == "ServiceGraphPattern":
            meant = (named or known) if isinstance(part.term, Variable) else {_iri(part.term, prologue)}
            part["columns"] = [v for iri, columns in known.items() if iri in meant for v in columns]


def _iri(part: object, prologue: Prologue) -> URIRef | None:
    if isinstance(part, URIRef) or (isinstance(part, CompValue) and part.name == "pname"):
        found = prologue.absolutize(part)
        return found if isinstance(found, URIRef) else None
    return None


def _parts(part: Any) -> Iterator[Any]:
    """Yield a parse tree's nodes, from the root."""
    yield part
    if isinstance(part, CompValue):
        part = list(part.values())
    if not isinstance(part, str):
        try:
            children = iter(part)
        except TypeError:
            return
        for child in children:
            yield from _parts(child)
