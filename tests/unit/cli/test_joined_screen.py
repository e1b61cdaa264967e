"""What a node that had the screen before it says when it ends."""

from __future__ import annotations

from pathlib import Path

from mesh.cli.joined_screen import LAST_BYTES_MAX, LAST_LINES_MAX, last_lines

LEAVING = "12:00:00 mesh: SIGINT: leaving"


def test_what_follows_the_leave_is_shown(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(f"old\nnews\n{LEAVING}\nstopped\n")
    assert last_lines(log, 0) == [LEAVING, "stopped"]


def test_what_an_earlier_node_logged_is_not(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(f"{LEAVING}\n")
    start = log.stat().st_size
    with log.open("a") as file:
        file.write("broke off\n")
    assert last_lines(log, start) == ["broke off"]
    assert last_lines(log, 1 << 40) == []  # somebody emptied it meanwhile


def test_without_a_leave_there_may_be_nothing_to_tell(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("news\n")
    assert last_lines(log, 0, since_leaving=True) == []
    log.write_text(f"news\n{LEAVING}\nwarning\n")
    assert last_lines(log, 0, since_leaving=True) == [LEAVING, "warning"]


def test_log_of_years_is_not_read_whole(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("w") as file:
        file.write(f"{LEAVING} long ago\n")
        file.truncate(1 << 30)  # a gigabyte of nothing
        file.seek(0, 2)
        file.write("\n" + "\n".join(f"line {number}" for number in range(20)) + "\n")
    assert log.stat().st_size > LAST_BYTES_MAX
    assert last_lines(log, 0) == [f"line {number}" for number in range(20 - LAST_LINES_MAX, 20)]


def test_log_that_is_gone_says_nothing(tmp_path: Path) -> None:
    assert last_lines(tmp_path / "none", 0) == []
