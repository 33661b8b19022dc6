"""The grammar, spaseq/language/reading/spaseq.lark → docs/grammar.svg: railroad diagrams of all but SPARQL.

python docs/grammar.py      draws it (pip install '.[docs]')
"""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path
from typing import Any, Final

import railroad as rr

ROOT: Final = Path(__file__).parents[1]
GRAMMAR: Final = ROOT / "spaseq" / "language" / "reading" / "spaseq.lark"
PICTURE: Final = ROOT / "docs" / "grammar.svg"

#: The rules that are drawn. Those whose names begin with _ are drawn where they are used.
DRAWN: Final = (
    *("query", "register", "select", "within", "partition", "from_stream", "from_named", "where", "gpm"),
    *("seq", "disjunction", "conjunction", "sequence", "element", "negation", "repeat", "unit"),
    *("emit", "consume", "skip"),
)

#: Rules that are short enough to be drawn where they are used.
INLINE: Final = {
    *("one_or_more", "zero_or_more", "zero_or_one", "exactly", "between", "gpm_streams", "all_operand"),
    *("past_last_event", "to_next_event", "to_first", "to_last", "ask"),
}

_TOKEN: Final = re.compile(r'"[^"]*"|[A-Za-z_]\w*|[()\[\]|?*+]')


def definitions(text: str) -> dict[str, str]:
    """Rules and terminals by name, without comments and without the names of their trees (``-> name``)."""
    lines = (line.partition(" //")[0] for line in text.splitlines() if not line.startswith("//"))
    joined = re.sub(r"\n[ \t]+", " ", "\n".join(lines))
    found = re.findall(r"^\??(\w+)(?:\.\d+)?:\s*(.*)$", joined, re.MULTILINE)
    return {name: re.sub(r"->\s*\w+", "", body) for name, body in found}


class Drawer:
    """Descends into the body of a rule, and makes diagrams of what it finds."""

    def __init__(self, rules: dict[str, str]) -> None:
        self._rules = rules
        self._tokens: list[str] = []

    def rule(self, name: str) -> Any:
        outer, self._tokens = self._tokens, _TOKEN.findall(self._rules[name])[::-1]
        try:
            return self._choice()
        finally:
            self._tokens = outer

    def _choice(self) -> Any:
        sides = [self._sequence()]
        while self._next() == "|":
            self._tokens.pop()
            sides.append(self._sequence())
        return sides[0] if len(sides) == 1 else rr.Choice(0, *sides)

    def _sequence(self) -> Any:
        items = []
        while self._next() not in ("", "|", ")", "]"):
            items.append(self._repeated())
        return items[0] if len(items) == 1 else rr.Sequence(*items)

    def _repeated(self) -> Any:
        item = self._item(self._tokens.pop())
        match self._next():
            case "?":
                make = rr.Optional
            case "*":
                make = rr.ZeroOrMore
            case "+":
                make = rr.OneOrMore
            case _:
                return item
        self._tokens.pop()
        return make(item)

    def _item(self, token: str) -> Any:
        if token in ("(", "["):
            inner = self._choice()
            self._tokens.pop()
            return inner if token == "(" else rr.Optional(inner)
        if token.startswith('"'):
            return rr.Terminal(token.strip('"'))
        if token.isupper():
            return self._terminal(token)
        if token.startswith("_") or token in INLINE:
            return self.rule(token)
        return rr.NonTerminal(token)

    def _terminal(self, name: str) -> Any:
        r"""A keyword or a sign as it is written; IRIREF, VAR and the like by their names."""
        body = self._rules.get(name, "")
        if keyword := re.fullmatch(r"/([A-Z_]+)(\\b|\(\?=.*\))/i", body):
            return rr.Terminal(keyword[1])
        if re.fullmatch(r'"[^"]*"( \| "[^"]*")*', body):
            return self.rule(name)
        return rr.NonTerminal(name.strip("_"))

    def _next(self) -> str:
        return self._tokens[-1] if self._tokens else ""


def drawing(grammar: str) -> str:
    """The diagrams of ``DRAWN``, one below the other, as SVG."""
    drawer = Drawer(definitions(grammar))
    parts: list[str] = []
    top, width = 0.0, 0.0
    for name in DRAWN:
        diagram = rr.Diagram(drawer.rule(name))
        text = StringIO()
        diagram.format(10)
        diagram.writeSvg(text.write)
        size = {key: float(diagram.attrs[key]) for key in ("width", "height")}
        parts.append(f'<text class="rule" x="10" y="{top + 18:g}">{name}</text>')
        parts.append(text.getvalue().replace("<svg ", f'<svg x="0" y="{top + 24:g}" ', 1))
        top, width = top + 40 + size["height"], max(width, size["width"])
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {top:g}" width="{width:g}">'
    return "\n".join([head, f"<style>{_STYLE}</style>", *parts, "</svg>", ""])


_STYLE: Final = """
path { stroke-width: 2; stroke: #5b6b86; fill: none }
text { font: 13px monospace; text-anchor: middle }
.rule { font: 600 15px system-ui, sans-serif; text-anchor: start }
rect { stroke-width: 1.5; stroke: #5b6b86; fill: #f4f6fa }
.terminal rect { fill: #e7f0e2 }
"""


if __name__ == "__main__":
    PICTURE.write_text(drawing(GRAMMAR.read_text(encoding="utf-8")), encoding="utf-8")
