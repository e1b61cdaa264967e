"""What is typed: read strictly, and refused with the way to write it."""

from __future__ import annotations

import re
from argparse import Namespace
from pathlib import Path

import pytest

from mesh.cli import main as program
from mesh.cli.arguments import (
    amount,
    data_dir,
    data_dirs,
    decimal,
    distinct,
    network_address,
    pair,
    whole_number,
)
from mesh.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "expected"), [("a=b", ("a", "b")), ("a=", ("a", "")), ("a=b=c", ("a", "b=c"))]
)
def test_pair_is_split_at_the_first_equals_sign(text: str, expected: tuple[str, str]) -> None:
    assert pair("--label")(text) == expected


@pytest.mark.parametrize("text", ["gpu", ""])
def test_label_without_equals_sign_says_how_to_write_it(text: str) -> None:
    with pytest.raises(
        ConfigError, match=r"--label expects KEY=VALUE, found .*; write --label \w+="
    ):
        pair("--label")(text)


def test_amount_is_a_key_and_a_whole_number() -> None:
    assert amount("--need")("gpu=2") == ("gpu", 2)
    for text in ("gpu=two", "gpu=-1", "gpu=", f"gpu={1 << 48}"):
        with pytest.raises(ConfigError, match="--need expects KEY=NUMBER"):
            amount("--need")(text)


def test_one_key_given_twice_is_refused() -> None:
    assert distinct("--env", [("A", "1"), ("B", "2")]) == {"A": "1", "B": "2"}
    with pytest.raises(ConfigError, match=r"--env expects each key once, found 'A' twice"):
        distinct("--env", [("A", "1"), ("A", "2")])


def test_numbers_stay_within_their_range() -> None:
    assert whole_number("--slots", 0, 9)("9") == 9
    assert decimal("--loss", 0, 1)("0.5") == 0.5
    for text in ("10", "-1", "1.5", "x", "", "²", "9" * 5000):
        with pytest.raises(ConfigError, match="--slots expects a whole number from 0 to 9"):
            whole_number("--slots", 0, 9)(text)
    for text in ("1.1", "nan", "x"):
        with pytest.raises(ConfigError, match="--loss expects a number from 0 to 1"):
            decimal("--loss", 0, 1)(text)


@pytest.mark.parametrize(
    "text", ["127.0.0.1:7946", "[::1]:80", "host.example", "host-1:1", "7host"]
)
def test_good_addresses_are_left_as_they_were_written(text: str) -> None:
    assert network_address("SEED")(text) == text


@pytest.mark.parametrize(
    "text", ["host:port", "host:70000", "[::1", "a b:1", "", ":7946", "http://host:80", "host:0"]
)
def test_bad_seed_says_what_was_found_and_how_to_write_it(text: str) -> None:
    with pytest.raises(ConfigError, match=r"SEED: .*expected.*(write |--bind only)"):
        network_address("SEED")(text)


