"""The notebooks run, and show what is written in them."""

from __future__ import annotations

import pytest

from tests.docs import notebooks
from tests.docs.blocks import ROOT


@pytest.mark.filterwarnings("ignore:(Dataset|ConjunctiveGraph):DeprecationWarning")
@pytest.mark.parametrize("name", notebooks.NAMES)
@pytest.mark.few(1)
def test_a_notebook_shows_what_is_written_in_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    notebook = notebooks.read(name)
    for needed in ("pandas", "langchain_core"):
        if f"import {needed}" in str(notebook) or f"from {needed}" in str(notebook):
            pytest.importorskip(needed, reason=f"{needed} is not installed")
    for cell, shown in notebooks.run(notebook, name):
        assert shown == cell["outputs"], "python -m tests.docs.notebooks writes it anew"
