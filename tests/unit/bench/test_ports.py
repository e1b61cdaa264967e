"""Ports that are free, and the moment when one is bound."""

from __future__ import annotations

import socket
import time

from mesh.bench.ports import HIGH, LOW, BindWatch, bound_ports, free_ports

TABLE = """\
   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
  325: 0100007F:55BA 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 70361 2 0000000000000000 0
 1209: 00000000000000000000000001000000:2F01 00000000000000000000000000000000:0000 07 00000000:00000000 00:00000000
"""


def test_the_kernels_table_is_read() -> None:
    assert bound_ports(TABLE) == {0x55BA, 0x2F01}
    assert bound_ports(TABLE.splitlines()[0]) == set()


def test_ports_are_distinct_and_below_those_the_kernel_hands_out() -> None:
    ports = free_ports(40)
    assert len(set(ports)) == 40
    assert all(LOW <= port < HIGH for port in ports)
    assert HIGH < 32_768  # where Linux begins, unless it is told otherwise


def test_the_moment_of_a_bind_is_seen() -> None:
    first, second = free_ports(2)
    with BindWatch({first, second}) as watch:
        before_ns = time.time_ns()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.bind(("127.0.0.1", first))
            found = watch.wait({first}, 10.0)
        assert found.keys() == {first}
        assert found[first] >= before_ns
        assert watch.wait({second}, 0.0) == {}
