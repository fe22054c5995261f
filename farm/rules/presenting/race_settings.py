"""Makes the tables of the settings that a race measured, and of those that it dropped, for pages and terminals."""

from typing import NamedTuple

from farm.contract.document_find import Found, FoundSetting, LeftSetting
from farm.rules.presenting.tables import Column, Entry, Number, Prose, Table, as_number
from farm.rules.wording import numbers

DROPPED_COLUMNS: tuple[Column[LeftSetting], ...] = (
    Column("Setting", lambda dropped: Entry(dropped.label, is_name=True)),
    Column("Left for", lambda dropped: Entry(f"budget of {dropped.budget}" if dropped.budget else dropped.why)),
    Prose("Why", lambda dropped: Entry(dropped.text)),
)


class SettingRow(NamedTuple):
    """A setting and its role in the answer, such as `best so far` or `default`, as the table shows it."""

    setting: FoundSetting
    role: str


def make_settings_table(found: Found, *, id: str = "settings") -> Table:
    """List the settings of the answer, then the others of its final block, those set apart, and the default.

    The default is listed only where it was measured and is none of the others. Columns that are empty or not measured
    in every row are left out.
    """
    rows = [
        *(SettingRow(setting, "best so far" if found.state == "undecided" else "answer") for setting in found.answer),
        *(SettingRow(setting, "in its final block") for setting in found.beside),
        *(SettingRow(setting, "apart") for setting in found.apart),
    ]
    default = found.default
    if default is not None and default.p50_ms and all(default.settings != row.setting.settings for row in rows):
        rows.append(SettingRow(default, "default"))
    is_by_processor = found.goal == "processor-time" or (found.goal == "latency" and found.is_by_processor)
    is_throughput = found.goal == "throughput"
    columns: list[Column[SettingRow]] = [
        Column("Setting", lambda row: Entry(row.setting.label, is_name=True)),
        Column("Is", lambda row: Entry(row.role)),
        Number("p50, ms", lambda row: as_number(row.setting.p50_ms)),
        Number(
            "±, ms", lambda row: Entry(numbers.plus_minus(row.setting.p50_ms, row.setting.p50_ci_ms).removeprefix("± "))
        ),
        *([Number("CPU time, ms", lambda row: as_number(row.setting.cpu_p50_ms))] if is_by_processor else []),
        *([Number("items/s by the clock", lambda row: as_number(row.setting.throughput))] if is_throughput else []),
        Number("against the first", lambda row: Entry(_format_change(row.setting), row.setting.ratio)),
        Number("memory", lambda row: as_number(row.setting.peak_memory_bytes, numbers.memory)),
        Number("accuracy", lambda row: Entry(row.setting.accuracy)),
        Prose("Note", lambda row: Entry(row.setting.note)),
    ]
    return Table.of(id, "Settings that were measured", columns, rows).without_unmeasured()


def make_dropped_table(found: Found, *, id: str = "left") -> Table:
    return Table.of(id, "Settings that left", DROPPED_COLUMNS, found.left)


def _format_change(setting: FoundSetting) -> str:
    if not setting.ratio:
        return ""
    return numbers.change_interval(setting.ratio_low, setting.ratio_high, ratio=setting.ratio, is_directed=False)
