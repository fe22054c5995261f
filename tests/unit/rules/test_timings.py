"""Raw timings as a table."""

from farm.contract.reports import ArmSample, RoundReport, Sample
from farm.rules.judging.evidence import Evidence
from farm.rules.judging.summaries import pack_timings
from farm.rules.reporting import timings


def sample(*nanoseconds: int, n: int | None = None) -> Sample:
    times = [one / 1e6 for one in nanoseconds]
    return Sample(
        p50_ms=sorted(times)[len(times) // 2],
        mean_ms=sum(times) / len(times),
        std_ms=0.0,
        min_ms=min(times),
        max_ms=max(times),
        n=n or len(times),
        timings=pack_timings(nanoseconds),
    )


def rounds(*samples: Sample | None) -> Evidence:
    return Evidence.of(
        RoundReport(round=number, samples=(ArmSample(arm=0, position=0, sample=one), ArmSample(arm=1, position=1)))
        for number, one in enumerate(samples)
    )


def test_every_timing_of_an_arm_is_a_line_by_round() -> None:
    lines = "".join(timings.format_csv_lines(rounds(sample(1_000_001, 1_000_003), sample(999_999)), 0))
    assert lines == "round,inference,ns\n0,0,1000001\n0,1,1000003\n1,0,999999\n"


def test_thinned_timings_keep_the_numbers_of_their_inferences() -> None:
    lines = "".join(timings.format_csv_lines(rounds(sample(5, 6, n=6)), 0))
    assert lines.splitlines()[1:] == ["0,0,5", "0,3,6"]


def test_an_arm_without_a_sample_has_the_head_alone() -> None:
    assert "".join(timings.format_csv_lines(rounds(None), 0)) == "round,inference,ns\n"
    assert "".join(timings.format_csv_lines(rounds(sample(5)), 1)) == "round,inference,ns\n"
