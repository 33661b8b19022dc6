"""Compile every matcher's kernels, each once, before test workers start: run by ``conftest.py`` in processes.

python -m tests.warm MATCHER ...
"""

from __future__ import annotations

import sys
from datetime import timedelta

from spaseq import Engine

S = "http://example.org/s"
#: By matcher, a sequence, what B asks besides, and what follows WHERE.
QUERIES = {
    "nfa": ("A ; !N ; B+ ; C", "FILTER(?b > ?a)", ""),
    "bounded": ("A ; B+ ; C", "FILTER(?b > ?a)", ""),
    "skip": ("A , B+[,] , C", "FILTER(?b > ?a)", "AFTER MATCH SKIP PAST LAST EVENT"),
    "tecs": ("A : B+[:] : C", "", ""),
    "lazy": ("A : B : C", "FILTER(?b > ?a)", ""),
    "kmp": ("A , B , C", "FILTER(?b != ?a)", ""),
}
GPMS = {"A": "?x a :a ; :v ?a .", "B": "?y a :b ; :v ?b .", "C": "?z a :c ; :v ?c .", "N": "?n a :n ."}


def warm(matcher: str) -> int:
    """Match a few events by this matcher, pushed alone and together; return the number of matches."""
    sequence, condition, tail = QUERIES[matcher]
    bound = timedelta(days=1) if matcher == "bounded" else None
    asked = GPMS | {"B": f"{GPMS['B']} {condition}"}
    gpms = " ".join(f"DEFINE GPM {name} ON S {{ {asked[name]} }}" for name in GPMS if name in sequence)
    engine = Engine(matcher="nfa" if matcher in ("bounded", "skip") else matcher, latency=bound)
    found = engine.register(
        f"PREFIX : <http://example.org/> SELECT * WITHIN 9 SECONDS SLIDING FROM STREAM S <{S}> "
        f"WHERE {{ SEQ({sequence}) {gpms} }} {tail}"
    )
    ns = "http://example.org/"
    many = 60 if matcher == "tecs" else 600
    events = [(f"<urn:e{i}> a <{ns}{'abc'[i % 3]}> ; <{ns}v> {i} .", i) for i in range(many)]
    for graph, time in events[:9]:
        engine.push(S, graph, time)
    engine.push_many(S, events[9:])
    engine.finish()
    return len(list(found.matches()))


if __name__ == "__main__":
    for name in sys.argv[1:]:
        warm(name)
