"""Finds published changes of ONNX Runtime again by the product's own commands, and says how many.

    python -m tests.acceptance.rediscovery [--only NAME,…] [--resume FILE] [--again] [--keep-busy] [--minutes N]
    python -m tests.acceptance.rediscovery --sample N --seed S
    python -m tests.acceptance.rediscovery --resume FILE --table [--page docs/reference/published-changes.md]

Each claim: the judge (a bare loop on the same wheels), `onnxfarm bench` of the two reported releases, and where both
see the change `onnxfarm bisect` or `onnxfarm sweep` for its date. A row is a line of FILE as soon as it is done; a
second call goes on with the claims that have none, or one of a machine that was too busy, whatever it said. --minutes
ends it before the first claim that would begin later.
--table runs nothing and writes the tables of the page from the rows. Prints the headline. The exit code is 1 where an
unchanged pair was called, or where fewer than `--least` of the changes that hold here were found.
"""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.acceptance.rediscovery import table
from tests.acceptance.rediscovery.claims import Claim, Kind, claims
from tests.acceptance.rediscovery.finding import CannotMeasureError, row_of
from tests.acceptance.rediscovery.rows import Ledger, Row

Find = Callable[[Claim, Path], Row]
ROWS = Path("var/rediscovery.jsonl")
PAGE = Path(__file__).parents[3] / "docs" / "reference" / "published-changes.md"


def main(words: Sequence[str] | None = None, *, known: Sequence[Claim] | None = None, find: Find = row_of) -> int:
    """`known`: the claims, where they are not those of the table. `find`: makes the row of one."""
    options = _options(words)
    known, ledger = claims() if known is None else known, Ledger(options.resume)
    chosen = _chosen(known, options)
    if options.table:
        table.write_into(options.page, table.tables(known, ledger.rows()))
    else:
        # in an order that has nothing to do with the claims, so that a run that was cut short is a fair sample
        drawn = random.Random(options.seed).sample(chosen, len(chosen))
        run(drawn, ledger, find=find, again=options.again, keep_busy=options.keep_busy, minutes=options.minutes)
    rows = ledger.rows()
    counted = known if options.table else chosen
    print(table.headline(counted, rows))
    return _ending([rows[claim.name] for claim in counted if claim.name in rows], least=options.least)


def run(chosen: Sequence[Claim], ledger: Ledger, *, find: Find, again: bool, keep_busy: bool, minutes: float) -> None:
    """A row for each claim that has none, until the minutes are over."""
    ends_at = time.monotonic() + 60.0 * minutes
    done = {} if again else {name: row for name, row in ledger.rows().items() if row.is_quiet or keep_busy}
    with tempfile.TemporaryDirectory(prefix="onnxfarm-rediscovery-") as name:
        for claim in chosen:
            if claim.name in done or time.monotonic() > ends_at:
                continue
            try:
                row = find(claim, Path(name))
            except CannotMeasureError as problem:
                print(f"{claim.name}: not run: {problem}", file=sys.stderr, flush=True)
                continue
            ledger.add(row)
            print(f"{claim.name}: {_in_short(row)} ({row.minutes:.1f} min)", file=sys.stderr, flush=True)


def _in_short(row: Row) -> str:
    judged = "" if row.judge_ratio is None else f"judge {row.judge_ratio:.3f}, "
    if row.kind is Kind.SAME:
        return f"{judged}{row.verdict or row.why}"
    marks = f"found {row.is_found}, dated {row.is_dated} ({row.since or '—'}), explained {row.is_explained}"
    return f"{judged}{row.verdict or row.why}; {marks if row.holds else 'not here'}"


def _chosen(known: Sequence[Claim], options: argparse.Namespace) -> list[Claim]:
    names = [name for name in options.only.split(",") if name]
    if unknown := sorted(set(names) - {claim.name for claim in known}):
        raise SystemExit(f"There is no claim {', '.join(unknown)}; there are {', '.join(c.name for c in known)}.")
    chosen = [claim for claim in known if not names or claim.name in names]
    if options.sample:
        drawn = random.Random(options.seed).sample(chosen, min(options.sample, len(chosen)))
        chosen = [claim for claim in chosen if claim in drawn]
    return chosen


def _ending(rows: Sequence[Row], *, least: float) -> int:
    """1 where a pair that did not change was called, or too few changes that hold here were found."""
    here = [row for row in rows if row.holds and row.kind in (Kind.SLOWER, Kind.FASTER)]
    called = [row for row in rows if row.holds and row.kind is Kind.SAME and not row.is_silent]
    return int(bool(called) or sum(row.is_found for row in here) < least * len(here))


def _options(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="NAME,…", help="these claims alone")
    parser.add_argument("--resume", type=Path, default=ROWS, metavar="FILE", help=f"the rows (default: {ROWS})")
    parser.add_argument("--again", action="store_true", help="claims that have a row too; the last row counts")
    parser.add_argument("--keep-busy", action="store_true", help="rows of a busy machine stay")
    parser.add_argument("--minutes", type=float, default=24 * 60.0, help="begin no claim after so many")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="so many of the claims, drawn by --seed")
    parser.add_argument("--seed", type=int, default=1, help="of the sample, and of the order in which claims are run")
    parser.add_argument("--least", type=float, default=0.8, help="share of found ones below which it fails")
    parser.add_argument("--table", action="store_true", help="write the tables of the page, run nothing")
    parser.add_argument("--page", type=Path, default=PAGE)
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(main())
