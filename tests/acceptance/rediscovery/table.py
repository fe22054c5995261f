"""What the rows come to: the headline, and the tables of docs/reference/published-changes.md."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from farm.rules.wording.numbers import change_interval
from tests.acceptance.rediscovery.claims import Claim, Kind
from tests.acceptance.rediscovery.rows import Row

BEGIN, END = "<!-- written by the command: begin -->", "<!-- written by the command: end -->"
HEADS = (
    "claim", "report", "releases", "it says", "judge here", "ours", "found", "first release: ours, judge's",
    "dated", "put down to", "explained", "core", "minutes", "why not",
)  # fmt: skip
SAME_HEADS = ("claim", "report", "releases", "it says", "judge here", "ours", "silent", "core", "minutes")
NUMERIC = ("core", "minutes")


def headline(claims: Sequence[Claim], rows: Mapping[str, Row]) -> str:
    """Two or three sentences: what was found among what holds here, and which pairs stayed silent."""
    published = _published(claims, rows)
    here = [row for row in published if row.holds]
    quiet = [rows[claim.name] for claim in claims if claim.kind is Kind.SAME and claim.name in rows]
    still = [row for row in quiet if row.holds]
    parts = [
        f"{sum(row.is_whole for row in here)} of {len(here)} published changes that hold on this processor were found, "
        f"dated and explained ({sum(row.is_found for row in here)} found, {sum(row.is_dated for row in here)} dated, "
        f"{sum(row.is_explained and row.is_found for row in here)} explained).",
        f"{len(published) - len(here)} of the {len(published)} published ones do not hold here.",
        f"{sum(row.is_silent for row in still)} of {len(still)} unchanged pairs stayed silent.",
    ]
    if busy := sum(not rows[claim.name].is_quiet for claim in claims if claim.name in rows):
        parts.append(f"{busy} rows are of a busy machine and are run again on the next call.")
    missing = len(claims) - sum(claim.name in rows for claim in claims)
    if missing:
        parts.append(f"{missing} claims have not been run yet.")
    if changed := len(quiet) - len(still):
        parts.append(f"{changed} pairs that are publicly unchanged changed here by the judge, and do not count.")
    return " ".join(parts)


def tables(claims: Sequence[Claim], rows: Mapping[str, Row]) -> str:
    """The headline, the misses, and every row."""
    processors = Counter(row.processor for row in rows.values())
    known = [(claim, rows[claim.name]) for claim in claims if claim.name in rows]
    published = [pair for pair in known if pair[0].kind in (Kind.SLOWER, Kind.FASTER)]
    here, gone = [p for p in published if p[1].holds], [p for p in published if not p[1].holds]
    parts = [
        f"**{headline(claims, rows)}**",
        "Processor: " + "; ".join(f"{name} ({count} rows)" for name, count in processors.most_common()) + ".",
        "### Published changes that hold here",
        _table(HEADS, [_cells(claim, row) for claim, row in sorted(here, key=lambda pair: pair[1].is_whole)]),
        "### Published changes that do not hold here",
        _table(HEADS, [_cells(claim, row) for claim, row in gone]),
        "### Unchanged pairs",
        _table(SAME_HEADS, [_same_cells(c, r) for c, r in known if c.kind is Kind.SAME]),
        "### Seen here, without a public report",
        _table(HEADS, [_cells(claim, row) for claim, row in known if claim.kind is Kind.OWN]),
    ]
    return "\n\n".join(parts)


def write_into(page: Path, text: str) -> None:
    """Put the tables between the marks of a page. Raises ValueError where it has none."""
    known = page.read_text()
    before, begin, rest = known.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{page} has no place for the tables: {BEGIN} and {END}.")
    page.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}")


def _published(claims: Sequence[Claim], rows: Mapping[str, Row]) -> list[Row]:
    kinds = (Kind.SLOWER, Kind.FASTER)
    return [rows[claim.name] for claim in claims if claim.kind in kinds and claim.name in rows]


def _cells(claim: Claim, row: Row) -> list[str]:
    since = f"{row.since or '—'}, {row.judge_since or '—'}"
    return [
        *_begin(claim, row),
        _yes(row.is_found) if row.holds else "not here",
        since,
        _yes(row.is_dated) if row.is_found else "—",
        row.operator or "—",
        _yes(row.is_explained) if row.is_found else "—",
        _share(row),
        f"{row.minutes:.1f}",
        _why(claim, row),
    ]


def _same_cells(claim: Claim, row: Row) -> list[str]:
    silent = _yes(row.is_silent) if row.holds else "changed here"
    return [*_begin(claim, row), silent, _share(row), f"{row.minutes:.1f}"]


def _begin(claim: Claim, row: Row) -> list[str]:
    number = f"#{claim.number}" if claim.number else "release notes"
    report = "none" if claim.kind is Kind.OWN else f"[{number}]({claim.url})"
    return [claim.name, report, f"{claim.before} → {claim.after}", claim.says or "—", _judged(row), _ours(row)]


def _judged(row: Row) -> str:
    if row.judge_ratio is None:
        return "—"
    return f"{_size(row.judge_ratio)}, {row.judge_alike} rounds"


def _ours(row: Row) -> str:
    if row.ratio is None or row.low is None or row.high is None:
        return row.verdict or "—"
    interval = change_interval(row.low, row.high, ratio=row.ratio)
    source = ", processor time" if row.verdict_from == "processor" else ""
    return f"{row.verdict} {_size(row.ratio)} ({interval}, {row.rounds} rounds{source})"


def _size(ratio: float) -> str:
    """`+24 %`, or `×3.8` from double on."""
    if ratio >= 2.0 or ratio <= 0.5:
        return f"×{ratio:.2g}" if ratio >= 2.0 else f"×1/{1.0 / ratio:.2g}"
    return f"{100.0 * (ratio - 1.0):+.1f} %"


def _why(claim: Claim, row: Row) -> str:
    """Why a claim that holds here is not whole."""
    if not row.holds:
        return row.why if row.judge_ratio is None else ""
    parts = [row.why] if row.why else []
    if row.is_found and not row.is_dated and row.since and row.since == row.judge_since:
        parts.append(f"The judge has it in {row.since} too, which the report does not say.")
    if row.is_found and not row.is_explained:
        parts.append("Put down to another operator." if row.operator else "Nothing explains it.")
    return " ".join(parts)


def _share(row: Row) -> str:
    return f"{100.0 * row.core_share:.0f} %" if row.core_share else "—"


def _yes(value: bool) -> str:
    return "yes" if value else "**no**"


def _table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    if not lines:
        return "None."
    rule = "|".join("---:" if head in NUMERIC else "---" for head in heads)
    body = [f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines]
    return "\n".join([f"| {' | '.join(heads)} |", f"|{rule}|", *body])
