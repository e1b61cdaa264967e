"""Binding, advertising and settings: what is taken, what is refused, and in which words."""

from __future__ import annotations

import errno
import socket
from pathlib import Path
from typing import Any

import pytest
import trio

from mesh.core.address import Address
from mesh.errors import ConfigError, TransportError
from mesh.runtime import endpoint as module
from mesh.runtime.agent import run_agent
from mesh.runtime.endpoint import advertised_address, open_endpoint
from mesh.runtime.hook_settings import HookSettings
from mesh.runtime.reach import Reach
from mesh.runtime.resolver import Resolver
from mesh.runtime.settings import AgentSettings


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.8.7", "::1", "localhost", ""])
def test_loopback_is_bound_for_both_protocols_on_one_port(host: str) -> None:
    endpoint = open_endpoint((host, 0), Reach())
    assert endpoint.udp.getsockname()[1] == endpoint.tcp.getsockname()[1] == endpoint.address.port
    assert endpoint.address.port > 0
    endpoint.close()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7"])
def test_only_loopback_may_be_bound_without_a_key(host: str) -> None:
    with pytest.raises(ConfigError, match="without a key only loopback may be bound"):
        open_endpoint((host, 0), Reach())


def test_an_unknown_host_is_named() -> None:
    with pytest.raises(ConfigError, match=r"--bind needs.*found 'no such\.invalid'"):
        open_endpoint(("no such.invalid", 0), Reach())


@pytest.mark.parametrize("kind", [socket.SOCK_DGRAM, socket.SOCK_STREAM])
def test_a_port_in_use_is_named_with_what_to_do(kind: socket.SocketKind) -> None:
    with socket.socket(socket.AF_INET, kind) as other:
        other.bind(("127.0.0.1", 0))
        port = other.getsockname()[1]
        if kind == socket.SOCK_STREAM:
            other.listen()
        with pytest.raises(TransportError, match=f"port {port} .* in use.*--bind") as caught:
            open_endpoint(("127.0.0.1", port), Reach())
    assert caught.value.errno == errno.EADDRINUSE


def test_a_free_udp_port_whose_tcp_twin_is_taken_is_not_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = module._bind
    taken: list[int] = []

    def bind(kind: socket.SocketKind, host: str, port: int) -> socket.socket:
        if kind == socket.SOCK_STREAM and len(taken) < 3:
            taken.append(port)
            raise TransportError("in use", errno.EADDRINUSE)
        return real(kind, host, port)

    monkeypatch.setattr(module, "_bind", bind)
    endpoint = open_endpoint(("127.0.0.1", 0), Reach())
    assert len(taken) == 3
    endpoint.close()


BOUND = Address("127.0.0.1", 7)


@pytest.mark.parametrize(
    ("bound", "advertise", "seeds", "expected"),
    [
        (BOUND, None, (), BOUND),
        (BOUND, ("10.0.0.9", 8), (), Address("10.0.0.9", 8)),
        (BOUND, ("10.0.0.9", 0), (), Address("10.0.0.9", 7)),
        (BOUND, ("localhost", 8), (), Address("127.0.0.1", 8)),
        (BOUND, ("::ffff:10.0.0.9", 8), (), Address("10.0.0.9", 8)),
        (BOUND, ("2001:DB8:0:0::9", 8), (), Address("2001:db8::9", 8)),
        (Address("0.0.0.0", 7), None, ("127.0.0.1:9",), BOUND),
        (Address("::", 7), None, ("[::1]:9",), Address("::1", 7)),
    ],
)
def test_the_advertised_address(
    bound: Address, advertise: tuple[str, int] | None, seeds: tuple[str, ...], expected: Address
) -> None:
    lifted = Reach(is_loopback_only=False)
    assert advertised_address(bound, advertise, seeds, lifted) == expected


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "224.0.0.1"])
def test_an_address_that_nobody_can_send_to_is_not_advertised(host: str) -> None:
    with pytest.raises(ConfigError, match="--advertise needs"):
        advertised_address(BOUND, (host, 1), (), Reach())


