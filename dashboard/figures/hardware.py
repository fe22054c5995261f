"""Accuracy against latency over hardware: every setting of a version that was judged, in the colour of its provider."""

from collections.abc import Callable, Sequence

from dashboard.figures import accuracies, colours, scales, theme
from dashboard.figures.figure import Figure, nothing
from dashboard.figures.theme import Json
from farm.contract.document_cells import Accuracy
from farm.rules.presenting import hardware_words
from farm.rules.presenting.hardware import Measured, fault_of
from farm.rules.presenting.tables import Column, Entry, Number, Table
from farm.rules.quality.accuracy import pareto_front
from farm.rules.wording import numbers

NAME = "hardware"
NONE = (
    "No measured setting was judged on labelled data, so there is no accuracy to draw: add an .npz of inputs and "
    "labels on the model’s page, and run again."
)
# so many points are named in the drawing itself
MOST_LABELS = 8
Address = Callable[[Measured], str]


def pareto(measured: Sequence[Measured], names: Sequence[str], address: Address) -> Figure:
    """Settings of one batch size, the one that most of them have. `names`: targets in the order of their colours."""
    judged = _drawn(measured)
    table = Table.of(
        NAME, "Accuracy and latency of each judged setting", _columns(judged, address), _by_latency(judged)
    )
    if not judged:
        return nothing(NAME, NONE, table)
    metric = accuracies.METRIC_NAMES[_accuracy(judged[0]).metric]
    front = [judged[place] for place in _front(judged)]
    targets = list(dict.fromkeys(target_of(one) for one in judged))
    fastest = min(front, key=_p50)
    return Figure(
        name=NAME,
        title=(
            f"{len(front)} of {numbers.counted(len(judged), 'setting')} on {numbers.counted(len(targets), 'target')} "
            f"{'is' if len(front) == 1 else 'are'} on the Pareto front; the fastest of them, on {target_of(fastest)}, "
            f"takes {numbers.latency(fastest.cell.p50_ms, fastest.cell.p50_ci_ms)} at {metric} "
            f"{accuracies.value(fastest.cell.accuracy)}"
        ),
        summary=(
            f"{metric} against p50 latency of {numbers.counted(len(judged), 'setting')} with {_batch(judged[0])}, one "
            "mark a target. Different hardware, side by side. The table below has every number."
        ),
        data=[
            _line(front),
            *(
                _points([one for one in judged if target_of(one) == name], name, names, judged, address)
                for name in targets
            ),
        ],
        layout=theme.layout(
            height=380,
            xaxis=theme.axis(
                f"p50 of one inference, {_batch(judged[0])}, ms", **scales.linear(scales.ends(map(_latencies, judged)))
            ),
            yaxis=theme.axis(
                metric,
                tickformat=".4~p" if _accuracy(judged[0]).higher_is_better else ".3~g",
                **scales.linear(scales.ends(map(_shares, judged)), from_zero=False),
            ),
            showlegend=len(targets) > 1,
        ),
        table=table,
        note="Whiskers: 95 % intervals. Dotted: the Pareto front, over all targets.",
    )


def _drawn(measured: Sequence[Measured]) -> list[Measured]:
    """Those that may be recommended and were judged, of one recipe and one batch: what most of them have."""
    known = [one for one in measured if fault_of(one.cell) is None and one.cell.accuracy is not None]
    known = [one for one in known if _accuracy(one).value is not None]
    recipes = [_accuracy(one).recipe for one in known]
    usual = max(recipes, key=recipes.count, default="")
    known = [one for one in known if _accuracy(one).recipe == usual]
    batches = [one.cell.batch for one in known]
    batch = max(batches, key=batches.count, default=None)
    return [one for one in known if one.cell.batch == batch]


def _accuracy(one: Measured) -> Accuracy:
    return one.cell.accuracy or Accuracy(metric="top1")


def _p50(one: Measured) -> float:
    return one.cell.p50_ms or 0.0


