"""Which route evaluates a pattern."""

from __future__ import annotations

from spaseq.gpm.general.oxigraph import Background, General
from spaseq.gpm.spectra.joins import Route, Spectra, covers
from spaseq.language.syntax import Group
from spaseq.terms.dictionary import Dictionary


def prepare(pattern: Group, dictionary: Dictionary, kb: Background | None) -> Route:
    """The pattern on the SPECTRA route if that covers it, else on the general one."""
    if covers(pattern) is None:
        return Spectra(pattern, dictionary, kb)
    return General(pattern, dictionary, kb)
