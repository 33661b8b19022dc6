"""The site: its navigation names its pages, it builds without a warning, and public names are described."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.docs.blocks import ROOT

#: The packages whose ``__all__`` is public, beside spaseq's own.
PACKAGES = ("spaseq", "spaseq.paths", "spaseq.rdf", "spaseq.spark")


def leaves(nav: Any) -> Iterator[str]:
    for entry in nav:
        if isinstance(entry, str):
            yield entry
        else:
            for value in entry.values():
                yield from [value] if isinstance(value, str) else leaves(value)


@pytest.mark.slow
def test_the_navigation_names_every_page_and_no_other() -> None:
    yaml = pytest.importorskip("yaml", reason="the extra 'docs' is not installed")
    nav = yaml.safe_load((ROOT / "docs" / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    named = list(leaves(nav))
    there = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert len(named) == len(set(named))
    assert set(named) == there, "add the page to (or take it from) nav in docs/mkdocs.yml"


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    if find_spec("mkdocs") is None:
        pytest.skip("the extra 'docs' is not installed: no mkdocs")
    command = ["build", "--quiet", "--strict", "-f", "docs/mkdocs.yml", "-d", str(tmp_path / "site")]
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", *command],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "A ; (B | C)" in (tmp_path / "site" / "language.html").read_text(encoding="utf-8")


def public(package: str) -> list[str]:
    if package == "spaseq.spark":
        pytest.importorskip("pyspark", reason="the extra 'spark' is not installed")
    return [name for name in import_module(package).__all__ if not name.startswith("__")]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_described(package: str) -> None:
    module = import_module(package)
    bare = [name for name in public(package) if not is_described(getattr(module, name))]
    assert not bare, f"{package}: no docstring: {', '.join(bare)}"


def is_described(value: Any) -> bool:
    if not (inspect.isclass(value) or inspect.isroutine(value) or inspect.ismodule(value)):
        return True  # a constant, a type alias
    return bool((value.__doc__ or "").strip()) and not (value.__doc__ or "").startswith(
        f"{getattr(value, '__name__', '')}("  # what a dataclass without a docstring gets
    )


def members(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """A public routine, or those of a public class: its methods and properties, as functions."""
    if inspect.isroutine(value):
        yield name, value
    for key, member in vars(value).items() if inspect.isclass(value) else ():
        found = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        if not key.startswith("_") and inspect.isfunction(found):
            yield f"{name}.{key}", found


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_method_is_described_and_names_the_errors_that_it_raises(package: str) -> None:
    module = import_module(package)
    problems = []
    for name, value in (found for one in public(package) for found in members(one, getattr(module, one))):
        said = inspect.getdoc(value) or ""
        raised = set(re.findall(r"raise (\w+Error)\b", inspect.getsource(value)))
        problems += [] if said else [f"{name}: no docstring"]
        problems += [f"{name}: {error} is not in its docstring" for error in raised if error not in said]
    assert not problems, f"{package}: " + "; ".join(problems)


def test_every_public_name_is_on_the_page_of_the_api() -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8").split()
    missing = [
        f"::: {package}.{name}"
        for package in PACKAGES
        for name in public(package)
        if f"{package}.{name}" not in page and f"{package}.{name}" not in PACKAGES
    ]
    assert not missing, f"docs/api.md lacks {', '.join(missing)}"
