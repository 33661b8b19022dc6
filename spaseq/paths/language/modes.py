"""Path modes and selectors of GQL (ISO/IEC 39075, path mode prefix and path search prefix)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from spaseq.errors import QueryMeaningError
from spaseq.language.reading.hints import nearest
from spaseq.paths.language.expression import Expression, endless


class Mode(StrEnum):
    """What a path must not do twice."""

    WALK = "WALK"
    """Nothing."""
    TRAIL = "TRAIL"
    """Take an edge."""
    SIMPLE = "SIMPLE"
    """Visit a node, except that it may end where it began."""
    ACYCLIC = "ACYCLIC"
    """Visit a node."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Which paths are wanted for each pair of endpoints; by default, all paths that ``mode`` allows.

    With ``count``, that many of the shortest are wanted; with ``ties``, all that are as short as the
    shortest.
    """

    mode: Mode
    count: int | None = None
    ties: bool = False

    @property
    def everything(self) -> bool:
        """Whether all paths are wanted."""
        return self.count is None and not self.ties


_PREFIX: Final = re.compile(
    r"(?:(?P<selector>ALL SHORTEST|ANY SHORTEST|SHORTEST (?P<count>[1-9][0-9]*)|ALL|ANY)(?: |$))?"
    r"(?:(?P<mode>WALK|TRAIL|SIMPLE|ACYCLIC)(?: |$))?(?:PATHS?)?"
)
MODE_WORDS: Final = ("ALL", "ANY", "SHORTEST", *Mode)


def read_mode(text: str, shortest: int | None = None) -> Choice:
    """Read a mode: ``TRAIL``, ``ANY SHORTEST``, ``SHORTEST 3 ACYCLIC`` …; ``shortest=3`` is ``SHORTEST 3``.

    ``ANY`` means a shortest path, because GQL allows any path. Raises QueryMeaningError.

    >>> read_mode("all shortest trail")
    Choice(mode=<Mode.TRAIL: 'TRAIL'>, count=None, ties=True)
    """
    words = " ".join(text.upper().split())
    found = _PREFIX.fullmatch(words)
    if found is None:
        strange = next((word for word in words.split() if word not in MODE_WORDS), "")
        meant = nearest(strange, MODE_WORDS) if strange else None
        hint = f"did you mean {meant}?" if meant else "as in ALL TRAIL, ANY SHORTEST, SHORTEST 3 ACYCLIC"
        raise QueryMeaningError("this is no path mode", filename="<mode>", text=text, hint=hint)
    selector = found["selector"] or "ALL"
    if shortest is not None:
        if selector != "ALL":
            message = f"{selector} and shortest={shortest} contradict each other"
            raise QueryMeaningError(message, filename="<mode>", text=text, hint="say one of them")
        if shortest < 1:
            message = f"the shortest {shortest} paths are none"
            raise QueryMeaningError(message, filename="<mode>", text=text, hint="ask for at least 1")
    count = int(found["count"]) if found["count"] else 1 if selector in ("ANY", "ANY SHORTEST") else shortest
    return Choice(Mode(found["mode"] or "WALK"), count, selector == "ALL SHORTEST")


def check_finite(expression: Expression, choice: Choice) -> None:
    """Raise QueryMeaningError if all walks are wanted and there may be infinitely many."""
    culprit = endless(expression.root)
    if culprit is None or choice.mode is not Mode.WALK or not choice.everything:
        return
    raise expression.source.error(
        QueryMeaningError,
        "on a cycle, this is met by infinitely many walks",
        culprit.span.start if culprit.span else 0,
        "bound it, as in {1,5}, ask for the shortest=k, or take mode TRAIL, SIMPLE or ACYCLIC",
    )