def test_port_zero_is_for_binding_only() -> None:
    assert network_address("--bind", is_bind=True)("127.0.0.1:0") == "127.0.0.1:0"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("frobnicate", r"mesh: a command is one of join, .*; found 'frobnicate'; see mesh --help"),
        ("sumbit -- true", r"mesh: there is no command 'sumbit': did you mean mesh submit\? .*"),
        ("ps", r"mesh: there is no command 'ps': did you mean mesh tasks\? see mesh --help"),
        ("help me", r"mesh: a command is one of .*; found 'me'; see mesh --help"),
        ("members --colour", r"mesh: mesh members has no option --colour; see mesh members --help"),
        ("members all", r"mesh: mesh members takes no argument 'all'; see mesh members --help"),
        ("members --JSON", r"mesh: .* no option --JSON: did you mean --json\? see .*"),
        ("--json members", r"mesh: --json stands before the command: .* mesh members --json"),
        ("submit echo hi", r"mesh: the command goes after --: mesh submit -- echo hi"),
        ("submit --wait ls -l", r"mesh: the command goes after --: mesh submit --wait -- ls -l"),
        (
            "submit --lable a=b -- true",
            r"mesh: .*--lable: did you mean --label\? see mesh submit .*",
        ),
        ("join --seed h:1", r"mesh: seeds are plain arguments: mesh join h:1"),
        ("join --name n --seeds=h:1,h:2", r"mesh: seeds are .*: mesh join --name n h:1 h:2"),
        ("join --bind 7955", r"mesh: --bind: HOST:PORT .*, found '7955'; write 127\.0\.0\.1:7955"),
        ("join :7955", r"mesh: SEED: HOST:PORT .*, found ':7955'; write 127\.0\.0\.1:7955"),
        ("join --label =x", r"mesh: --label: a key is missing before '=' .*; write --label KEY=x"),
        ("join --offer gpu", r"mesh: --offer expects KEY=NUMBER, found 'gpu'; write --offer gpu=1"),
        ("submit", r"mesh: a command is expected after --, found none; write .*"),
        ("submit --label gpu -- true", r"mesh: --label expects KEY=VALUE, found 'gpu'; write .*"),
        ("submit --need gpu=x -- true", r"mesh: --need expects KEY=NUMBER .*"),
        ("join --label gpu", r"mesh: --label expects KEY=VALUE, found 'gpu'; write .*"),
        ("join --slots many", r"mesh: --slots expects a whole number .*, found 'many'"),
        ("join --bind nowhere:x", r"mesh: --bind: a port .*, found 'nowhere:x'; write .*"),
        ("join host:99999", r"mesh: SEED: a port .*, found 'host:99999'; write .*"),
        ("join --profile fast", r"mesh: a profile is one of local, lan, wan, found 'fast'.*"),
        ("join --evidence some", r"mesh: evidence is one of all, none, found 'some'.*"),
        ("sim --seeds 9..1", r"mesh: --seeds expects FIRST..LAST, found '9..1'; write .*"),
        ("demo /nowhere/at/all", r"mesh: DIR is a directory .* found none at '/nowhere/at/all'"),
    ],
)
def test_wrong_usage_is_one_line_on_stderr_and_exit_code_2(
    line: str, found: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert program.main(line.split()) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert re.fullmatch(found, said.err.rstrip("\n")), said.err


def test_help_and_version_go_to_stdout_with_exit_code_0(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for line in ("--help", "--version", "-V", "join --help", "submit --help", "help", "help sim"):
        assert program.main(line.split()) == 0
        said = capsys.readouterr()
        assert said.out
        assert said.err == ""


def test_mesh_alone_shows_its_help_as_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main([]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("usage: mesh")


def test_no_node_on_this_host_is_exit_code_3(
    tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path_factory.mktemp("none")
    for line in ("members", "events", "status", "tasks", "task x", "cancel x", "leave"):
        assert program.main([*line.split(), "--data", str(directory)]) == 3
        said = capsys.readouterr()
        assert said.err.startswith("mesh: ")
        assert said.err.count("\n") == 1


def test_several_data_directories_are_those_of_the_command_line_or_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MESH_DATA", "/a:/b:")
    assert data_dirs(Namespace(data=None)) == (Path("/a"), Path("/b"))
    assert data_dirs(Namespace(data=["/c", "/d:e"])) == (Path("/c"), Path("/d:e"))


def test_command_that_changes_one_node_wants_one_data_directory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MESH_DATA", "/a:/b")
    with pytest.raises(ConfigError, match=r"one data directory is expected, found 2 in .*: /a, /b"):
        data_dir(Namespace(data=None))
    assert data_dir(Namespace(data=["/c", "/d"])) == Path("/d")


def test_empty_task_id_is_refused_for_it_would_start_the_same_task_again_and_again(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert program.main(["submit", "--data", str(tmp_path), "--id", "", "--", "true"]) == 2
    said = capsys.readouterr().err
    assert "--id expects 1 to 128 characters, found none" in said
    assert "leave --id out for a fresh id" in said


def test_task_id_that_is_too_long_is_refused_before_a_node_is_asked(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    long = "x" * 129
    assert program.main(["submit", "--data", str(tmp_path), "--id", long, "--", "true"]) == 2
    assert "--id expects 1 to 128 characters, found 129: shorten it" in capsys.readouterr().err


def test_what_is_complained_of_moves_nobodys_cursor(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    strange = tmp_path / "a\x1b[2J\u202eb"
    assert program.main(["submit", "--data", str(strange), "--", "true"]) == 3
    assert f"{tmp_path}/a?[2J?b" in capsys.readouterr().err
