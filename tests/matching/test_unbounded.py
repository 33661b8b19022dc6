"""No bound, no change: what is compiled without a bound is as if there were none to be asked for."""

from __future__ import annotations

import ast
import importlib
import re
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
import pytest

import spaseq
from spaseq import Engine
from spaseq._jit import _compiled, part
from spaseq.matching.kmp import _kernel as parameterized
from spaseq.matching.lazy.compiled import _kernel as lazy
from spaseq.matching.nfa.compiled import _kernel as runs
from spaseq.matching.nfa.skip.compiled import _kernel as ordered
from spaseq.matching.tecs.compiled import _kernel as enumeration
from spaseq.paths.search import _kernel as paths
from tests.matching.unbounded import is_bounded, made_of, normalised, without_bounds

_PACKAGE = Path(spaseq.__file__).parent
_TYPES = {
    "Ints": numba.int64[::1],
    "Floats": numba.float64[::1],
    "Codes": numba.int8[::1],
    "int": numba.int64,
    "Ints | None": numba.none,
}


def file_of(module: ModuleType) -> Path:
    assert module.__file__
    return Path(module.__file__)


def compiled(function: Any) -> list[str]:
    """The LLVM IR of a kernel without a bound, compiled here: of one that was kept it cannot be looked at."""
    hints = {name: hint for name, hint in function.__annotations__.items() if name != "return"}
    made = _compiled(function)
    made.compile(tuple(_TYPES[hint] for hint in hints.values()))
    (code,) = made.inspect_llvm().values()
    return normalised(code)


def is_compiled(file: Path) -> bool:
    return re.search("^@(kernel|part|inlined|rare)$", file.read_text(), re.MULTILINE) is not None


@pytest.mark.slow
def test_what_other_kernels_are_made_of_knows_no_bound() -> None:
    """There is nothing to be left out of their source, so that LLVM is told the same with and without."""
    lazy_ones = set(file_of(lazy).parent.glob("*.py"))
    others = {
        file for file in _PACKAGE.rglob("*.py") if is_compiled(file) and not is_bounded(file)
    } - lazy_ones
    assert others >= {file_of(module) for module in (runs, ordered, enumeration, parameterized, paths)}
    for file in set[Path]().union(*map(made_of, others)):
        assert not is_bounded(file), file
        assert file not in lazy_ones
        if is_compiled(file):
            assert without_bounds(file.read_text()) == ast.unparse(ast.parse(file.read_text())), file


@pytest.mark.slow  # compiles all of it twice: some 20 s
def test_the_lazy_kernel_is_compiled_as_if_there_were_no_bounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for an argument that is None, LLVM's code is that of the source without what a bound needs."""
    (copy := tmp_path / "unbounded").mkdir()
    for file in file_of(lazy).parent.glob("*.py"):
        if not is_bounded(file):
            source = without_bounds(file.read_text())
            (copy / file.name).write_text(source.replace(str(lazy.__package__), copy.name))
    monkeypatch.syspath_prepend(str(tmp_path))
    plain = importlib.import_module(f"{copy.name}.{file_of(lazy).stem}")
    ours = compiled(lazy.run.py_func)  # type: ignore[attr-defined]
    assert len(ours) > 5_000
    assert ours == compiled(plain.run.py_func)


def test_a_bound_has_the_lazy_kernel_compiled_once_more_and_none_does_not() -> None:
    """What is compiled for a query without a bound is the form without, and no other."""
    text = """PREFIX : <http://example.org/> SELECT * WITHIN 9 EVENTS SLIDING
        FROM STREAM S <http://example.org/s> WHERE { SEQ(A : B)
          DEFINE GPM A ON S { ?a :a ?x } DEFINE GPM B ON S { ?b :b ?y FILTER(?y > ?x) } }"""
    forms: list[set[Any]] = []
    for bound in ({}, {"latency": timedelta(days=1)}):
        before = set(lazy.run.signatures)  # type: ignore[attr-defined]
        engine = Engine(matcher="lazy", **bound)
        handle = engine.register(text)
        for at, triple in enumerate(["<urn:1> :a 1 .", "<urn:2> :b 2 ."]):
            engine.push("http://example.org/s", f"@prefix : <http://example.org/> . {triple}", at)
        assert len(list(handle.matches())) == 1
        forms.append(set(lazy.run.signatures) - before)  # type: ignore[attr-defined]
    without, under = ({form[-1] for form in some} for some in forms)
    assert without <= {numba.none}
    assert numba.none not in under
    assert {form[-1] for form in lazy.run.signatures} == {numba.none, _TYPES["Ints"]}  # type: ignore[attr-defined]


# --- that it would be seen ----------------------------------------------------------------------------


@part
def _spent(c: Any, p: Any) -> None:
    c[1] += p[0]


def _constant(c: Any, p: Any) -> None:
    for i in range(c[0]):
        c[i] += 3
        if p is not None and p[1]:
            _spent(c, p)


def _asked(c: Any, p: Any) -> None:
    for i in range(c[0]):
        c[i] += 3
        if c[1] and p is None:
            c[1] += 1


def _plain(counts: Any, p: Any) -> None:  # noqa: ARG001
    for number in range(counts[0]):
        counts[number] += 3


@pytest.mark.parametrize(("function", "same"), [(_constant, True), (_asked, False)])
def test_what_is_asked_as_it_runs_is_seen(function: Any, same: bool) -> None:
    codes = []
    for each in (function, _plain):
        each.__annotations__ = {"c": "Ints", "p": "Ints | None"}
        codes.append(compiled(each))
    assert len(codes[0]) > 20
    assert (codes[0] == codes[1]) is same


def test_what_only_a_bound_needs_is_left_out() -> None:
    source = """
from spaseq.matching.lazy.compiled._kernel_passing import allow, spend
from spaseq.matching.lazy.records import counter, passing

def f(c, p, x):
    if c[counter.AT]:
        allow(c, p)
    if p is not None and p[passing.MOST]:
        x = 1
        spend(c, p)
    elif x:
        x = 2
    if x and (p is None or p[passing.SHOWN] > x):
        c[passing.SHARE] = x
        x = 3
    return g(x, p)
"""
    assert (
        without_bounds(source)
        == """from spaseq.matching.lazy.records import counter

def f(c, p, x):
    if x:
        x = 2
    if x:
        x = 3
    return g(x, p)"""
    )