@pytest.mark.parametrize("bound", [BOUND, Address("fe80::1%lo", 7)])
def test_an_address_of_one_link_is_not_advertised(bound: Address) -> None:
    advertise = ("fe80::1%lo", 1) if bound == BOUND else None
    with pytest.raises(ConfigError, match="the same on every host"):
        advertised_address(bound, advertise, (), Reach(is_loopback_only=False))


@pytest.mark.parametrize("host", ["255.255.255.255", "240.0.0.1", "::ffff:255.255.255.255"])
def test_an_address_of_no_single_host_is_not_advertised(host: str) -> None:
    with pytest.raises(ConfigError, match="the address of one host"):
        advertised_address(BOUND, (host, 1), (), Reach(is_loopback_only=False))


@pytest.mark.parametrize("host", ["192.0.2.7", "255.255.255.255", "2001:db8::1"])
def test_only_loopback_is_advertised_without_a_key(host: str) -> None:
    with pytest.raises(ConfigError, match="without a key only loopback may be advertised"):
        advertised_address(BOUND, (host, 1), (), Reach())


@pytest.mark.parametrize(
    ("host", "is_within"),
    [("127.0.0.1", True), ("127.9.8.7", True), ("::1", True), ("192.0.2.1", False),
     ("0.0.0.0", False), ("::", False), ("fe80::1%lo", False), ("localhost", False), ("", False)],
)  # fmt: skip
def test_reach_is_loopback_until_it_is_lifted(host: str, is_within: bool) -> None:
    reach = Reach()
    assert reach.admits(host) is is_within
    assert reach.counters == {"refused_not_loopback": int(not is_within)}
    assert Reach(is_loopback_only=False).admits(host)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"profile": "moon"}, "local, lan, wan"),
        ({"seeds": ("host:99999",)}, "port from 0 to 65535"),
        ({"seeds": (":7946",)}, "a seed is HOST"),
        ({"seeds": ("host:0",)}, "a seed is HOST"),
        ({"expect": 3}, "--expect needs seeds"),
        ({"node_class": "dedicated"}, "needs the queues .* name each by --queue"),
        ({"queues": ("video",)}, "found class general; add --class dedicated"),
        ({"node_class": "dedicated", "queues": ("",)}, "a queue's name of 1 to 128"),
        (
            {"node_class": "dedicated", "queues": tuple(f"q{n}" for n in range(17))},
            "16 queues at most, found 17: give others to another node",
        ),
        (
            {
                "node_class": "dedicated",
                "queues": ("x" * 128,) * 1 + tuple("y" * 120 + str(n) for n in range(9)),
            },
            "use fewer or shorter ones",
        ),
        ({"expect": 3, "found": True, "seeds": ("127.0.0.1:1",)}, "one of the two is expected"),
        ({"expect": 3, "found": True}, "one of the two is expected"),
        ({"seeds": ("192.0.2.1:7946",)}, "without a key only loopback may be joined at"),
        ({"advertise": ("192.0.2.1", 7946)}, "without a key only loopback may be advertised"),
        ({"name": "\udce9"}, "UTF-8"),
        ({"labels": {"\udce9": "1"}}, "UTF-8"),
        ({"pool": "\udce9"}, "UTF-8"),
        ({"hooks": HookSettings(on_shortage="")}, "--on-shortage expects a command"),
        ({"slots": -1}, "slots lie between"),
        ({"slots": 70_000}, "slots lie between"),
        ({"name": ""}, "name, labels, offers, queues or address are not valid"),
        ({"name": "x" * 65}, "name, labels, offers, queues or address are not valid"),
        ({"labels": {"k": "v" * 65}}, "name, labels, offers, queues or address are not valid"),
        ({"labels": {str(n): "v" * 60 for n in range(30)}}, "may take 1024 bytes"),
        ({"offers": {"gpu": -1}}, "name, labels, offers, queues or address are not valid"),
    ],
)
def test_wrong_settings_are_refused_before_anything_is_started(
    tmp_path: Path, wrong: dict[str, Any], text: str
) -> None:
    with pytest.raises(ConfigError, match=text):
        AgentSettings(data_dir=tmp_path / "data", **wrong).check()
    assert not (tmp_path / "data").exists()


