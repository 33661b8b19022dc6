"""The package as a whole: its doctests, its public names, and what importing it costs."""

from __future__ import annotations

import doctest
import inspect
import pkgutil
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

import spaseq

MODULES = [
    m.name for m in pkgutil.walk_packages(spaseq.__path__, "spaseq.") if not m.name.endswith("__main__")
]

#: What needs an extra that tests do not bring.
EXTRAS = {
    "spaseq.paths.langchain": "langchain_core",
    "spaseq.paths.llamaindex": "llama_index.core",
    "spaseq.mcp.events": "mcp",
    "spaseq.mcp.graphs": "mcp",
    "spaseq.mcp.serving": "mcp",
}

# What rdflib 7.6 deprecates, its own Dataset.query and TriG parser use.
of_rdflib = pytest.mark.filterwarnings("ignore:(Dataset|ConjunctiveGraph):DeprecationWarning")


def _shows_examples(name: str) -> bool:
    """Whether a module's text has a line of an interpreter's session."""
    found = find_spec(name)
    return found is not None and found.origin is not None and ">>> " in Path(found.origin).read_text("utf-8")


@of_rdflib
@pytest.mark.parametrize("name", [name for name in ["spaseq", *MODULES] if _shows_examples(name)])
def test_doctests(name: str) -> None:
    if name in EXTRAS:
        pytest.importorskip(EXTRAS[name], reason=f"{name} needs {EXTRAS[name]}, which is not installed")
    assert doctest.testmod(import_module(name)).failed == 0


def test_some_doctests_are_run() -> None:
    assert sum(map(_shows_examples, MODULES)) >= 10


def test_public_names() -> None:
    assert list(spaseq.__all__) == sorted(spaseq.__all__)
    for name in spaseq.__all__:
        assert getattr(spaseq, name) is not None
    assert set(spaseq.__all__) <= set(dir(spaseq))
    with pytest.raises(AttributeError, match="no attribute 'Enigne'"):
        spaseq.Enigne  # noqa: B018  # the access is what is tested


@pytest.mark.parametrize(
    "name", [m.name for m in pkgutil.walk_packages(spaseq.__path__, "spaseq.") if m.ispkg]
)
def test_what_a_package_names_is_there(name: str) -> None:
    """Many are looked up when they are first asked for, and so may have moved meanwhile."""
    package = import_module(name)
    for public in getattr(package, "__all__", ()):
        if name == "spaseq.mcp" and public == "server":
            pytest.importorskip("mcp", reason="the MCP server needs mcp, which is not installed")
        assert getattr(package, public) is not None
    if "__getattr__" in vars(package):
        with pytest.raises(AttributeError, match="no attribute 'Enigne'"):
            package.Enigne  # noqa: B018  # the access is what is tested


def loaded_by(statement: str) -> set[str]:
    """The top-level packages in memory after a statement in a new interpreter."""
    code = f"{statement}\nimport sys\nprint(*sorted({{m.split('.')[0] for m in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_is_cheap() -> None:
    assert not {"numpy", "rdflib", "pyoxigraph", "lark"} & loaded_by("import spaseq")


@pytest.mark.slow
def test_the_engine_needs_no_command_line_and_no_jvm() -> None:
    loaded = loaded_by("import spaseq; spaseq.Engine; spaseq.run; spaseq.explain; spaseq.Match")
    assert not {"typer", "rich", "pyspark", "pyshacl"} & loaded


@pytest.mark.parametrize("name", ["spaseq", "spaseq.paths", "spaseq.rdf", "spaseq.spark"])
def test_no_module_hides_a_public_name(name: str) -> None:
    """Once imported, a submodule is its package's attribute, in place of what is looked up later."""
    package = import_module(name)
    modules = {module.name for module in pkgutil.iter_modules(package.__path__)}
    hidden = modules.intersection(package.__all__)
    assert all(inspect.ismodule(getattr(package, one)) for one in hidden), hidden
    assert hidden <= ({"connect", "paths"} if name == "spaseq" else set())
