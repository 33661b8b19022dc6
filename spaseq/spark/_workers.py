"""What makes tasks cheap in Spark's Python processes, which PySpark uses again and again."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING, Final
from zipimport import zipimporter

if TYPE_CHECKING:
    from spaseq.terms.dictionary import Dictionary

_is_frozen = False


def freeze_worker() -> None:
    """To be called when a task is done, and what it needed is loaded.

    Before each task PySpark asks all importers to look again, and one of a zip archive then reads its whole
    directory, as often as there are packages in it: 0.4 s of processor time. After each task it collects
    garbage, and looks at all that was ever loaded: 0.1 s. So the importers are forgotten (they are made again
    when something is imported), and what is there now is no garbage for good.
    """
    global _is_frozen
    for path, importer in list(sys.path_importer_cache.items()):
        if isinstance(importer, zipimporter):
            del sys.path_importer_cache[path]
    if not _is_frozen:
        gc.collect()
        gc.freeze()
        _is_frozen = True


#: Fewer new terms than these are not worth a search for unused ones.
_SWEEP_AFTER: Final = 100_000


def sweep(dictionary: Dictionary) -> None:
    """Forget unused terms if there are many new ones."""
    if dictionary.unswept > max(_SWEEP_AFTER, len(dictionary) // 2):
        dictionary.sweep()
