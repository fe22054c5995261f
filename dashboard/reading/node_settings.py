"""The form of a node's limits: what it shows, what a service is given of it, and which field a refusal speaks of."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from farm.base.refusals import Invalid, Refusal

if TYPE_CHECKING:
    from farm.fleet.models import Node

GIB = 1024**3
MOST_DIGITS = 12
# numbers with their unit and the ends that `NodeSettings` allows, in that unit
NUMBERS = {
    "minutes": ("maximum block length", "minutes", 0.5, 1440),
    "temperature": ("maximum CPU temperature", "°C", 30, 120),
    "cache": ("model cache", "GiB", 1, 2**20),
    "runtimes": ("runtime cache", "GiB", 1, 2**20),
}
FIELDS = ("hours", "timezone", *NUMBERS, "tags", "teams")
FIELD_OF_CODE = {
    "bad_tag": "tags",
    "not_found": "teams",
}
Shown = dict[str, str]


def shown(node: "Node") -> Shown:
    """The limits as the form has them: minutes, GiB, empty where there is none."""
    limits = node.settings
    return {
        "is_paused": "yes" if limits.is_paused else "",
        "hours": limits.hours,
        "timezone": limits.timezone,
        "minutes": f"{limits.max_block_s / 60:g}",
        "temperature": "" if limits.max_temperature_c is None else f"{limits.max_temperature_c:g}",
        "cache": f"{limits.cache_bytes / GIB:g}",
        "runtimes": f"{limits.runtimes_bytes / GIB:g}",
        "tags": " ".join(node.owner_tags),
        "teams": ", ".join(lending.team.name for lending in node.lendings.select_related("team")),
    }


def typed(post: Mapping[str, str]) -> Shown:
    return {name: post.get(name, "").replace("\x00", "")[:500] for name in ("is_paused", *FIELDS)}


def limits_of(given: Shown) -> dict[str, str | bool | float | None]:
    """The limits for the service. Raises Invalid whose code is the field."""
    return {
        "is_paused": given["is_paused"] == "yes",
        "hours": given["hours"].replace(" ", "").replace("–", "-"),
        "timezone": given["timezone"].strip() or "UTC",
        "max_block_s": _number(given, "minutes") * 60,
        "max_temperature_c": _number(given, "temperature") if given["temperature"].strip() else None,
        "cache_bytes": int(_number(given, "cache") * GIB),
        "runtimes_bytes": int(_number(given, "runtimes") * GIB),
    }


def names(text: str, *, sep: str | None = None) -> list[str]:
    """The names in a field, with spaces or `sep` between."""
    return [name.strip() for name in text.split(sep) if name.strip()]


def field_of(refusal: Refusal) -> str:
    """The field that a refusal speaks of; the first when it names none."""
    field = FIELD_OF_CODE.get(refusal.code, refusal.code)
    return field if field in FIELDS else FIELDS[0]


def _number(given: Shown, field: str) -> float:
    """A number as people write it."""
    text = given[field].strip().replace(",", ".")
    is_number = text.isascii() and text.replace(".", "", 1).isdecimal() and len(text) <= MOST_DIGITS
    label, unit, least, most = NUMBERS[field]
    if not is_number or not least <= float(text) <= most:
        raise Invalid(f"The {label} is “{text[:20]}”: write a number of {unit} from {least:g} to {most:g}.", code=field)
    return float(text)
