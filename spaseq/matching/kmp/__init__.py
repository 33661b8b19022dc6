"""Match ``,``-only sequences whose conditions are equalities by an extended KMP; open ``matcher`` first.

After du Mouza, Rigaux and Scholl, "Parameterized pattern queries" (2007).
"""
