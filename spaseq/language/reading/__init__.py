"""Text → syntax tree, or a syntax error with a hint.

``parser.py`` drives the grammar ``spaseq.lark``; open it first. ``builder.py`` builds the tree.
"""
