"""The metrics of scenarios other than `single`: of `generate`, `fresh` and `load`."""

from functools import partial
from statistics import median

from farm.rules.cells.metric import RATE, SIZE, TIME, Judging, Metric

# smaller changes, in bytes, come from single memory pages and are no growth
MIN_GROWTH = 64.0 * 1024
# growth of the time per token that does not matter, in ms over 1,000 positions
MIN_TOKEN_GROWTH = 0.05

# the growth of memory, and answers that differ from those of the same inputs alone
GROWTH, DIFFERING = "growth_bytes_per_1000", "differing_answers"
MAX_RATE, GOODPUT = "max_rate_per_s", "goodput_per_s"
# of `generate`: the time per token after the first one, the time until the first one, and tokens per second
TPOT, TTFT, TOKENS_RATE = "tpot_ms", "ttft_ms", "tokens_per_s"
OUTSIDE, OUTSIDE_CPU = "outside_ms", "outside_cpu_ms"
TTFT_CPU, TPOT_GROWTH, DIFFERING_ROWS = "ttft_cpu_ms", "tpot_growth_ms_per_1000", "differing_rows"
PERPLEXITY = "perplexity"

# a metric that is the median over launches, with the interval of their spread
_launch_metric = partial(Metric, summary=median, noise="launches")
OF_SCENARIOS: tuple[Metric, ...] = (
    _launch_metric(
        TPOT,
        "time per token",
        "ms",
        "less",
        reads="latency",
        note="the graph alone, for each token behind the first: the p50 above is of the same times",
        judging=Judging(TIME),
    ),
    _launch_metric(
        TTFT,
        "time to the first token",
        "ms",
        "less",
        reads="latency",
        note="the graph over the prompt, and choosing the token",
        judging=Judging(TIME, alerts_as="ttft"),
    ),
    _launch_metric(
        TTFT_CPU,
        "processor time to the first token",
        "ms",
        "less",
        reads="latency",
        note="the thread's own time over the prompt, without the turns that other programs took",
        judging=Judging(TIME),
    ),
    _launch_metric(
        TOKENS_RATE,
        "tokens",
        "tokens/s",
        "more",
        note="by the clock, prompt and choosing included",
        judging=Judging(RATE),
    ),
    _launch_metric("prefill_tokens_per_s", "prompt", "tokens/s", "more", judging=Judging(RATE)),
    _launch_metric(
        OUTSIDE,
        "outside the graph",
        "ms",
        "less",
        note="choosing the token, for each token behind the first",
        judging=Judging(TIME, margin=0.1),
    ),
    _launch_metric(
        OUTSIDE_CPU,
        "outside the graph, processor time",
        "ms",
        "less",
        note="of the thread that chooses the token",
        judging=Judging(TIME, margin=0.1),
    ),
    _launch_metric(
        TPOT_GROWTH,
        "growth of the time per token",
        "ms",
        "less",
        note="over 1,000 positions, from the first to the last quarter of the new tokens",
        judging=Judging(TIME, by="difference", margin=MIN_TOKEN_GROWTH),
    ),
    Metric(
        "cache_bytes",
        "cache",
        "bytes",
        "less",
        summary=max,
        reads="memory",
        note="keys and values of the last step",
        judging=Judging(SIZE, by="repeat", margin=1.0),
    ),
    Metric(
        PERPLEXITY,
        "perplexity",
        "",
        "less",
        summary=median,
        note="of the text that was given, by its token ids",
        judging=Judging(RATE, by="repeat", margin=0.01, is_share=True),
    ),
    _launch_metric(
        GROWTH,
        "growth per 1,000 inferences",
        "bytes",
        "less",
        reads="memory",
        note="of resident memory, once it has settled",
        judging=Judging(SIZE, by="difference", margin=MIN_GROWTH, is_told=True, alerts_as="growth"),
    ),
    _launch_metric(
        MAX_RATE,
        "highest rate",
        "requests/s",
        "more",
        note="whose p99 keeps the bound",
        judging=Judging(RATE, margin=0.05, is_told=True),
    ),
    _launch_metric(
        GOODPUT,
        "goodput",
        "requests/s",
        "more",
        note="requests that kept the bound",
        judging=Judging(RATE, margin=0.05),
    ),
    Metric(
        DIFFERING,
        "answers that differ",
        "",
        "less",
        summary=max,
        reads="count",
        note="sets of inputs answered otherwise than alone",
    ),
    Metric(
        DIFFERING_ROWS,
        "rows that differ",
        "",
        "less",
        summary=max,
        reads="count",
        note="of the first and last row of a batch: those with other tokens than alone",
    ),
)
