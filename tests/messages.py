"""Every literal text that spaseq raises, warns of or prints → messages.txt, to be read in one go.

    python -m tests.messages    rewrites messages.txt

The texts are grouped by package and sorted, each once. ``{…}`` stands for a value.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).parents[1] / "spaseq"
FILE: Final = Path(__file__).with_name("messages.txt")

#: Functions and methods with a message among their arguments, besides classes of errors.
_CALLS: Final = {"bad", "beyond", "echo", "error", "print", "secho", "warn", "warn_within", "write"}


def text() -> str:
    """Return the contents of the file."""
    found: dict[str, set[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        package = path.relative_to(PACKAGE).parts[0]
        found.setdefault(package.removesuffix(".py"), set()).update(messages(ast.parse(path.read_text())))
    parts = (f"# {name}\n\n" + "\n".join(sorted(found[name])) for name in sorted(found) if found[name])
    return "\n\n".join(parts) + "\n"


def messages(tree: ast.AST) -> Iterator[str]:
    """Yield the messages in a module.

    >>> list(messages(ast.parse('raise ValueError(f"{x} is not a number")')))
    ['{…} is not a number']
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and node.exc is not None:
            yield from _texts(node.exc)
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in _CALLS or name.endswith(("Error", "Warning")):
                yield from _texts(node)


def _texts(node: ast.AST) -> Iterator[str]:
    """Yield the literals of an expression that have several words."""
    if isinstance(node, ast.JoinedStr):
        parts = (str(p.value) if isinstance(p, ast.Constant) else "{…}" for p in node.values)
        found = "".join(parts)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        found = node.value
    else:
        for child in ast.iter_child_nodes(node):
            yield from _texts(child)
        return
    line = " ".join(found.split())
    if " " in line and any(character.isalpha() for character in line.replace("{…}", "")):
        yield line


if __name__ == "__main__":
    FILE.write_text(text())
