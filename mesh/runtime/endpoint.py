"""Where a node is reached: one port number for UDP and TCP, and the address that others are told.

How far that may be is for `mesh.runtime.reach` to say.
"""

from __future__ import annotations

import errno
import fcntl
import ipaddress
import socket
import struct
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from mesh.core.address import Address, numeric_host, split_host_port
from mesh.errors import ConfigError, TransportError
from mesh.runtime.reach import Reach

_TRIES_MAX: Final = 32
_SIOCGIFADDR: Final = 0x8915
_BACKLOG: Final = 1_024
"""Connections that wait to be accepted. Beyond it the system drops a newcomer's first packet, and a member
that comes among a crowd of strangers would try again after a second only."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Two bound sockets on one port: datagrams, and a listener for streams."""

    address: Address
    udp: socket.socket
    tcp: socket.socket

    def close(self) -> None:
        """Close both."""
        self.udp.close()
        self.tcp.close()


def resolve_host(host: str, what: str) -> str:
    """Return the numeric form of `host`, asking the system's resolver for a name; blocks meanwhile.

    Raises:
        ConfigError: nobody knows the name. `what` names the setting.
    """
    numeric = numeric_host(host)
    if numeric is not None:
        return numeric
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError) as error:
        raise ConfigError(
            f"{what} needs an address or the name of a host, found {host!r}: {error}"
        ) from error
    usable = [numeric for entry in found if (numeric := numeric_host(str(entry[4][0]))) is not None]
    if not usable:
        raise ConfigError(
            f"{what} needs a host with an IPv4 or IPv6 address, found {host!r}, which has none"
        )
    return next((host for host in usable if ":" not in host), usable[0])


def open_endpoint(bind: tuple[str, int], reach: Reach) -> Endpoint:
    """Bind UDP and TCP to one port; port 0 takes a free one. An empty host is loopback.

    Raises:
        ConfigError: the host is unknown, not of this machine, or out of reach.
        TransportError: the port is in use, or needs rights that this process lacks.
    """
    host = resolve_host(bind[0] or "127.0.0.1", "--bind")
    reach.check(host, f"--bind {Address(host, bind[1])}", "bound")
    for _ in range(_TRIES_MAX):
        udp = _bind(socket.SOCK_DGRAM, host, bind[1])
        port = udp.getsockname()[1]
        try:
            tcp = _bind(socket.SOCK_STREAM, host, port)
        except TransportError as error:
            udp.close()
            if bind[1] or error.errno != errno.EADDRINUSE:
                raise
            continue  # a free UDP port whose TCP twin is taken: draw another
        except BaseException:
            udp.close()
            raise
        return Endpoint(Address(host, port), udp, tcp)
    raise TransportError(
        f"a port that is free for both UDP and TCP is expected on {host}, found none in {_TRIES_MAX} tries; "
        "name one with --bind",
        errno.EADDRINUSE,
    )


def _bind(kind: socket.SocketKind, host: str, port: int) -> socket.socket:
    is_stream = kind == socket.SOCK_STREAM
    try:
        sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, kind)
    except OSError as error:
        raise TransportError(
            f"a socket for {host} is expected, found {error.strerror}; does this host speak IPv6?",
            error.errno,
        ) from error
    try:
        sock.setblocking(False)
        if sock.family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        if is_stream:  # a restart must not wait for the old connections' last minute
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        if is_stream:
            sock.listen(_BACKLOG)
    except OSError as error:
        sock.close()
        raise _bind_error(error, "TCP" if is_stream else "UDP", Address(host, port)) from error
    return sock


def _bind_error(error: OSError, protocol: str, at: Address) -> ConfigError | TransportError:
    if error.errno == errno.EADDRINUSE:
        return TransportError(
            f"{protocol} port {at.port} on {at.host} is in use by another process: a free port is expected; "
            "stop that process, or take another port with --bind HOST:PORT (0 takes any)",
            error.errno,
        )
    if error.errno == errno.EADDRNOTAVAIL:
        return ConfigError(
            f"--bind needs an address of this host, found {at.host}, which is not one"
        )
    return TransportError(
        f"{protocol} port {at.port} on {at.host} cannot be bound: {error.strerror}; "
        "take another with --bind HOST:PORT",
        error.errno,
    )


def advertised_address(
    bound: Address, advertise: tuple[str, int] | None, seeds: tuple[str, ...], reach: Reach
) -> Address:
    """Return the address to tell other members.

    What the user said, else what is bound; bound to all interfaces, the one that the kernel would
    use towards the first seed (or the wide world). No packet is sent.

    Raises:
        ConfigError: the user's choice is no address that anybody could send to, or out of reach.
    """
    if advertise is not None:
        host = resolve_host(advertise[0] or bound.host, "--advertise")
        port = advertise[1] or bound.port
    elif ipaddress.ip_address(bound.host).is_unspecified:
        host, port = _outgoing_host(bound.host, seeds), bound.port
    else:
        host, port = bound
    if "%" in host:
        raise ConfigError(
            f"--advertise needs an address that means the same on every host, found {host}, which is one of a "
            "single link; name another with --advertise"
        )
    if ipaddress.ip_address(host).is_unspecified or ipaddress.ip_address(host).is_multicast:
        raise ConfigError(
            f"--advertise needs an address that other hosts can send to, found {host}; name one with --advertise"
        )
    reach.check(host, f"--advertise {Address(host, port)}", "advertised")
    if ":" not in host and ipaddress.ip_address(host).is_reserved:
        raise ConfigError(
            f"--advertise needs the address of one host, found {host}, which is none (240.0.0.0/4 is reserved, and "
            "255.255.255.255 means all); name another with --advertise"
        )
    return Address(host, port)


def _outgoing_host(bound_host: str, seeds: tuple[str, ...]) -> str:
    targets = [split_host_port(seeds[0])[0]] if seeds else []
    targets += ["192.0.2.1", "2001:db8::1"] if ":" in bound_host else ["192.0.2.1"]
    for target in targets:
        with suppress(ConfigError):
            found = source_towards(resolve_host(target, "a seed"))
            if found is not None:
                return found
    return _only_host(bound_host)


def source_towards(host: str) -> str | None:
    """Return the address that the kernel would send from to a numeric host; None: there is no way. No packet is sent.

    Towards an address of this host itself that is the same address.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((host, 9))
        return numeric_host(probe.getsockname()[0])
    return None


def _only_host(bound_host: str) -> str:
    """Return this host's one address beside loopback: without a route the kernel names none.

    Raises:
        ConfigError: there are several, or none.
    """
    found = sorted({address for address in map(_address_of, socket.if_nameindex()) if address})
    if len(found) == 1:
        return found[0]
    what = f"{len(found)}: {', '.join(found)}" if found else "none"
    raise ConfigError(
        f"bound to all addresses of this host ({bound_host}), the one that others send to is expected to be clear, "
        f"found no route to tell it by, and of addresses {what}; name one with --advertise"
    )


def _address_of(interface: tuple[int, str]) -> str | None:
    """Return the IPv4 address of an interface; None: it has none, or is loopback."""
    request = struct.pack("256s", interface[1].encode()[:15])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            answer = fcntl.ioctl(probe.fileno(), _SIOCGIFADDR, request)
        except OSError:
            return None
    host = socket.inet_ntoa(answer[20:24])
    return None if ipaddress.ip_address(host).is_loopback else host
