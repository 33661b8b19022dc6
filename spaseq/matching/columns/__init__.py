"""The parts that all matchers over columns share: batches, history, and ``blocks`` of matches.

``matcher`` defines such a matcher (open it first). ``batches`` and ``chunk`` are its input, ``history`` keeps
past events, ``ranks`` orders partition keys, and ``blocks`` has matches as columns.
"""
