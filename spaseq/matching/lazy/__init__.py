"""Lazy evaluation: buffer events, and build matches beginning with the rarest GPM.

``matcher`` is the matcher (open it first). ``plans`` are the alternatives of a sequence, ``demands`` and
``ranges`` their conditions, ``tables`` writes both for the kernel (``compiled``). ``memory`` has the buffers,
and ``matches`` makes blocks of what is found.
"""
