"""Small streams and queries, of which one can count by hand what they do."""

from __future__ import annotations

import spaseq

NS = "http://example.org/"
HEAD = f"PREFIX : <{NS}>\nSELECT * WITHIN"
STREAM = f"FROM STREAM S <{NS}s>\n"


def query(sequence: str, gpms: dict[str, str], within: str = "10 SECONDS", where: str = "") -> str:
    """A query over stream S, and T if a GPM begins with ``T:``."""
    second = f"FROM STREAM T <{NS}t>\n" if any(text.startswith("T:") for text in gpms.values()) else ""
    defined = "\n".join(
        f"DEFINE GPM {name} ON {'T' if text.startswith('T:') else 'S'} {{ {text.removeprefix('T:')} }}"
        for name, text in gpms.items()
    )
    return f"{HEAD} {within}\n{STREAM}{second}WHERE {{ SEQ({sequence})\n{defined}\n{where} }}"


def why(text: str, *events: tuple[int, str], knowledge: dict[str, str] | None = None) -> spaseq.Diagnosis:
    """What is said when these events, each a time and Turtle, have been pushed; ``T:`` to stream T."""
    prefixes = f"PREFIX : <{NS}>\nPREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"
    with spaseq.Engine(kb=knowledge) as engine:
        handle = engine.register(text)
        for time, turtle in events:
            stream = "t" if turtle.startswith("T:") else "s"
            engine.push(NS + stream, prefixes + f"{turtle.removeprefix('T:')} .", time)
    return handle.why()
