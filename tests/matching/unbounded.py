"""Kernels as they would be if there were no bounds: their source without all that only a bound needs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import spaseq
from spaseq._jit import _read

_PACKAGE: Final = Path(spaseq.__file__).parent
#: What is there for bounds alone.
_BOUNDED: Final = (
    "matching/shedding",
    "matching/sharing/bounded",
    "matching/lazy/compiled/_kernel_passing.py",
    "matching/nfa/skip/compiled/_kernel_shed.py",
)
#: The record of what only a bound needs, among those of the lazy kernel.
_RECORD: Final = "passing"
#: How kernels ask whether there is one: ``p`` is None where there is none.
_ASKED: Final = ("p is None", "p is not None")
_NAME: Final = r'(?:"[^"]*"|[\w.$-]+)'


def is_bounded(file: Path) -> bool:
    """Whether a file is there for bounds alone."""
    inside = file.relative_to(_PACKAGE).as_posix()
    return any(inside == one or inside.startswith(f"{one}/") for one in _BOUNDED)


def made_of(kernel: Path) -> set[Path]:
    """The files that the kernels of a file are made of."""
    found, due = set[Path](), [kernel]
    while due:
        if (file := due.pop()) not in found:
            found.add(file)
            due.extend(_read(file)[1])
    return found


def without_bounds(source: str) -> str:
    """A file's source without what asks for a bound, or says anything of one."""
    tree = ast.parse(source)
    names = {_RECORD} | {
        alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("spaseq.")
        for alias in node.names
        if any(is_bounded(file) for file in _files(node.module, alias.name))
    }
    return ast.unparse(ast.fix_missing_locations(_Without(names).visit(tree)))


def _files(module: str, name: str) -> Iterator[Path]:
    place = _PACKAGE.parent.joinpath(*module.split("."))
    yield place.with_suffix(".py")
    yield place / f"{name}.py"


class _Without(ast.NodeTransformer):
    """Leaves out each statement, and each operand of a condition, that names what only a bound needs."""

    def __init__(self, names: set[str]) -> None:
        self._names = names

    def _tells(self, node: ast.AST) -> bool:
        """Whether this names something of a bound, or asks whether there is one."""
        return any(
            (isinstance(one, ast.Name) and one.id in self._names)
            or (isinstance(one, ast.Compare) and ast.unparse(one) in _ASKED)
            for one in ast.walk(node)
        )

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        left = [self.visit(one) for one in node.values if not self._tells(one)]
        if len(left) == len(node.values):
            return node
        return left[0] if len(left) == 1 else ast.BoolOp(node.op, left)

    def visit_If(self, node: ast.If) -> Any:
        first = node.test.values[0] if isinstance(node.test, ast.BoolOp) else node.test
        body = [new for one in node.body for new in self._all(one)]
        if self._tells(first) or not body:
            return [new for one in node.orelse for new in self._all(one)] or None
        self.generic_visit(node)
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        names = [alias for alias in node.names if alias.name not in self._names]
        return ast.ImportFrom(node.module, names, node.level) if names else None

    def _all(self, statement: ast.stmt) -> list[ast.stmt]:
        new = self.visit(statement)
        return [] if new is None else new if isinstance(new, list) else [new]

    def _statement(self, node: ast.stmt) -> Any:
        return None if self._tells(node) else node

    visit_Expr = visit_Assign = visit_AugAssign = visit_AnnAssign = visit_Return = _statement  # noqa: N815


def normalised(code: str) -> list[str]:
    """The functions of LLVM IR, line by line, with numbers for the names in them."""
    functions = re.findall(r"^define.*?^}$", code, re.MULTILINE | re.DOTALL)
    known: dict[str, str] = {}
    return [line for function in functions for line in _numbered(function, known).splitlines()]


def _numbered(function: str, known: dict[str, str]) -> str:
    """``known``: the numbers of what all functions name."""
    own: dict[str, str] = {}
    text = re.sub(r", !\w+ !\d+| #\d+|\s*;.*", "", function)
    text = re.sub(rf"^({_NAME}):", r"%\1:", text, flags=re.MULTILINE)
    text = re.sub(rf"@(?!llvm\.){_NAME}", lambda m: known.setdefault(m[0], f"@{len(known)}"), text)
    return re.sub(rf"%{_NAME}", lambda m: own.setdefault(m[0].replace('"', ""), f"%{len(own)}"), text)
