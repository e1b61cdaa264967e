"""The ground of the network tests, tried with plain programs: what is cut is cut, and nothing is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from mesh.bench import keeper as clearing
from mesh.fleet.clearing import wait_until
from tests.net import talk
from tests.net.ground import PREFIX, Ground

HOSTS = ("a", "b", "c")
TIMEOUT_S = 10.0
_TALK = (sys.executable, "-I", "-S", talk.__file__)
_ROOT = Path(__file__).parents[2]
_STAND_STILL = """
import sys
from tests.net.ground import PREFIX, Ground
with Ground(["a"]) as ground:
    print(ground.run, ground._keeper.pid, flush=True)
    sys.stdin.read()
"""

pytestmark = pytest.mark.usefixtures("has_ground")


@pytest.fixture
def ground() -> Iterator[Ground]:
    with Ground(HOSTS) as ground:
        yield ground
    assert_nothing_left(ground.run)


@pytest.fixture
def heard(ground: Ground) -> dict[str, Path]:
    """Every host listens; what each hears is written here."""
    return serve(ground)


def serve(ground: Ground) -> dict[str, Path]:
    """Let each host listen; return where each writes what it hears."""
    heard = {
        host: ground.start(host, *_TALK, "serve", address)
        for host, address in ground.addresses.items()
    }
    for file in heard.values():
        wait_line(file, "listens")
    return heard


def wait_line(file: Path, line: str) -> list[str]:
    """Wait until this line was written, and return all that were."""

    def lines() -> list[str] | None:
        found = file.read_text().splitlines()
        return found if line in found else None

    return wait_until(lines, TIMEOUT_S, lambda: AssertionError(f"{file}: {line!r} never came"))


def answers(ground: Ground, host: str) -> dict[str, str]:
    """Return what each other host's answer to `host` is, by "host/kind"."""
    others = {address: name for name, address in ground.addresses.items() if name != host}
    said = ground.do(host, *_TALK, "ask", *others).split()
    found = dict(item.split("=") for item in said)
    return {f"{others[key[:-4]]}{key[-4:]}": outcome for key, outcome in found.items()}


def assert_nothing_left(run: str) -> None:
    assert clearing.namespaces_of(run) == []
    assert not clearing.home_of(run).exists()


def wait_nothing_left(run: str) -> None:
    wait_until(
        lambda: (not clearing.namespaces_of(run) and not clearing.home_of(run).exists()) or None,
        TIMEOUT_S,
        lambda: AssertionError(f"{run} is still there"),
    )


def test_hosts_reach_each_other_and_what_is_cut_is_silent_both_ways(
    ground: Ground, heard: dict[str, Path]
) -> None:
    whole = {"b/udp": "answered", "b/tcp": "answered", "c/udp": "answered", "c/tcp": "answered"}
    assert answers(ground, "a") == whole
    ground.cut(["a"], ["b"])
    assert answers(ground, "a") == {**whole, "b/udp": "silence", "b/tcp": "silence"}
    assert {answers(ground, "b")[f"a/{kind}"] for kind in ("udp", "tcp")} == {"silence"}
    ground.heal()
    assert answers(ground, "a") == whole


def test_a_refusal_reaches_both_sides_of_the_cut(ground: Ground, heard: dict[str, Path]) -> None:
    ground.cut(["a"], ["b", "c"], "REJECT")
    refused = {"b/udp": "refused", "b/tcp": "refused", "c/udp": "refused", "c/tcp": "refused"}
    assert answers(ground, "a") == refused
    assert answers(ground, "b") == {
        "a/udp": "refused",
        "a/tcp": "refused",
        "c/udp": "answered",
        "c/tcp": "answered",
    }


def test_a_cut_of_one_way_lets_the_other_way_through(
    ground: Ground, heard: dict[str, Path]
) -> None:
    ground.cut_one_way(["a"], ["b"], "DROP")
    ground.do("b", *_TALK, "tell", ground.addresses["a"], "1")
    wait_line(heard["a"], "told 0")
    ground.do("a", *_TALK, "tell", ground.addresses["b"], "1")
    ground.do("c", *_TALK, "ask", ground.addresses["b"])
    assert "told 0" not in wait_line(heard["b"], "ask")


def test_loss_takes_its_share_of_the_packets(ground: Ground, heard: dict[str, Path]) -> None:
    ground.lose(0.3)
    ground.do("a", *_TALK, "tell", ground.addresses["b"], "1000")
    dropped = ground.dropped("b")
    ground.heal()
    ground.do("c", *_TALK, "ask", ground.addresses["b"])
    count = len(wait_line(heard["b"], "ask")) - 2
    assert count + dropped == 1000
    assert 600 <= count <= 800  # seven standard deviations


def test_a_host_is_reached_at_its_new_address_only(ground: Ground, heard: dict[str, Path]) -> None:
    old = ground.addresses["b"]
    ground.readdress("b", "10.77.0.99")
    assert ground.do("a", *_TALK, "ask", old) == f"{old}/udp=silence {old}/tcp=silence\n"
    found = ground.do("a", *_TALK, "ask", "10.77.0.99")
    assert found == "10.77.0.99/udp=refused 10.77.0.99/tcp=refused\n"  # nobody listens there yet


def test_two_grounds_have_the_same_addresses_and_do_not_meet() -> None:
    with ExitStack() as stack:
        one, other = (stack.enter_context(Ground(HOSTS)) for _ in range(2))
        serve(one)
        assert answers(one, "a")["b/tcp"] == "answered"
        assert answers(other, "a")["b/tcp"] == "refused"


def test_nothing_is_left_when_a_test_fails() -> None:
    def fail(ground: Ground) -> None:
        with ground:
            serve(ground)
            raise ArithmeticError

    ground = Ground(HOSTS)
    with pytest.raises(ArithmeticError):
        fail(ground)
    assert_nothing_left(ground.run)


@pytest.mark.parametrize("killed", ["owner", "owner and keeper"])
def test_nothing_is_left_when_its_owner_is_killed(killed: str) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", _STAND_STILL],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=_ROOT,
        env={**os.environ, "PYTHONPATH": str(_ROOT)},
    )
    with owner:
        assert owner.stdout is not None
        run, keeper = owner.stdout.readline().split()
        assert len(clearing.namespaces_of(run)) == 2
        if "keeper" in killed:
            os.kill(int(keeper), signal.SIGKILL)
        owner.kill()
        owner.wait()
    if "keeper" in killed:
        assert run in clearing.leftovers(PREFIX)
        with Ground(["a"]):
            assert_nothing_left(run)
    wait_nothing_left(run)


def test_a_ground_that_is_in_use_is_no_leftover() -> None:
    with Ground(["a"]) as ground:
        assert ground.run not in clearing.leftovers(PREFIX)
