"""The notebooks run, and show what is written in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs import notebooks


@pytest.mark.filterwarnings("ignore:(Dataset|ConjunctiveGraph):DeprecationWarning")
@pytest.mark.parametrize("name", notebooks.OURS)
def test_a_notebook_shows_what_is_written_in_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pandas", reason="pandas is not installed")
    monkeypatch.chdir(tmp_path)
    for cell, shown in notebooks.run(notebooks.read(name), name):
        assert shown == cell["outputs"], "python -m tests.docs.notebooks writes it anew"