def _value(one: Measured) -> float:
    return _accuracy(one).value or 0.0


def _front(judged: Sequence[Measured]) -> list[int]:
    sign = 1.0 if _accuracy(judged[0]).higher_is_better else -1.0
    return pareto_front([(_p50(one), sign * _value(one)) for one in judged])


def _batch(one: Measured) -> str:
    return f"batch {one.cell.batch}" if one.cell.batch is not None else "no batch"


def target_of(one: Measured) -> str:
    """The target of a setting as one says it: a node with its tag."""
    return f"{one.node} ({one.tag})"


def _line(front: Sequence[Measured]) -> Json:
    """The front as steps: what one gives up for speed."""
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [_p50(one) for one in front],
        "y": [_value(one) for one in front],
        "line": {"color": theme.SOFT, "width": 1.5, "dash": "dot", "shape": "hv"},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _points(
    own: Sequence[Measured], name: str, names: Sequence[str], whole: Sequence[Measured], address: Address
) -> Json:
    place = names.index(name) if name in names else len(names)
    return {
        "type": "scatter",
        "name": name,
        "mode": "markers+text" if len(whole) <= MOST_LABELS else "markers",
        "x": [_p50(one) for one in own],
        "y": [_value(one) for one in own],
        "error_x": theme.whiskers(
            [_p50(one) for one in own], [_latencies(one) for one in own], theme.SOFT, thickness=1
        ),
        "error_y": theme.whiskers([_value(one) for one in own], [_shares(one) for one in own], theme.SOFT, thickness=1),
        "text": [one.cell.precision for one in own],
        "textposition": "top center",
        "textfont": {"size": 12, "color": theme.INK},
        "marker": {
            "color": _colour(own[0], place, whole),
            "symbol": theme.MARKS[place % len(theme.MARKS)],
            "size": 10,
            "line": {"width": 1, "color": theme.INK},
        },
        "customdata": [[address(one), _words(one)] for one in own],
        "hovertemplate": "%{customdata[1]}<extra></extra>",
        "cliponaxis": False,
    }


def _colour(one: Measured, place: int, whole: Sequence[Measured]) -> str:
    """A provider's own colour where targets differ in it, as on every page; else one by the target's place."""
    if len({each.cell.provider for each in whole}) > 1:
        return colours.provider(one.cell.provider)
    return f"@series-{place + 1}" if place < theme.SLOTS else theme.OTHER


def _words(one: Measured) -> str:
    cell = one.cell
    return (
        f"{target_of(one)}<br>{hardware_words.setting(one)}<br>{numbers.latency(cell.p50_ms, cell.p50_ci_ms)}<br>"
        f"{accuracies.value(cell.accuracy)} ({accuracies.interval(cell.accuracy)})"
    )


def _latencies(one: Measured) -> tuple[float, float]:
    return one.cell.p50_ci_ms or (_p50(one), _p50(one))


def _shares(one: Measured) -> tuple[float, float]:
    low, high = _accuracy(one).ci_low, _accuracy(one).ci_high
    return (_value(one), _value(one)) if low is None or high is None else (low, high)


def _by_latency(judged: Sequence[Measured]) -> list[Measured]:
    return sorted(judged, key=_p50)


def _columns(judged: Sequence[Measured], address: Address) -> tuple[Column[Measured], ...]:
    front = {id(judged[place]) for place in _front(judged)} if judged else set()
    return (
        Column("Target", lambda one: Entry(target_of(one))),
        Column("Setting", lambda one: Entry(hardware_words.setting(one), href=address(one))),
        Number(
            "p50, ms", lambda one: Entry(numbers.milliseconds(one.cell.p50_ms, one.cell.p50_ci_ms), one.cell.p50_ms)
        ),
        Number("accuracy", lambda one: accuracies.entry(one.cell), note="with its 95 % interval"),
        Column(
            "Pareto front", lambda one: Entry("on the front" if id(one) in front else "", int(id(one) not in front))
        ),
    )
