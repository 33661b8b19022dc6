"""The list of messages is true."""

from tests.messages import FILE, text


def test_the_list_is_true() -> None:
    assert FILE.read_text() == text(), "python -m tests.messages rewrites it"
