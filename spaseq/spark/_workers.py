"""Savings for tasks in Spark's Python processes, which PySpark reuses."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING, Final
from zipimport import zipimporter

if TYPE_CHECKING:
    from spaseq.terms.dictionary import Dictionary

_is_frozen = False


def freeze_worker() -> None:
    """Make later tasks in this process cheaper. Call it when a task is done and its modules are loaded.

    Before each task PySpark invalidates the caches of all importers. The importer of a zip archive then reads
    the whole directory again for each of its packages: 0.4 s of processor time. After each task PySpark
    collects garbage, and traverses everything that was ever loaded: 0.1 s. So importers of zip archives are
    forgotten (later imports make new ones), and present objects are excluded from garbage collection.
    """
    global _is_frozen
    for path, importer in list(sys.path_importer_cache.items()):
        if isinstance(importer, zipimporter):
            del sys.path_importer_cache[path]
    if not _is_frozen:
        gc.collect()
        gc.freeze()
        _is_frozen = True


#: With fewer new terms, a search for unused ones does not pay.
_SWEEP_AFTER: Final = 100_000


def sweep(dictionary: Dictionary) -> None:
    """Forget unused terms if there are many new ones."""
    if dictionary.unswept > max(_SWEEP_AFTER, len(dictionary) // 2):
        dictionary.sweep()
