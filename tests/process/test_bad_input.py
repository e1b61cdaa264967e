"""Every kind of wrong input to a command: one line on stderr, the exit code, and no running node disturbed."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

import pytest

from mesh.client import Client
from mesh.errors import MeshUnreachable
from mesh.fleet.clearing import wait_until
from mesh.fleet.fleet import Fleet, NodeProcess
from mesh.wire.frames import FrameKind, FrameReader, exchange_frame, split_exchange
from mesh.wire.packet import FRAME_BYTES_MAX, HEADER, MAGIC, VERSIONS

Mesh: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]
Serve: TypeAlias = Callable[[socket.socket], None]


@pytest.fixture(scope="module")
def node(shared_fleet: Fleet) -> NodeProcess:
    """A node that nothing here may disturb."""
    return shared_fleet.start("steady")


@pytest.fixture(autouse=True)
def is_undisturbed(node: NodeProcess) -> Iterator[None]:
    """After every test: the same process, still a member, alone, and it still works."""
    before = node.call("status")
    yield
    after = node.call("status")
    for key in ("pid", "phase", "mesh_id", "node_id", "boot", "incarnation", "address"):
        assert after[key] == before[key]
    assert [row["name"] for row in node.call("members")] == ["steady"]
    with node.client() as client:
        stream = client.stream("wait", id=client.call("submit", argv=["echo", "fine"])["id"])
        assert b"".join(item["data"] for item in stream) == b"fine\n"


def assert_refused(found: subprocess.CompletedProcess[str], code: int, pattern: str) -> None:
    """Check the exit code and that the last line, the only one but for the log's stamped ones, fits."""
    assert found.stdout == ""
    lines = found.stderr.splitlines()
    plain = [line for line in lines if not re.match(r"\d\d:\d\d:\d\d mesh: ", line)]
    assert found.returncode == code, found.stderr
    assert len(plain) <= 1, found.stderr
    said = plain[0] if plain else lines[-1].partition(" ")[2]
    assert re.fullmatch(rf"mesh: (?:(?:\S+ )?stopped: )?{pattern}", said), said


@pytest.mark.parametrize(
    ("arguments", "pattern"),
    [
        (["nowhere:port"], r"SEED: a port from 0 to 65535 is expected .*'nowhere:port'; write .*"),
        (["--bind", "127.0.0.1:70000"], r"--bind: a port from 0 to 65535 .*'127.0.0.1:70000'.*"),
        (["--bind", "203.0.113.9:0"], r"--bind .*203\.0\.113\.9.*loopback.*"),
        (["--bind", "no.such.host.invalid:0"], r"--bind .*'no\.such\.host\.invalid'.*"),
        (
            ["--advertise", "192.0.2.7:21115"],
            r"--advertise .*without a key only loopback.*192\.0\.2\.7.*",
        ),
        (["192.0.2.7:21115"], r"seed 192\.0\.2\.7:21115: without a key only loopback.*"),
        (["--found", "--expect", "3", "127.0.0.1:1"], r"--found .* --expect 3 .*one of the two.*"),
        (["--advertise", "[::1"], r"--advertise: an IPv6 address is expected .*"),
        (["--profile", "fast"], r"a profile is one of local, lan, wan, found 'fast'.*"),
        (["--label", "gpu"], r"--label expects KEY=VALUE, found 'gpu'; write --label gpu=VALUE"),
        (["--label", "a=1", "--label", "a=2"], r"--label expects each key once, found 'a' twice.*"),
        (["--slots", "many"], r"--slots expects a whole number from 0 to \d+, found 'many'"),
        (["--name", "x" * 65], r".*name.*64 characters.*"),
        (["--unknown"], r"mesh join has no option --unknown; see mesh join --help"),
    ],
)
def test_wrong_setting_is_one_line_and_exit_code_2(
    mesh: Mesh, tmp_path: Path, arguments: list[str], pattern: str
) -> None:
    bind = [] if "--bind" in arguments else ["--bind", "127.0.0.1:0"]
    found = mesh("join", "--headless", "--data", str(tmp_path / "d"), *bind, *arguments)
    assert_refused(found, 2, pattern)


def test_command_that_does_not_exist(mesh: Mesh) -> None:
    assert_refused(mesh("frobnicate"), 2, r"a command is one of join, .*found 'frobnicate'.*")


@pytest.mark.parametrize("kind", [socket.SOCK_DGRAM, socket.SOCK_STREAM])
def test_port_in_use(mesh: Mesh, tmp_path: Path, kind: socket.SocketKind) -> None:
    with socket.socket(socket.AF_INET, kind) as taken:
        taken.bind(("127.0.0.1", 0))
        if kind == socket.SOCK_STREAM:
            taken.listen()
        port = taken.getsockname()[1]
        found = mesh("join", "--headless", "--data", str(tmp_path), "--bind", f"127.0.0.1:{port}")
    assert_refused(found, 1, rf"\w+ port {port} on 127\.0\.0\.1 is in use .*--bind.*")


