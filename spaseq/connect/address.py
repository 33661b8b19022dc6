"""URLs of live sources and sinks: ``kafka://broker:9092/trades?format=nq&group=alerts``.

URLs are checked here, before anything is opened: the scheme, host and port, and every option by name and
value. An error shows the scheme, the host, the path, the names of options, and values only of options that
are not secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from spaseq.errors import SourceError
from spaseq.excerpts import hide
from spaseq.language.reading.hints import nearest
from spaseq.sources import SourceOptions
from spaseq.sources._options import OPTIONS, read_option

#: The value of an option.
Setting = str | int | float | bool

_URL: Final = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://|(?P<file>file):|(?P<cut>kafka|mqtts?|wss?|(?:ldes\+)?https?):",
    re.IGNORECASE,
)
_NAME: Final = re.compile(r"[A-Za-z][\w.-]{0,63}")
_HOST: Final = re.compile(r"\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?")
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
#: Schemes of file stores that cannot be read here.
_STORES: Final = re.compile(r"(?:web)?hdfs|viewfs|abfss?|wasbs?|adl|gs|s3n|s?ftp")
#: The name of a Kafka topic.
_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")


def is_url(location: object) -> bool:
    """Return whether a location is for this package: text with a scheme.

    >>> is_url("mqtt://broker/t"), is_url("file:ticks.nq?follow"), is_url("ticks.nq"), is_url("-")
    (True, True, False, False)
    """
    return isinstance(location, str) and _URL.match(location) is not None


def is_bucket(location: str) -> bool:
    """Return whether a location is in an object store, which only the Spark host reads.

    >>> is_bucket("s3a://ticks/may"), is_bucket("ticks.nq")
    (True, False)
    """
    return location.lower().startswith(("s3a://", "s3://"))


# --- options ------------------------------------------------------------------------------------


def _text(name: str, value: str) -> Setting:
    del name
    return value


def _token(name: str, value: str) -> Setting:
    if not (value.isascii() and value.isprintable()):
        raise SourceError(f"option {name!r} has a character that a header of HTTP cannot have")
    return value


def _query(name: str, value: str) -> Setting:
    if not value.isprintable():
        raise SourceError(f"option {name!r} has a character that a URL cannot have: write %25XX for %XX")
    return value


def _seconds(name: str, value: str) -> Setting:
    found = _DURATION.fullmatch(value)
    if found is None:
        raise SourceError(f"{name}={value!r} is not a duration: a number and ms, s, m or h, as in 30s")
    return float(found[1]) * _SECONDS[found[2]]


def _readable(name: str, value: str) -> Setting:
    if not Path(value).is_file():
        raise SourceError(f"{name}={value!r}: no such file")
    return value


def _one_of(*known: str) -> Callable[[str, str], Setting]:
    def read(name: str, value: str) -> Setting:
        if value not in known:
            raise SourceError(f"{name}={value!r} is none of {', '.join(known)}")
        return value

    return read


def _beginning(name: str, value: str) -> Setting:
    if value in ("earliest", "latest"):
        return value
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise SourceError(
            f"{name}={value!r} is neither earliest nor latest nor a time such as 2026-01-31T08:00:00Z"
        ) from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


Readers = dict[str, Callable[[str, str], Setting]]

_TRIES: Final[Readers] = {"connect": _seconds, "retry": _seconds}
_HTTP: Final[Readers] = {"query": _query, "token": _token, "ca": _readable}
_MQTT: Final[Readers] = {"qos": _one_of("0", "1", "2"), "client": _text, "ca": _readable}
_KAFKA: Final[Readers] = {
    "security.protocol": _one_of("plaintext", "ssl", "sasl_plaintext", "sasl_ssl"),
    **dict.fromkeys(
        (
            "client.id",
            "sasl.mechanism",
            "sasl.username",
            "sasl.password",
            "ssl.key.password",
            "ssl.endpoint.identification.algorithm",
        ),
        _text,
    ),
    **dict.fromkeys(("ssl.ca.location", "ssl.certificate.location", "ssl.key.location"), _readable),
}


@dataclass(frozen=True, slots=True)
class Scheme:
    """A URL scheme: its usual port, the meaning of its path, and the options of sources and sinks.

    A scheme without ``sink`` is for sources only.
    """

    port: int | None
    path: str
    source: Readers
    sink: Readers | None = None
    is_secure: bool = False


_WEB: Final = _TRIES | _HTTP
_SOURCE_BY_HTTP: Final = _WEB | {"read": _seconds}
_SOURCE_OF_KAFKA: Final = _TRIES | _KAFKA | {"group": _text, "from": _beginning}

SCHEMES: Final[Mapping[str, Scheme]] = {
    "kafka": Scheme(9092, "TOPIC", _SOURCE_OF_KAFKA, _TRIES | _KAFKA),
    "mqtt": Scheme(1883, "TOPIC", _TRIES | _MQTT, _TRIES | _MQTT),
    "mqtts": Scheme(8883, "TOPIC", _TRIES | _MQTT, _TRIES | _MQTT, is_secure=True),
    "ws": Scheme(80, "PATH", _WEB),
    "wss": Scheme(443, "PATH", _WEB, is_secure=True),
    "http": Scheme(80, "PATH", _SOURCE_BY_HTTP, _WEB),
    "https": Scheme(443, "PATH", _SOURCE_BY_HTTP, _WEB, is_secure=True),
    "ldes+http": Scheme(80, "PATH", _SOURCE_BY_HTTP),
    "ldes+https": Scheme(443, "PATH", _SOURCE_BY_HTTP, is_secure=True),
    "file": Scheme(None, "/PATH", {}),
}


# --- addresses ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Address:
    """The parsed URL of a live source or sink. ``str`` is the URL without credentials and options.

    ``hosts``: names and ports; several for Kafka alone. ``path``: the topic; with ``http`` and ``ws`` the
    path of the request; the path of a file. ``settings``: the options that are not about events.
    """

    scheme: str
    hosts: tuple[tuple[str, int], ...]
    path: str
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    settings: tuple[tuple[str, Setting], ...] = field(default=(), repr=False)

    def __str__(self) -> str:
        return f"{self.scheme}://{self.servers}{'' if self.path.startswith('/') else '/'}{self.path}"

    @property
    def servers(self) -> str:
        """Return the hosts with their ports, comma-separated."""
        return ",".join(f"{host}:{port}" for host, port in self.hosts)

    @property
    def is_secure(self) -> bool:
        """Return whether the connection must be encrypted."""
        return SCHEMES[self.scheme].is_secure

    def text(self, name: str, otherwise: str = "") -> str:
        """Return a text option."""
        return str(dict(self.settings).get(name, otherwise))

    def seconds(self, name: str, otherwise: float) -> float:
        """Return a duration option in seconds."""
        return float(dict(self.settings).get(name, otherwise))

    @property
    def url(self) -> str:
        """Return the URL for HTTP or WebSocket, without credentials."""
        query = self.text("query")
        return f"{self}?{query}" if query else str(self)


def parse_address(text: str, *, sink: bool = False) -> tuple[Address, dict[str, object], bool]:
    """Parse a URL: the address; the options about events (none for a sink); and whether ``follow`` is set.

    Raises SourceError, listing the known names, for an unknown scheme or option or a bad value; for an
    impossible host or port; and for a URL without a host or a topic.
    """
    found = _URL.match(text)
    if found is None:
        raise SourceError(f"{hide(text)!r} is not a URL: {_known(sink)}")
    name = (found["scheme"] or found["cut"] or "file").lower()
    if found["cut"]:
        raise SourceError(
            f"{name}: has two slashes behind it: write {name}://HOST[:PORT]/{SCHEMES[name].path}"
        )
    scheme = SCHEMES.get(name)
    if scheme is None:
        if is_bucket(text):
            raise SourceError(
                f"{hide(text)}: only Spark reads buckets: give --engine spark, or use spaseq.spark"
            )
        if _STORES.fullmatch(name):
            done = "written" if sink else "read"
            raise SourceError(f"files of {name}:// are not {done}: paths are, and s3a:// by Spark")
        alike = nearest(name, _schemes(sink))
        hint = f"did you mean {alike}://? " if alike else ""
        raise SourceError(f"unknown scheme {name}://: {hint}{_known(sink)}")
    readers = scheme.sink if sink else scheme.source
    if readers is None:
        raise SourceError(f"{name}:// is for sources, not for results: {_known(sink)}")
    place, _, query = text[found.end() :].partition("?")
    settings, given, follows = _options(name, query, readers, sink=sink)
    authority, slash, path = place.partition("/")
    if name == "file":
        return Address(name, (), _file(text, authority, slash + path, found["file"])), given, follows
    form = f"{name}://HOST[:PORT]/{scheme.path}"
    user, at, hosts = authority.rpartition("@")
    if not hosts:
        raise SourceError(f"no host in {hide(text)!r}: write {form}")
    pairs = tuple(_host(host, scheme.port, form) for host in hosts.split(","))
    if len(pairs) > 1 and name != "kafka":
        raise SourceError(f"{name}:// has one host, not {len(pairs)}: write {form}")
    who, _, password = user.partition(":")
    if at and not who:
        raise SourceError(f"no user before the @ in {hide(text)!r}")
    path = _path(name, path, form)
    return (
        Address(name, pairs, path, unquote(who), unquote(password), tuple(sorted(settings.items()))),
        given,
        follows,
    )


def _schemes(sink: bool) -> list[str]:
    return [name for name, scheme in SCHEMES.items() if not sink or scheme.sink is not None]


def _known(sink: bool) -> str:
    return f"one of {', '.join(f'{name}://' for name in _schemes(sink))}"


def _file(text: str, authority: str, path: str, is_relative: str | None) -> str:
    if is_relative:
        path = authority + path
    elif authority not in ("", "localhost"):
        raise SourceError(f"{hide(text)!r} names a host: write file:///PATH, or file:PATH for a relative one")
    if not path:
        raise SourceError(f"no path in {hide(text)!r}: write file:///PATH, or file:PATH for a relative one")
    return unquote(path)


def _host(text: str, usual: int | None, form: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, port = text, str(usual)
    if not host or not _HOST.fullmatch(host):
        what = (
            f"{host!r} cannot be a host" if host else f"no host before :{port if port.isdecimal() else '…'}"
        )
        raise SourceError(f"{what}: write {form}")
    if not port.isascii() or not port.isdecimal() or not 0 < int(port) < 65536:
        raise SourceError(
            f"what follows {host}: cannot be a port, a number from 1 to 65535. "
            "(/ ? # @ in a password are written %2F %3F %23 %40)"
        )
    return host, int(port)


def _path(name: str, path: str, form: str) -> str:
    if name not in ("kafka", "mqtt", "mqtts"):
        return f"/{path}"
    topic = unquote(path)
    if not topic:
        raise SourceError(f"no topic: write {form}")
    if name == "kafka" and not _TOPIC.fullmatch(topic):
        raise SourceError(f"{topic!r} cannot be a topic of Kafka's: letters, digits, '.', '_' and '-'")
    return topic


def _options(
    scheme: str, query: str, readers: Readers, *, sink: bool
) -> tuple[dict[str, Setting], dict[str, object], bool]:
    settings: dict[str, Setting] = {}
    given: dict[str, object] = {}
    follows = False
    about_events: Iterable[str] = () if sink else OPTIONS
    known = [*readers, *about_events, *(["follow"] if scheme == "file" else [])]
    for part in filter(None, query.split("&")):
        name, equals, raw = part.partition("=")
        value = unquote(raw)
        if name not in known:
            alike = nearest(name, known)
            hint = f"did you mean {alike}? " if alike else ""
            # Text without a value may be the rest of a value with an & that is not written %26.
            is_name = _NAME.fullmatch(name) and (equals or alike)
            what = f"unknown option {name!r}" if is_name else "an unknown option"
            raise SourceError(f"{what} of {scheme}://: {hint}known are {', '.join(known)}")
        if name in settings or name in given:
            raise SourceError(f"option {name!r} is given twice")
        if name == "follow":
            if equals:
                raise SourceError("option 'follow' has no value: write ?follow")
            follows = True
        elif not value:
            raise SourceError(f"option {name!r} has no value")
        elif name in readers:
            settings[name] = readers[name](name, value)
        else:
            given[name] = read_option(name, value)
    return settings, given, follows


def options_of(given: Mapping[str, object]) -> SourceOptions:
    """Return the options about events, from the result of ``parse_address``."""
    return SourceOptions(**given)  # type: ignore[arg-type]  # as read_option reads them
