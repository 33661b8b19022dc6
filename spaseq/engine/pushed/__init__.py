"""Events in, as callers give them: arguments in several forms, texts, and what waits until somebody asks."""