def test_defaults_are_sound(tmp_path: Path) -> None:
    settings = AgentSettings(data_dir=tmp_path)
    settings.check()
    assert settings.metadata().slots >= 1
    assert settings.node_name()


def test_a_kept_name_is_the_one_it_goes_by_and_has_to_fit_like_one_that_is_given(
    tmp_path: Path,
) -> None:
    settings = AgentSettings(data_dir=tmp_path)
    assert settings.called("") is settings
    assert settings.called("n1").node_name() == "n1"
    with pytest.raises(ConfigError, match="1 to 64 characters"):
        settings.called("x" * 65)


@pytest.mark.parametrize(
    ("seed", "expected"),
    [
        ("127.0.0.1:5", (Address("127.0.0.1", 5),)),
        ("[::ffff:127.0.0.1]:5", (Address("127.0.0.1", 5),)),
        ("::ffff:127.0.0.1", (Address("127.0.0.1", 7946),)),
        ("[0:0::1]:5", (Address("::1", 5),)),
        ("::1", (Address("::1", 7946),)),
        ("no such.invalid:5", ()),
        ("host:99999", ()),
    ],
)
async def test_a_seed_is_resolved_once_for_each_question(
    seed: str, expected: tuple[Address, ...]
) -> None:
    found: list[tuple[str, tuple[Address, ...]]] = []
    async with trio.open_nursery() as nursery:
        resolver = Resolver(nursery, lambda *answer: found.append(answer), pytest.fail)
        resolver.resolve(seed)
        resolver.resolve(seed)
    assert found == [(seed, expected)]


async def test_a_host_name_is_resolved_to_numbers() -> None:
    found: list[Address] = []
    async with trio.open_nursery() as nursery:
        report = Resolver(nursery, lambda _, addresses: found.extend(addresses), pytest.fail)
        report.resolve("localhost:5")
    assert Address("127.0.0.1", 5) in found or Address("::1", 5) in found


async def test_a_seed_that_stands_for_another_host_is_said_once_and_not_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def lookup(_: str) -> tuple[Address, ...]:
        return (Address("192.0.2.9", 5), Address("127.0.0.1", 5))

    monkeypatch.setattr("mesh.runtime.resolver._lookup", lookup)
    found: list[tuple[str, tuple[Address, ...]]] = []
    said: list[str] = []
    reach = Reach()
    async with trio.open_nursery() as nursery:
        resolver = Resolver(nursery, lambda *answer: found.append(answer), said.append, reach)
        resolver.resolve("far.example:5")
    async with trio.open_nursery() as nursery:
        resolver._nursery = nursery
        resolver.resolve("far.example:5")
    assert found == [("far.example:5", (Address("127.0.0.1", 5),))] * 2
    assert len(said) == 1
    assert "192.0.2.9" in said[0]
    assert reach.counters["refused_not_loopback"] == 2


@pytest.mark.parametrize("error", [OSError("no"), RuntimeError("can't start new thread")])
async def test_whatever_keeps_a_name_from_being_found_it_is_not_found(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    async def lookup(_: str) -> tuple[Address, ...]:
        raise error

    monkeypatch.setattr("mesh.runtime.resolver._lookup", lookup)
    found: list[tuple[str, tuple[Address, ...]]] = []
    async with trio.open_nursery() as nursery:
        Resolver(nursery, lambda *answer: found.append(answer), pytest.fail).resolve("a:5")
    assert found == [("a:5", ())]


def test_socket_reaches_beyond_loopback_for_a_key_that_was_read_and_for_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened(_bind: object, reach: Reach) -> None:
        raise ConfigError("loopback" if reach.is_loopback_only else "anywhere")

    def too_late(path: Path, _file: Path | None) -> None:
        (path / "keys").touch(mode=0o600)

    monkeypatch.setattr("mesh.runtime.agent.open_endpoint", opened)
    monkeypatch.setattr("mesh.runtime.agent.open_keys", too_late)
    with pytest.raises(ConfigError, match="loopback"):
        run_agent(AgentSettings(data_dir=tmp_path))
