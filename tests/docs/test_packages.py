"""The packages: imports go one way, and the picture shows them."""

from __future__ import annotations

import runpy
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.docs.blocks import ROOT

checker: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "packages.py"))
MAP = """\
| package | in → out | what |
|---|---|---|
| `spaseq/low/` | | |
| `spaseq/high.py`, `spaseq/more.py` | | |
"""


def written(root: Path, **files: str) -> Path:
    """Files of 30 lines that say what they are, unless their text does, with these further lines."""
    for name, text in files.items():
        path = root / "spaseq" / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text if '"""' in text else f'"""{name}.""";{text}' + "\n" * 30)
    return root


@cache
def ours() -> Any:
    return checker["look"](ROOT, checker["MAP"].read_text(encoding="utf-8"))


@pytest.mark.slow
def test_no_arrow_goes_up_and_every_module_has_a_package() -> None:
    assert ours().problems == []


@pytest.mark.slow
def test_what_is_known_to_go_up_still_does() -> None:
    found = [arrow for arrows in ours().arrows.values() for arrow in arrows]
    for module, imported in checker["KNOWN"]:
        assert any(
            checker["within"](i.module, module) and checker["within"](i.imported, imported) for i in found
        ), f"{module} no longer imports {imported}: take it out of KNOWN in docs/packages.py"


def test_an_arrow_upwards_is_told_with_its_place(tmp_path: Path) -> None:
    root = written(
        tmp_path,
        low__a="x = 1\ndef f():\n    from spaseq.high import g\n",
        high="",
        more="",
    )
    (problem,) = checker["look"](root, MAP).problems
    assert problem.startswith("spaseq/low/a.py:3: spaseq.low.a (low) imports spaseq.high (high)")


def test_a_circle_is_told_also_one_of_imports_inside_of_functions(tmp_path: Path) -> None:
    types = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import spaseq.low.c\n"
    root = written(
        tmp_path,
        low__a="import spaseq.low.b\n",
        low__b="import spaseq.low.c\ndef f():\n    from spaseq.low.a import g\n" + types,
        low__c=types.replace("low.c", "low.a"),
        high="",
        more="",
    )
    (problem,) = checker["look"](root, MAP).problems
    assert problem == "a circle of imports: spaseq/low/a.py:1, spaseq/low/b.py:3"


def test_a_module_outside_the_map_and_a_row_without_modules(tmp_path: Path) -> None:
    root = written(tmp_path, low__a="", high="", other="")
    missing, outside = checker["look"](root, MAP).problems
    assert "spaseq/more.py" in missing
    assert outside.startswith("spaseq/other.py: in no package")


def test_a_file_that_can_be_no_row_of_the_map_of_files_is_told(tmp_path: Path) -> None:
    alike = '"""The same."""\n' + "\n" * 30
    root = written(
        tmp_path,
        low__a=alike,
        low__b=alike,
        low__c='"""Two lines\nof a sentence."""' + "\n" * 30,
        low__d='"""Short, with one user."""\n',
        low__e='"""Short, with two."""\n',
        high="import spaseq.low.d, spaseq.low.e",
        more='"""x."""\nimport spaseq.low.e' + "\n" * 30,
    )
    same, broken, short = checker["look"](root, MAP).problems
    assert same.startswith("spaseq/low/b.py: spaseq/low/a.py has the same first line")
    assert broken.startswith("spaseq/low/c.py: its first line must be a sentence")
    assert short == "spaseq/low/d.py: 1 lines for one user: they belong into the file that uses them"


def test_the_map_of_files_has_a_row_for_each(tmp_path: Path) -> None:
    root = written(tmp_path, low__a='"""One | two."""\n', high="", more="")
    text = checker["files_of"](root, MAP)
    assert "### low\n\n| file | what it is |\n|---|---|\n| `spaseq/low/a.py` | One \\| two. |\n" in text
    assert "| `spaseq/more.py` | more. |" in text


def test_the_longest_path_decides(tmp_path: Path) -> None:
    split = MAP + "| `spaseq/low/deep/` | | |\n"
    root = written(tmp_path, low__a="", low__deep__b="import spaseq.low.a", high="", more="")
    assert checker["look"](root, split).problems == []


def test_the_picture_shows_the_packages_of_the_map() -> None:
    places = checker["packages"](checker["MAP"].read_text(encoding="utf-8"))
    drawn = ElementTree.parse(checker["PICTURE"])
    names = [e.text for e in drawn.iter() if e.get("class") == "name"]
    assert sorted(names) == sorted(package.name for package in places), (
        "python docs/packages.py draws it anew"
    )


def test_a_guarded_package_is_imported_by_those_named_alone(tmp_path: Path) -> None:
    judge = "from spaseq.matching.reference import a\n"
    root = written(tmp_path, matching__reference__a="", matching__planner=judge, matching__runs=judge)
    text = (
        "| package | | |\n|---|---|---|\n| `spaseq/matching/reference/` | | |\n| `spaseq/matching/` | | |\n"
    )
    (problem,) = checker["look"](root, text).problems
    assert problem.startswith(
        "spaseq/matching/runs.py:1: spaseq.matching.runs imports spaseq.matching.reference"
    )
