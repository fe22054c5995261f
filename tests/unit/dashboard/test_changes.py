"""What changed since a visit."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

from dashboard.reading import alerts

BEGAN = datetime(2026, 11, 22, 9, 0, tzinfo=UTC)


def test_a_run_without_a_moment_of_its_end_stands_where_it_began() -> None:
    run = SimpleNamespace(
        pk=3, version="encoder v1", headline="", sentence="", outcome="cancelled", state="finished", finished_at=None,
        created_at=BEGAN,
    )  # fmt: skip
    later = alerts.of_release("onnxruntime", 1, "1.31.1", BEGAN.replace(hour=10))
    listed = alerts.newest_first([alerts.of_run(cast(Any, run)), later])
    assert [change.at.hour for change in listed] == [10, 9]