def join_in(mesh: Mesh, directory: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return mesh("join", "--headless", "--bind", "127.0.0.1:0", "--data", str(directory), *more)


def test_data_directory_with_other_things_in_it(mesh: Mesh, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("chapter one")
    assert_refused(join_in(mesh, tmp_path), 1, r".* no data directory of Mesh.*thesis\.txt.*--data")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_data_directory_that_is_a_file(mesh: Mesh, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    assert_refused(join_in(mesh, file), 1, r"a directory .* expected, found .*file: .*--data")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_data_directory_that_cannot_be_read(mesh: Mesh, tmp_path: Path) -> None:
    tmp_path.chmod(0)
    found = join_in(mesh, tmp_path)
    tmp_path.chmod(0o700)
    assert_refused(found, 1, r"a directory .* expected, found .*Permission denied.*--data")


def test_data_directory_whose_identity_cannot_be_read(mesh: Mesh, tmp_path: Path) -> None:
    (tmp_path / "identity").mkdir()
    assert_refused(join_in(mesh, tmp_path), 1, r".*identity.*expected.*found.*")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 1}', "\0" * 100, "[" * 5000])
def test_data_directory_with_a_damaged_identity(mesh: Mesh, tmp_path: Path, text: str) -> None:
    (tmp_path / "identity").write_text(text)
    assert_refused(join_in(mesh, tmp_path), 1, r".*identity is damaged: .* expected, found .*")
    assert (tmp_path / "identity").read_text() == text


def test_data_directory_of_a_newer_release(mesh: Mesh, tmp_path: Path) -> None:
    (tmp_path / "identity").write_text('{"format": 99}')
    assert_refused(join_in(mesh, tmp_path), 1, r".*identity has format 99, .*newer.*upgrade.*")


def test_data_directory_in_use(mesh: Mesh, node: NodeProcess) -> None:
    pattern = rf".* is in use by process {node.pid}: .*--data"
    assert_refused(join_in(mesh, node.data), 1, pattern)


def test_no_node_in_the_data_directory(mesh: Mesh, tmp_path: Path) -> None:
    for command in ("members", "events", "status", "tasks", "leave"):
        found = mesh(command, "--data", str(tmp_path))
        assert_refused(found, 3, r"a node is expected in .*: none runs there; start one .*--data.*")
    found = mesh("submit", "--wait", "--data", str(tmp_path), "--", "true")
    assert_refused(found, 3, r"a node is expected in .*")


def test_task_that_nobody_knows(mesh: Mesh, node: NodeProcess) -> None:
    for command in ("task", "cancel"):
        found = mesh(command, "nobody-knows-this", "--data", str(node.data))
        assert_refused(found, 1, r".*nobody-knows-this.*")


def test_seed_that_is_not_a_mesh(mesh: Mesh, tmp_path: Path) -> None:
    def talk_http(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\nServer: other\r\n\r\n")

    with listening(talk_http) as seed:
        found = join_in(mesh, tmp_path / "d", seed, "--profile", "local")
    assert_refused(found, 1, rf"no seed is a mesh node \({seed} .*\): check the addresses")


def test_seed_of_another_mesh(fleet: Fleet, mesh: Mesh, node: NodeProcess) -> None:
    other = fleet.start("other")
    mine = other.call("status")["mesh_id"]
    assert other.stop() == 0
    status = node.call("status")
    found = join_in(mesh, other.data, status["address"], "--profile", "local")
    assert_refused(found, 1, rf"seed .*: mesh {mine} is not ours \({status['mesh_id']}\): .*")


def test_seed_that_speaks_another_version(mesh: Mesh, tmp_path: Path) -> None:
    def talk_version_99(connection: socket.socket) -> None:
        reader = FrameReader(FRAME_BYTES_MAX)
        frames: list[bytes] = []
        while not frames:
            frames = reader.feed(connection.recv(65536))
        exchange_id, _, _ = split_exchange(frames[0])
        packet = HEADER.pack(MAGIC, 99, 7, 7) + b"\x91\x63"
        connection.sendall(exchange_frame(exchange_id, FrameKind.REPLY, packet))

    with listening(talk_version_99) as seed:
        found = join_in(mesh, tmp_path / "d", seed, "--profile", "local")
    low, high = VERSIONS
    assert_refused(
        found, 1, rf"seed {seed} cannot be joined: protocol version 99 .*speaks {low} to {high}; .*"
    )


def test_name_of_a_living_member(mesh: Mesh, node: NodeProcess, tmp_path: Path) -> None:
    seed = node.call("status")["address"]
    found = join_in(mesh, tmp_path / "d", seed, "--profile", "local", "--name", "steady")
    assert_refused(found, 1, rf"the name steady is taken .* {seed}: choose another --name")


def is_member(client: Client) -> bool | None:
    try:
        return client.call("status")["phase"] == "member" or None
    except MeshUnreachable:
        return None


def test_stderr_that_is_closed_or_full_stops_no_node(fleet: Fleet) -> None:
    data = fleet.home / "quiet"
    command = [sys.executable, "-m", "mesh", "join", "--headless", "--name", "quiet"]
    with Path("/dev/full").open("wb") as full:
        process = subprocess.Popen(
            [*command, "--bind", "127.0.0.1:0", "--profile", "local", "--data", str(data)],
            stdin=subprocess.DEVNULL,
            stdout=full,
            stderr=full,
        )
    try:
        with Client(data) as client:
            wait_until(lambda: is_member(client), 10.0, lambda: AssertionError("it is no member"))
            client.call("leave", reason="test")
        assert process.wait(10.0) == 0
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


@contextmanager
def listening(serve: Serve) -> Iterator[str]:
    """Serve every TCP connection to a port, whose UDP twin swallows what comes; give its address."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as deaf,
    ):
        deaf.bind(server.getsockname())
        thread = threading.Thread(target=_serve_all, args=(server, serve), daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{server.getsockname()[1]}"
        finally:
            with suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)
            thread.join(5.0)


def _serve_all(server: socket.socket, serve: Serve) -> None:
    with suppress(OSError):
        while True:
            connection, _ = server.accept()
            with connection, suppress(OSError):
                connection.settimeout(5.0)
                serve(connection)
