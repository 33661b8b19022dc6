"""The syntax tree of a SPAseq query: frozen dataclasses that say what was written, and where.

Terms are pyoxigraph's (``NamedNode``, ``BlankNode``, ``Literal``): immutable, hashable, and printed
as N-Triples by ``str``. Every node that an error can point at is ``Placed``: it carries a ``Span``. Spans
never take part in comparison, so two queries are equal when they say the same thing.

``terms`` and ``expressions`` make ``patterns``, which GPMs consist of; ``sequences`` say how GPMs follow each
other, and within what ``durations``; with the other ``clauses`` they are the ``query``, whose text
``printing`` gives.
"""

from __future__ import annotations

from spaseq.language.syntax.clauses import (
    Ask,
    Construct,
    Consume,
    Emit,
    Gpm,
    Register,
    RegisterKind,
    Skip,
    SkipMode,
    StreamDeclaration,
    Window,
    WindowKind,
)
from spaseq.language.syntax.durations import UNITS, Duration
from spaseq.language.syntax.expressions import (
    Aggregate,
    Binary,
    Call,
    Constant,
    Exists,
    Expression,
    FunctionCall,
    In,
    Prev,
    Unary,
)
from spaseq.language.syntax.patterns import (
    Bind,
    Filter,
    Graph,
    Group,
    GroupCondition,
    Minus,
    Modifiers,
    Optional,
    OrderCondition,
    Pattern,
    Projection,
    Select,
    Service,
    SubSelect,
    TriplePattern,
    Triples,
    Union,
    Values,
)
from spaseq.language.syntax.query import Query
from spaseq.language.syntax.sequences import (
    All,
    Bounded,
    Conjunction,
    Disjunction,
    Not,
    Ref,
    Repeat,
    Seq,
    Sequence,
    Strategy,
)
from spaseq.language.syntax.span import Placed, Span
from spaseq.language.syntax.terms import (
    Path,
    PathAlternative,
    PathInverse,
    PathNegated,
    PathRepeat,
    PathSequence,
    Var,
)

__all__ = [
    "UNITS",
    "Aggregate",
    "All",
    "Ask",
    "Binary",
    "Bind",
    "Bounded",
    "Call",
    "Conjunction",
    "Constant",
    "Construct",
    "Consume",
    "Disjunction",
    "Duration",
    "Emit",
    "Exists",
    "Expression",
    "Filter",
    "FunctionCall",
    "Gpm",
    "Graph",
    "Group",
    "GroupCondition",
    "In",
    "Minus",
    "Modifiers",
    "Not",
    "Optional",
    "OrderCondition",
    "Path",
    "PathAlternative",
    "PathInverse",
    "PathNegated",
    "PathRepeat",
    "PathSequence",
    "Pattern",
    "Placed",
    "Prev",
    "Projection",
    "Query",
    "Ref",
    "Register",
    "RegisterKind",
    "Repeat",
    "Select",
    "Seq",
    "Sequence",
    "Service",
    "Skip",
    "SkipMode",
    "Span",
    "Strategy",
    "StreamDeclaration",
    "SubSelect",
    "TriplePattern",
    "Triples",
    "Unary",
    "Union",
    "Values",
    "Var",
    "Window",
    "WindowKind",
]
