"""The railroad diagrams: drawn from the grammar, every rule of them."""

from __future__ import annotations

import runpy
from xml.etree import ElementTree

import pytest

from tests.docs.blocks import ROOT


def test_the_grammar_can_be_drawn_and_is() -> None:
    pytest.importorskip("railroad", reason="the extra 'docs' is not installed")
    script = runpy.run_path(str(ROOT / "docs" / "grammar.py"))
    now = script["drawing"](script["GRAMMAR"].read_text(encoding="utf-8"))
    for svg in (now, script["PICTURE"].read_text(encoding="utf-8")):
        titles = [e.text for e in ElementTree.fromstring(svg).iter() if e.get("class") == "rule"]
        assert titles == list(script["DRAWN"]), "python docs/grammar.py draws it anew"
