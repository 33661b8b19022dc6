"""What the tests of retrievers ask, and what a model answers that plans well."""

from __future__ import annotations

from spaseq.paths import load

GRAPH = load(
    [
        ("urn:film:Kismet", "urn:starred", "urn:person:Edward_Arnold"),
        ("urn:film:Kismet", "urn:directed_by", "urn:person:William_Dieterle"),
        ("urn:film:Kismet", "urn:release_year", "1944"),
        ("urn:film:Meet_Nero_Wolfe", "urn:starred", "urn:person:Edward_Arnold"),
        ("urn:film:Meet_Nero_Wolfe", "urn:directed_by", "urn:person:Herbert_Biberman"),
        ("urn:person:Edward_Arnold", "urn:alias", "Schneider"),
    ]
)
QUESTION = "Who directed the films with Edward Arnold?"
TOPICS, PATHS = '["Edward Arnold"]', '[["^starred", "directed_by"]]'
TEXTS = [
    "Edward Arnold ← starred ← Kismet → directed by → William Dieterle",
    "Edward Arnold ← starred ← Meet Nero Wolfe → directed by → Herbert Biberman",
]
