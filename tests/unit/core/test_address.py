"""How people write addresses, and the one spelling that the mesh gives them."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh.core.address import (
    DEFAULT_PORT,
    Address,
    is_loopback,
    numeric_host,
    pack_host,
    split_host_port,
    unpack_host,
)
from mesh.errors import ConfigError

hosts = st.ip_addresses().map(str).map(numeric_host).filter(lambda host: host is not None)


@pytest.mark.parametrize(
    ("written", "host", "port"),
    [
        ("alpha", "alpha", DEFAULT_PORT),
        ("alpha:80", "alpha", 80),
        ("10.0.0.1", "10.0.0.1", DEFAULT_PORT),
        ("10.0.0.1:0", "10.0.0.1", 0),
        (" 10.0.0.1:65535 ", "10.0.0.1", 65535),
        (":9", "", 9),
        ("[::1]", "::1", DEFAULT_PORT),
        ("[::1]:9", "::1", 9),
        ("::1", "::1", DEFAULT_PORT),
        ("fe80::1%lo", "fe80::1%lo", DEFAULT_PORT),
    ],
)
def test_every_way_to_write_an_address_is_understood(written: str, host: str, port: int) -> None:
    assert split_host_port(written) == (host, port)


@pytest.mark.parametrize(
    "written",
    [
        "",
        "  ",
        "alpha:",
        "alpha:x",
        "alpha:-1",
        "alpha:65536",
        "alpha:٣",
        "[::1",
        "[::1]9",
        "[::1]:",
    ],
)
def test_a_wrong_address_is_refused_with_what_was_found(written: str) -> None:
    with pytest.raises(ConfigError, match="expected") as caught:
        split_host_port(written)
    if written.strip():
        assert repr(written) in str(caught.value)


def test_a_port_of_any_length_is_refused_as_configuration() -> None:
    with pytest.raises(ConfigError):
        split_host_port("alpha:" + "9" * 5000)


def test_the_default_port_can_be_chosen() -> None:
    assert split_host_port("alpha", 1) == ("alpha", 1)


@given(host=hosts, port=st.integers(1, 65535))
def test_a_printed_address_is_read_back(host: str, port: int) -> None:
    assert split_host_port(str(Address(host, port))) == (host, port)


def test_an_ipv6_host_is_printed_in_brackets() -> None:
    assert str(Address("::1", 9)) == "[::1]:9"
    assert str(Address("127.0.0.1", 9)) == "127.0.0.1:9"


def test_a_mapped_ipv4_host_is_spelled_as_ipv4() -> None:
    assert numeric_host("::ffff:10.0.0.1") == "10.0.0.1"
    assert unpack_host(ipaddress.ip_address("::ffff:10.0.0.1").packed) == "10.0.0.1"


def test_one_ipv6_host_has_one_spelling() -> None:
    assert numeric_host("0:0:0:0:0:0:0:1") == numeric_host("::1") == "::1"


def test_a_name_is_no_numeric_host() -> None:
    assert numeric_host("alpha") is None
    with pytest.raises(ValueError, match="alpha"):
        pack_host("alpha")


@given(host=hosts)
def test_a_packed_host_is_read_back(host: str) -> None:
    assert unpack_host(pack_host(host)) == host


@pytest.mark.parametrize("size", [0, 3, 5, 15, 17])
def test_only_four_or_sixteen_bytes_are_a_host(size: int) -> None:
    with pytest.raises(ValueError, match=f"found {size}"):
        unpack_host(bytes(size))


@pytest.mark.parametrize(
    ("host", "is_local"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("10.0.0.1", False), ("::2", False)],
)
def test_loopback_is_recognised(host: str, is_local: bool) -> None:
    assert is_loopback(host) is is_local
