"""stub"""

from lark import Lark
from spaseq.errors import QuerySyntaxError
from spaseq.language.source import Source


def diagnose(lark: Lark, source: Source, start: str) -> QuerySyntaxError:
    try:
        lark.parse(source.expanded, start=start)
    except Exception as e:
        return source.error(
            QuerySyntaxError, str(e), source.origin(max(0, getattr(e, "pos_in_stream", 0) or 0))
        )
