"""Nodes that are asked for their status while they are measured: one that does not answer is no answer left out."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from mesh.bench.contestant import BenchError
from mesh.bench.tasks import _Run


def test_node_that_answers_no_status_any_more_is_a_failure_and_not_one_figure_less(
    tmp_path: Path,
) -> None:
    run = object.__new__(_Run)
    nodes = SimpleNamespace(members=["n1"], data=lambda _name: tmp_path)
    run._nodes = nodes  # type: ignore[assignment]  # no node runs there
    others = threading.active_count()

    def watch() -> None:
        with run._watched():
            while threading.active_count() > others:
                pass

    with pytest.raises(BenchError, match="n1 is expected to tell its status"):
        watch()
