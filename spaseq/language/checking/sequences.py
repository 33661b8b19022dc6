"""Static checks of SEQ alone: names, bounds, places of negations, parts that match nothing."""

from __future__ import annotations

from collections.abc import Iterator

from spaseq.language import syntax as s
from spaseq.language.checking.findings import Findings
from spaseq.language.checking.reach import ends, matches_nothing
from spaseq.language.reading.hints import nearest
from spaseq.language.scope import parts, references
from spaseq.language.syntax.printing import print_sequence


def check_sequence(query: s.Query, findings: Findings) -> None:
    """Raise QueryMeaningError at the first part of SEQ that has no meaning."""
    _names(query, findings)
    for node in inside(query.sequence):
        match node:
            case s.Repeat():
                _repeat(node, findings)
                if node.reluctant and query.skip is None:
                    hint = "leave the second '?' out, or say AFTER MATCH SKIP …, which prefers one match"
                    raise findings.error(
                        "reluctance without AFTER MATCH SKIP: all matches are found anyway", node.span, hint
                    )
            case s.Not():
                _negation(node, findings)
            case s.Conjunction():
                for operand in node.operands:
                    _simultaneous(operand, findings)
            case s.All(operands):
                for operand in operands:
                    if matches_nothing(operand):
                        raise findings.error("an operand of ALL must match an event", operand.span)
            case s.Sequence(elements):
                for element in elements:
                    _group(element, findings)
                _vacuous(node, findings)
            case s.Ref() | s.Disjunction() | s.Bounded():
                pass
    _skip(query, findings)
    if query.window.kind is s.WindowKind.TUMBLING:
        for negation in ends(query.sequence):
            findings.warn(
                f"{print_sequence(negation)} looks as far as its window does, and TUMBLING windows begin and "
                "end anywhere; say SLIDING",
                negation.span,
            )
    if matches_nothing(query.sequence):
        hint = "a match needs an event: at least one GPM that is neither optional nor negated"
        raise findings.error(
            "this sequence also matches where no event does", _empty(query.sequence).span, hint
        )


def inside(seq: s.Seq) -> Iterator[s.Seq]:
    """Yield ``seq`` and every sequence inside it, outermost first."""
    yield seq
    for part in parts(seq):
        yield from inside(part)


def _empty(seq: s.Seq) -> s.Seq:
    """Return the innermost alternative that matches nothing, for an error to point at."""
    if isinstance(seq, s.Disjunction):
        return _empty(next(operand for operand in seq.operands if matches_nothing(operand)))
    return seq


def _names(query: s.Query, findings: Findings) -> None:
    defined = [gpm.name for gpm in query.gpms]
    used = set()
    for ref, _ in references(query.sequence):
        if ref.name not in defined:
            alike = nearest(ref.name, defined)
            hint = f"did you mean {alike}?" if alike else f"the query defines {', '.join(defined)}"
            raise findings.error(f"no GPM is called {ref.name}", ref.span, hint)
        used.add(ref.name)
    for gpm in query.gpms:
        if gpm.name not in used:
            place = findings.word(gpm.name, gpm.span, after="GPM")
            findings.warn(f"GPM {gpm.name} is never used in SEQ", place)


def _skip(query: s.Query, findings: Findings) -> None:
    """Check AFTER MATCH SKIP: its target must be part of every match."""
    skip = query.skip
    if skip is None or skip.gpm is None:
        return
    chosen = [ref.name for ref, negated in references(query.sequence) if not negated]
    if skip.gpm not in chosen:
        alike = nearest(skip.gpm, chosen)
        hint = f"did you mean {alike}?" if alike else f"a match chooses {', '.join(dict.fromkeys(chosen))}"
        place = findings.word(skip.gpm, skip.span, after="TO")
        raise findings.error(f"no match skips to {skip.gpm}: SEQ never takes it", place, hint)


def _repeat(node: s.Repeat, findings: Findings) -> None:
    if node.maximum == 0:
        raise findings.error("at most 0 times is never", node.span, "leave it out, or negate it: !A")
    if node.maximum is not None and node.minimum > node.maximum:
        hint = f"the least comes first: {{{node.maximum},{node.minimum}}}"
        raise findings.error(f"at least {node.minimum} and at most {node.maximum} times", node.span, hint)
    if node.maximum != 1 and matches_nothing(node.element):
        hint = "what is repeated must match an event; (A?)+ is A*"
        raise findings.error("a repetition of what can match nothing", node.span, hint)


def _negation(node: s.Not, findings: Findings) -> None:
    for part in inside(node.element):
        if isinstance(part, s.Not):
            raise findings.error("a negation inside a negation", part.span)
        if isinstance(part, s.Sequence | s.All):
            findings.warn(
                "an event for any one GPM of this group breaks the negation; !(A | B) says so plainly",
                part.span,
            )


def _group(element: s.Seq, findings: Findings) -> None:
    """Reject a group that can match nothing because of its contents: only ``?`` after it may allow that."""
    if isinstance(element, s.Repeat) and element.maximum == 1:
        element = element.element
    if isinstance(element, s.Sequence | s.Disjunction) and matches_nothing(element):
        hint = "say what may be missing outside of the group: (A | B)?, or A? ; B? without parentheses"
        raise findings.error("this group can match nothing", _empty(element).span, hint)


def _simultaneous(operand: s.Seq, findings: Findings) -> None:
    match operand:
        case s.Ref():
            return
        case s.Conjunction(operands) | s.Disjunction(operands):
            for inner in operands:
                _simultaneous(inner, findings)
        case s.Not():
            hint = "a negation stands between other elements: A ; !B ; C"
            raise findings.error("'&' cannot have a negation in it", operand.span, hint)
        case s.Sequence():
            hint = "',' ';' ':' bind more tightly than '&': write A ; (B & C)"
            raise findings.error("'&' joins GPMs, not sequences", operand.span, hint)
        case s.Repeat() | s.All() | s.Bounded():
            hint = "its operands are GPMs, & and | of them"
            raise findings.error("'&' joins GPMs that match at the same time", operand.span, hint)


def _vacuous(node: s.Sequence, findings: Findings) -> None:
    around = zip(node.operators, node.elements[1:-1], node.operators[1:], strict=False)
    for before, element, after in around:
        element = element.element if isinstance(element, s.Bounded) else element
        if isinstance(element, s.Not) and before == after == s.Strategy.STRICT:
            findings.warn(
                "this negation says nothing: between two ',' no event can stand anyway; use ';'", element.span
            )
