"""Summing ONNX Runtime's profile."""

from typing import Any

from worker.runner import profile


def event(name: str, start: int, spent: int, *, index: int = 0, op: str = "Op", thread: int = 1) -> dict[str, Any]:
    args = {"op_name": op, "provider": "P", "node_index": str(index)}
    return {"cat": "Node", "name": f"{name}_kernel_time", "ts": start, "dur": spent, "tid": thread, "args": args}


def run(start: int, spent: int) -> dict[str, Any]:
    return {"cat": "Session", "name": "model_run", "ts": start, "dur": spent, "tid": 1}


def totals(summary: profile.Summary) -> dict[tuple[str, ...], tuple[int, int]]:
    """Time summed over all runs, and calls."""
    return {(*key[0], key[1]): (sum(total.by_run.values()), total.calls) for key, total in summary.nodes.items()}


def rows_of(events: list[Any]) -> dict[str, float]:
    return {row["name"]: row["time_us"] for row in profile.make_rows(profile.summarise(events, skip_runs=0))}


def inferences(times: list[int]) -> list[Any]:
    """A run an entry: node `a` takes 40 µs, `b` what is given, and 10 µs of each run are in neither."""
    found: list[Any] = []
    for at, spent in enumerate(times):
        start = 100_000 * at
        found += [run(start, spent + 50), event("a", start + 5, 40), event("b", start + 45, spent)]
    return found


def test_one_inference_that_was_preempted_shifts_no_operator() -> None:
    quiet, preempted = inferences([20] * 10), inferences([20] * 9 + [9_500])
    assert rows_of(quiet) == {"a": 40.0, "b": 20.0}
    assert rows_of(preempted)["a"] == 40.0
    assert abs(rows_of(preempted)["b"] - 20.0) < 0.1
    assert abs(profile.summarise(preempted, skip_runs=0).run_us - 70.0) < 0.1


def test_the_times_of_operators_add_up_to_an_inference_but_for_what_no_operator_has() -> None:
    found = profile.summarise(inferences([20] * 10), skip_runs=0)
    assert found.run_us - sum(rows_of(inferences([20] * 10)).values()) == 10.0


def test_a_node_below_the_profilers_resolution_still_takes_time() -> None:
    events = [e for at in range(10) for e in (run(1000 * at, 9), event("a", 1000 * at + 1, 1 if at < 4 else 0))]
    assert 0.2 < rows_of(events)["a"] < 0.5


def test_runs_that_warm_up_are_left_out() -> None:
    events = [run(0, 100), event("a", 10, 90), run(200, 100), event("a", 210, 5), run(400, 100), event("a", 410, 7)]
    summary = profile.summarise(events, skip_runs=1)
    assert summary.runs == 2
    assert totals(summary) == {("a",): (12, 2)}


def test_control_flow_is_given_its_own_time_without_its_children() -> None:
    events = [run(0, 100), event("Loop", 10, 50), event("a", 20, 10), event("a", 35, 5), event("b", 70, 3)]
    assert totals(profile.summarise(events, skip_runs=0)) == {
        ("Loop",): (35, 1),
        ("Loop", "a"): (15, 2),
        ("b",): (3, 1),
    }


def test_neighbours_that_share_a_microsecond_are_no_parent_and_child() -> None:
    events = [run(0, 100), event("a", 10, 5), event("b", 15, 5), event("c", 15, 0)]
    summary = profile.summarise(events, skip_runs=0)
    assert {key[0] for key in summary.nodes} <= {(), ("b",)}
    assert summary.nodes[((), "b", "Op", "P", 0)].compute_time_us(1) == 5


def test_fence_events_of_older_runtimes_are_no_nodes() -> None:
    fence = {**event("a", 12, 1), "name": "a_fence_before"}
    assert totals(profile.summarise([run(0, 50), fence, event("a", 13, 4)], skip_runs=0)) == {("a",): (4, 1)}


def test_threads_of_a_parallel_session_do_not_nest_in_each_other() -> None:
    events = [run(0, 100), event("a", 10, 50), event("b", 20, 10, thread=2)]
    assert totals(profile.summarise(events, skip_runs=0)) == {("a",): (50, 1), ("b",): (10, 1)}


def test_rows_beyond_the_limit_become_one_sum_a_provider() -> None:
    many = profile.MAX_NODES + 3
    events = [run(0, 10 * many), *(event(f"n{i}", 10 * i, 2) for i in range(many))]
    rows = profile.make_rows(profile.summarise(events, skip_runs=0))
    assert len(rows) == profile.MAX_NODES + 1
    assert rows[-1]["time_us"] == 6
    assert rows[-1]["name"] == ""


def test_runs_that_filled_the_caches_again_after_others_turns_do_not_count() -> None:
    times = [500, 20, 20, 500, 20]
    found = profile.summarise(inferences(times), skip_runs=1, cold_runs={3})
    assert found.runs == 3
    assert {row["name"]: row["time_us"] for row in profile.make_rows(found)}["b"] == 20.0


def with_memory(told: dict[str, Any], size: str) -> dict[str, Any]:
    return {**told, "args": {**told["args"], profile.MEMORY: size}}


def memory_of(events: list[Any], **given: Any) -> dict[str, object]:
    rows = profile.make_rows(profile.summarise(events, **given))
    return {str(row["name"]): row["memory_bytes"] for row in rows}


def test_memory_is_told_by_the_first_inference_though_it_warms_up() -> None:
    """Later ones of the same shapes allocate what lies between nodes as one piece, in no node."""
    sizes = ["4096", "0", "0"]
    events = [
        e for at, size in enumerate(sizes) for e in (run(100 * at, 50), with_memory(event("a", 100 * at, 40), size))
    ]
    assert memory_of(events, skip_runs=2) == {"a": 4096}
    assert memory_of(events, skip_runs=2, cold_runs={0}) == {"a": 0}


def test_a_profile_that_says_nothing_of_memory_has_none_and_a_word_that_is_no_size_is_none() -> None:
    events = [
        run(0, 100),
        event("a", 0, 10),
        with_memory(event("b", 20, 10), "-256"),
        with_memory(event("c", 40, 10), "much"),
        with_memory(event("d", 60, 10), "9" * 40),
        with_memory(event("e", 80, 10), "9" * 5000),
    ]
    known = {"a": None, "b": 0, "c": None, "d": profile.MAX_BYTES, "e": None}
    assert memory_of(events, skip_runs=0) == known
