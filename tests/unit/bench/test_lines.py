"""What Mesh and its peers say, as recorded, and what is read from it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from mesh.bench.contestant import Traffic
from mesh.bench.mesh_nodes import sighting_of, traffic_of
from mesh.bench.peers import search
from mesh.bench.peers.harness import Harness
from mesh.bench.peers.kinship import Kinship
from mesh.bench.peers.memberlist import Memberlist
from mesh.bench.peers.serf import Serf
from mesh.bench.ports import HIGH, LOW
from mesh.bench.sightings import Sight, Sighting
from mesh.errors import ConfigError

NOW = 1_795_977_000_000_000_000
SERF_LOG = """\
==> Serf agent running!
                      Node name: 'n02'
    2026/11/29 18:26:36 [INFO] serf: EventMemberJoin: n01 127.0.0.1
    2026/11/29 18:26:37 [INFO] agent: Received event: member-join
    2026/11/29 18:27:01 [INFO] memberlist: Suspect n01 has failed, no acks received
    2026/11/29 18:27:05 [INFO] memberlist: Marking n01 as failed, suspect timeout reached (0 peer confirmations)
    2026/11/29 18:27:05 [INFO] serf: EventMemberFailed: n01 127.0.0.1
    2026/11/29 18:27:06 [INFO] agent: Received event: member-failed
    2026/11/29 18:27:12 [INFO] serf: EventMemberLeave: n03 127.0.0.1
