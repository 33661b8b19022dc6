"""Find all matches at constant cost per event and enumerate them on demand (CORE: tECS).

``matcher`` is the matcher (open it first). ``automaton`` is determinised as it is used, ``update`` and
``memory`` hold partial matches, ``walking`` and ``reading`` enumerate matches. ``compiled`` has the loops,
and ``_kernel_layout`` draws their memory; ``fits`` says which queries can be run.
"""
