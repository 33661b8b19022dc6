"""``items=``: each element of an array in a JSON document is an event."""

from __future__ import annotations

import json
from collections.abc import Iterator


def split_items(text: str | bytes, path: str) -> tuple[list[str], str]:
    """Return the objects of the array at ``path`` (keys joined by dots), as JSON, and the rest of the
    document.

    An element gets the document's ``@context``, before its own. Raises ValueError if there is no such array.

    >>> split_items('{"at": 1, "feed": {"entity": [{"id": 5}]}}', "feed.entity")
    (['{"id": 5}'], '{"at": 1, "feed": {}}')
    """
    document = json.loads(text)
    keys = path.split(".")
    around = document
    for key in keys[:-1]:
        around = around.get(key) if isinstance(around, dict) else None
    items = around.pop(keys[-1], None) if isinstance(around, dict) else None
    if not isinstance(items, list):
        names = ", ".join(document) if isinstance(document, dict) else "no keys"
        raise ValueError(f"items={path}: there is no array of that name; there are {names}")
    if not all(isinstance(item, dict) for item in items):
        raise ValueError(f"items={path}: an element of it is not an object")
    context = document.get("@context")
    return [json.dumps(_with(context, item)) for item in items], json.dumps(document)


def _with(context: object, item: dict[str, object]) -> dict[str, object]:
    if context is None:
        return item
    own = item.get("@context")
    both = [part for each in (context, own) if each is not None for part in _parts(each)]
    return {"@context": both, **{key: value for key, value in item.items() if key != "@context"}}


def _parts(context: object) -> Iterator[object]:
    yield from context if isinstance(context, list) else [context]