"""
SERF_METRICS = """\
[2026-11-29 18:26:30 +0000 UTC][G] 'serf-agent.runtime.num_goroutines': 22.000
[2026-11-29 18:26:30 +0000 UTC][C] 'serf-agent.memberlist.tcp.sent': Count: 1 Sum: 212.000 LastUpdated: 2026-11-29 18:26:36.909826333 +0000 UTC m=+1.004956560
[2026-11-29 18:26:30 +0000 UTC][C] 'serf-agent.memberlist.udp.sent': Count: 8 Min: 22.000 Mean: 114.625 Max: 150.000 Stddev: 48.515 Sum: 917.000 LastUpdated: 2026-11-29 18:26:39.910431865 +0000 UTC m=+4.005562100
[2026-11-29 18:26:40 +0000 UTC][C] 'serf-agent.memberlist.udp.sent': Count: 12 Min: 59.000 Mean: 104.500 Max: 150.000 Stddev: 47.523 Sum: 1254.000 LastUpdated: 2026-11-29 18:26:49.912308401 +0000 UTC m=+14.007438632
[2026-11-29 18:26:40 +0000 UTC][C] 'serf-agent.memberlist.udp.received': Count: 12 Min: 59.000 Mean: 104.500 Max: 150.000 Stddev: 47.523 Sum: 1254.000 LastUpdated: 2026-11-29 18:26:49.911322483 +0000 UTC m=+14.006452716
"""


def unix(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@pytest.fixture
def serf(tmp_path: Path) -> Serf:
    program = tmp_path / "serf"
    program.write_text("#!/bin/sh\necho 'Serf v0.9.4'\n")
    program.chmod(0o755)
    return Serf(str(program))


def test_serf_tells_its_version(serf: Serf) -> None:
    assert serf.about == "serf v0.9.4"


def test_the_log_of_serf_is_read(serf: Serf) -> None:
    seen = [found for line in SERF_LOG.splitlines() if (found := serf.read(line, NOW))]
    assert seen == [
        (NOW, Sight.ALIVE, "n01"),
        (NOW, Sight.SUSPECT, "n01"),
        (NOW, Sight.DEAD, "n01"),
        (NOW, Sight.LEFT, "n03"),
    ]


def test_whole_intervals_of_serf_are_averaged(serf: Serf) -> None:
    lines = [line for line in SERF_METRICS.splitlines() if serf.is_traffic(line)]
    assert len(lines) == 3
    assert serf.traffic(lines, unix("2026-11-29 18:26:30"), unix("2026-11-29 18:26:50")) == Traffic(
        packets_s=1.0, udp_bytes_s=108.55, tcp_frames_s=0.05, tcp_bytes_s=10.6
    )
    assert serf.traffic(lines, unix("2026-11-29 18:26:35"), unix("2026-11-29 18:26:51")) == Traffic(
        packets_s=1.2, udp_bytes_s=125.4, tcp_frames_s=0.0, tcp_bytes_s=0.0
    )
    assert serf.traffic(lines, unix("2026-11-29 18:26:35"), unix("2026-11-29 18:26:49")) is None


def test_the_command_of_serf_names_everything(serf: Serf) -> None:
    command = serf.command("n02", "127.0.0.1:12000", "127.0.0.1:12001", "lan")
    assert command[1:5] == [
        "agent",
        "-node=n02",
        "-bind=127.0.0.1:12000",
        "-rpc-addr=127.0.0.1:22500",
    ]
    assert "-retry-join=127.0.0.1:12001" in command
    assert not any("join" in part for part in serf.command("n01", "127.0.0.1:12000", "", "lan"))


@pytest.mark.parametrize("port", [LOW, HIGH - 1])
def test_the_second_port_of_serf_is_no_members_and_none_that_the_kernel_hands_out(
    serf: Serf, port: int
) -> None:
    (word,) = (part for part in serf.command("n", f"h:{port}", "", "lan") if "rpc" in part)
    assert HIGH <= int(word.rpartition(":")[2]) < 32_768  # where Linux begins


def test_the_lines_of_a_harness_are_read() -> None:
    harness = Harness()
    assert harness.read("see 1795977073217683464 suspect n03\n", NOW) == (
        1795977073217683464,
        Sight.SUSPECT,
        "n03",
    )
    for line in (
        "",
        "see",
        "see x dead n1",
        "see 5 gone n1",
        "see 5 dead",
        "error: no",
        "see 5 dead a b",
    ):
        assert harness.read(line, NOW) is None


def test_the_counters_of_a_harness_become_rates() -> None:
    harness = Harness()
    lines = ["traffic 10 1000 1 500\n", "traffic 30 2600 2 500\n"]
    assert all(map(harness.is_traffic, lines))
    assert harness.traffic(lines, 100.0, 110.0) == Traffic(
        packets_s=2.0, udp_bytes_s=160.0, tcp_frames_s=0.1, tcp_bytes_s=0.0
    )
    assert harness.traffic(["traffic 0 - - -", "traffic 20 - - -"], 100.0, 110.0) == Traffic(
        packets_s=2.0
    )
    assert harness.traffic(lines[:1], 100.0, 110.0) is None
    assert not harness.is_traffic("traffic jam")


def test_the_commands_of_the_harnesses(tmp_path: Path) -> None:
    assert Memberlist(tmp_path / "node", "1").command("n1", "h:1", "h:2", "lan") == [
        str(tmp_path / "node"),
        "lan",
        "n1",
        "h:1",
        "h:2",
    ]
    kinship = Kinship("python", tmp_path / "node.py", "1")
    assert kinship.command("n1", "h:1", "", "wan") == [
        "python",
        str(tmp_path / "node.py"),
        "wan",
        "n1",
        "h:1",
    ]


def event(kind: str, member: str = "n2", observer: str = "n1") -> dict[str, object]:
    return {"at_ns": 5, "observer": observer, "kind": kind, "member": member, "state": ""}


@pytest.mark.parametrize(
    ("kind", "sight"),
    [
        ("join", Sight.ALIVE),
        ("return", Sight.ALIVE),
        ("refute", Sight.ALIVE),
        ("suspect", Sight.SUSPECT),
        ("dead", Sight.DEAD),
        ("leave", Sight.LEFT),
    ],
)
def test_events_of_mesh_are_read(kind: str, sight: Sight) -> None:
    assert sighting_of(event(kind)) == Sighting(5, "n1", sight, "n2")


@pytest.mark.parametrize("kind", ["found", "enter", "task", "warn", "update", "seek", "conflict"])
def test_other_events_of_mesh_say_nothing_about_life(kind: str) -> None:
    assert sighting_of(event(kind)) is None


def test_what_a_node_says_of_itself_is_no_sighting() -> None:
    assert sighting_of(event("refute", member="n1")) is None
    assert sighting_of(event("suspect", member="")) is None


def test_the_counters_of_a_node_become_rates() -> None:
    before = {"datagrams": 10, "datagram_bytes": 400, "frames": 1, "frame_bytes": 90}
    after = {"datagrams": 30, "datagram_bytes": 1200, "frames": 2, "frame_bytes": 190}
    assert traffic_of(0.0, before, 10.0, after) == Traffic(
        packets_s=2.0, udp_bytes_s=80.0, tcp_frames_s=0.1, tcp_bytes_s=10.0
    )


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("serf", "apt-get install serf"),
        ("memberlist", "golang-github-hashicorp-memberlist-dev"),
        ("kinship", "pip install kinship"),
    ],
)
def test_a_missing_peer_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, how: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match=how):
        search.find_peers([name], tmp_path, str(tmp_path / "no-python"))


def test_an_unknown_peer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="one of serf, memberlist, kinship, found 'zookeeper'"):
        search.find_peers(["zookeeper"], tmp_path, None)
