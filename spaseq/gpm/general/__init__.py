"""The general route: what joins of views do not cover is Oxigraph's."""
