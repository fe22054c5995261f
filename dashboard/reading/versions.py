"""A model's versions as a table, each with its comparison with the version before it."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from django.urls import reverse

from dashboard.reading import runs
from farm.base.grouping import group_by
from farm.contract import document_comparisons as doc_comparisons
from farm.rules.presenting.tables import Column, Entry, Number, Prose, Table, as_time, verdict_entry
from farm.rules.wording import numbers, titles

if TYPE_CHECKING:
    from farm.registry.models import Version
    from farm.runs.models import Comparison


VERSIONS: tuple[Column["Version"], ...] = (
    Column("Version", lambda row: Entry(f"version {row.number}", row.number, href=f"?version={row.number}")),
    Column("State", lambda row: verdict_entry(row.state)),
    Column("Bundle digest", lambda row: Entry(row.artifact.sha256[:12], is_name=True, title=row.artifact.sha256)),
    Number("size", lambda row: Entry(numbers.size(row.artifact.bytes), row.artifact.bytes)),
    Prose("Note", lambda row: Entry(row.note)),
    Column("Uploaded", lambda row: as_time(row.created_at)),
    Column("By", lambda row: Entry(runs.person_name(row.uploaded_by))),
)


def version_table(
    rows: Iterable["Version"], chosen: "Version | None", *, compared: Mapping[int, "Comparison"] = MappingProxyType({})
) -> Table:
    """Make the table of a model's versions, in the order given. Versions with the same files name each other. The
    columns for the commit, for comparisons, for the same files and for the mark appear only where a row needs them.
    `chosen`: the version that the page shows, which is marked; `compared`: the comparison of a version with the version
    before it, by the later version's number."""
    listed = list(rows)
    by_files = group_by(listed, lambda row: row.artifact.sha256)
    same = {
        row.pk: numbers.listed([f"version {other.number}" for other in by_files[row.artifact.sha256] if other != row])
        for row in listed
    }
    columns = list(VERSIONS)
    if any(row.commit or row.branch for row in listed):
        columns.insert(1, Column("Commit", lambda row: Entry(row.commit[:12], title=row.commit, soft=row.branch)))
    if compared:
        columns.insert(2, Column("Against the one before", lambda row: _comparison_entry(compared.get(row.number))))
    if any(same.values()):
        columns.append(Column("Same files as", lambda row: Entry(same[row.pk])))
    if chosen is not None:
        columns.insert(1, Column("Shown", lambda row: Entry("shown above" if row.pk == chosen.pk else "")))
    return Table.of("versions", "Versions", columns, listed).with_row_keys([row.pk for row in listed])


def _comparison_entry(row: "Comparison | None") -> Entry:
    """Make the entry `12 % slower than version 2`, followed by the settings and the run; empty without a comparison."""
    if row is None or (beside := row.baseline.cell.beside) is None:
        return Entry("")
    found = doc_comparisons.Comparison.model_validate_json(row.body).model_copy(update={"verdict": row.verdict})
    change, preposition = row.verdict, "to" if row.verdict == "equal" else "against"
    if row.verdict in ("slower", "faster") and found.ratio is not None:
        change, preposition = numbers.change(found.ratio, found.ci_low, found.ci_high), "than"
    address = reverse("dashboard:cell", args=[row.run_id, row.candidate.name])
    soft = f"{titles.setting(row.candidate.cell)}, run {row.run_id}"
    return Entry(f"{change} {preposition} version {beside.version.number}", found.ratio, href=address, soft=soft)
