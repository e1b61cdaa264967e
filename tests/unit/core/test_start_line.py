"""The line that starts a node again is shown without what its hooks run."""

from __future__ import annotations

import pytest

from mesh.core.start_line import shown_line


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("mesh join --on-shortage 'call --token SECRET' host1", "mesh join --on-shortage … host1"),
        ("mesh join --health-check=SECRET 'a b'", "mesh join --health-check=… 'a b'"),
        ("mesh join --health-check '' --on-shortage '--health-check SECRET'", "mesh join --health-check … --on-shortage …"),
        ("mesh join --on-shortage --health-check --name n1", "mesh join --on-shortage … --name n1"),
        ("mesh join --name=n1  host1", "mesh join --name=n1  host1"),
        ("", ""),
    ],
)  # fmt: skip
def test_what_a_hook_runs_is_not_shown(line: str, shown: str) -> None:
    assert shown_line(line) == shown
