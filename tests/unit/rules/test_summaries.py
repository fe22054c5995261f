"""Cells in numbers: medians of launches, pooled timings, and packed timings that lie."""

import base64
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.rules.comparing.signed_ranks import median_interval
from farm.rules.judging.summaries import MAX_TIMINGS, TimingsProblem, pack_timings, summarise_cell, unpack_timings
from tests.unit.rules.making import make_sample


def timed(durations_ms, **changes):
    """A sample with these very timings."""
    values = np.asarray(durations_ms)
    return make_sample(
        float(np.median(values)),
        n=len(values),
        timings=pack_timings([round(value * 1e6) for value in durations_ms]),
        mean_ms=float(values.mean()),
        std_ms=float(values.std(ddof=1)) if len(values) > 1 else 0.0,
        min_ms=float(values.min()),
        max_ms=float(values.max()),
        **changes,
    )


def test_no_samples_have_no_summary():
    assert summarise_cell([]) is None


def test_the_p50_is_the_median_of_launches_not_of_iterations():
    summary = summarise_cell([timed([1.0] * 100), timed([2.0] * 3), timed([3.0] * 3)])
    p50 = summary.launched["p50_ms"]
    assert (p50.value, p50.samples) == (2.0, [1.0, 2.0, 3.0])
    assert summary.timings == 106


@given(st.lists(st.lists(st.integers(1_000, 9_000_000), min_size=1, max_size=6), min_size=1, max_size=5))
def test_mean_spread_and_extremes_are_those_of_all_timings_pooled(launches):
    launches_ms = [[ns / 1e6 for ns in launch] for launch in launches]
    summary = summarise_cell([timed(launch) for launch in launches_ms])
    pooled = np.concatenate([np.asarray(launch) for launch in launches_ms])
    assert summary.mean_ms == pytest.approx(pooled.mean())
    extremes = [summary.launched[name].value for name in ("min_ms", "max_ms")]
    assert extremes == [pooled.min(), pooled.max()]
    if len(pooled) > 1:
        assert summary.std_ms == pytest.approx(pooled.std(ddof=1), abs=1e-9)
    else:
        assert summary.std_ms is None


@pytest.mark.parametrize(("count", "has_p90", "has_p99"), [(63, False, False), (64, True, False), (662, True, True)])
def test_percentiles_are_published_only_where_the_count_allows_them(count, has_p90, has_p99):
    summary = summarise_cell([timed(np.linspace(1.0, 2.0, count))])
    assert (summary.p90_ms is not None, summary.p99_ms is not None) == (has_p90, has_p99)


def test_throughput_is_items_per_second():
    assert summarise_cell([timed([2.0] * 3)], batch=8).throughput == 4000.0
    assert summarise_cell([timed([2.0] * 3)]).throughput == 500.0


def test_one_stream_takes_its_throughput_from_the_p50_alone():
    assert summarise_cell([timed([2.0] * 3, throughput=123.0)], batch=1).throughput == 500.0


def test_concurrent_streams_report_what_they_reached_together():
    samples = [timed([2.0] * 3, throughput=value) for value in (900.0, 1000.0, 1100.0)]
    assert summarise_cell(samples, batch=4, concurrency=2).throughput == 4000.0
    assert summarise_cell([timed([2.0] * 3)], batch=4, concurrency=2).throughput == 2000.0


def test_flags_and_counts_of_the_samples_are_kept():
    samples = [
        timed([1.0], is_stable=False),
        timed([1.0], remeasured=2),
        timed([1.0], remeasured=3, is_disturbed=True, peak_memory_bytes=7, with_copies_p50_ms=1.5),
    ]
    summary = summarise_cell(samples)
    assert not summary.is_stable
    # five were measured again, and one stayed disturbed
    assert summary.disturbed_samples == 6
    assert [summary.launched[name].value for name in ("peak_memory_bytes", "with_copies_p50_ms")] == [7, 1.5]


def test_two_groups_of_launches_are_called_bimodal():
    assert summarise_cell([timed([value]) for value in [1.0] * 5 + [1.7] * 5]).is_bimodal
    assert not summarise_cell([timed([value]) for value in np.linspace(1.0, 1.01, 10)]).is_bimodal


def test_the_interval_of_the_median_holds_it():
    low, high = median_interval([1.0, 1.1, 0.9, 1.05, 0.95, 1.02, 0.98, 1.01])
    assert low < 1.0 < high
    assert median_interval([1.0]) is None


@given(st.lists(st.integers(1, 2**40), min_size=1, max_size=50))
def test_packed_timings_unpack_to_themselves(nanoseconds):
    sample = make_sample(1.0, n=len(nanoseconds), timings=pack_timings(nanoseconds))
    assert unpack_timings(sample).tolist() == pytest.approx([value / 1e6 for value in nanoseconds])


def test_a_thinned_sample_unpacks_to_what_was_kept():
    assert len(unpack_timings(make_sample(1.0, n=1_000_000, timings=pack_timings([5] * 10)))) == 10


def packed(raw, kind="u4"):
    return f"{kind}:{base64.b64encode(zlib.compress(raw)).decode()}"


@pytest.mark.parametrize(
    ("timings", "n", "words"),
    [
        ("", 4, "kind ''"),
        ("f8:AAAA", 4, "kind 'f8' are unknown"),
        ("u4:!!!", 4, "cannot be unpacked"),
        ("u4:AAAA", 4, "cannot be unpacked"),
        (packed(b""), 4, "unpacks to 0 bytes"),
        (packed(b"\0" * 20), 4, "unpacks to 17 bytes: at most 16"),
        (packed(b"\0" * 6), 4, "unpacks to 6 bytes"),
        (packed(b"\0" * (1 << 24)), 10**12, f"at most {4 * MAX_TIMINGS}"),
    ],
)
def test_timings_that_lie_are_refused_in_one_sentence(timings, n, words):
    with pytest.raises(TimingsProblem, match=words):
        unpack_timings(make_sample(1.0).model_copy(update={"timings": timings, "n": n}))
