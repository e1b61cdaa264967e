"""Where a socket is: a numeric host and a port, and how people write them.

Host names are resolved by the runtime; a core only ever sees numeric addresses. An IPv4 address
mapped into IPv6 (``::ffff:10.0.0.1``) is the IPv4 address, so that one host has one spelling.
"""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from typing import Final, NamedTuple

from mesh.errors import ConfigError

DEFAULT_PORT: Final = 7946


class Address(NamedTuple):
    """A numeric IPv4 or IPv6 host, without brackets, and a port (1 to 65535; 0 only to bind)."""

    host: str
    port: int

    def __str__(self) -> str:
        """Return ``host:port``, with brackets round an IPv6 host."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def split_host_port(text: str, default_port: int = DEFAULT_PORT) -> tuple[str, int]:
    """Split ``host``, ``host:port``, ``[v6]``, ``[v6]:port``, ``:port`` or a bare IPv6 address.

    Returns:
        The host as written, without brackets ("" for ``:port``), and the port.

    Raises:
        ConfigError: the port is no number from 0 to 65535, a bracket is left open, or nothing is there.
    """
    rest = text.strip()
    if not rest:
        raise ConfigError("an address is expected as HOST:PORT, found nothing")
    if rest.startswith("["):
        host, bracket, tail = rest[1:].partition("]")
        if not bracket or (tail and not tail.startswith(":")):
            raise ConfigError(f"an IPv6 address is expected as [HOST]:PORT, found {text!r}")
        port_text = tail[1:] if tail else None
    elif rest.count(":") > 1:
        host, port_text = rest, None
    else:
        host, colon, tail = rest.partition(":")
        port_text = tail if colon else None
    if port_text is None:
        return host, default_port
    # The length first: int() refuses very long numbers with an error of its own.
    is_number = port_text.isascii() and port_text.isdigit() and len(port_text) <= 5
    if not is_number or int(port_text) > 65535:
        raise ConfigError(f"a port from 0 to 65535 is expected after the colon, found {text!r}")
    return host, int(port_text)


@lru_cache(maxsize=8192)
def numeric_host(host: str) -> str | None:
    """Return the one spelling of a numeric host, or None when `host` is a name."""
    try:
        parsed = ipaddress.ip_address(host)
    except ValueError:
        return None
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(parsed)


@lru_cache(maxsize=8192)
def pack_host(host: str) -> bytes:
    """Return the 4 or 16 bytes of a numeric host, without its zone. Raises ValueError for a name."""
    return ipaddress.ip_address(numeric_host(host.partition("%")[0]) or host).packed


@lru_cache(maxsize=8192)
def unpack_host(packed: bytes) -> str:
    """Return the numeric host of 4 or 16 bytes. Raises ValueError for another length."""
    if len(packed) not in {4, 16}:
        raise ValueError(f"4 or 16 bytes of address are expected, found {len(packed)}")
    return numeric_host(str(ipaddress.ip_address(packed))) or ""


def is_loopback(host: str) -> bool:
    """Say whether a numeric host is this machine's loopback."""
    return ipaddress.ip_address(host).is_loopback
