"""Queries that are asked again and again, put into SQL once.

Django puts a queryset into SQL each time it is read, which takes several times what the database takes to answer. What
a node's every message asks is put into SQL once a thread here, from the same querysets, and read into the same rows.
"""

import threading
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar, cast

from django.db import connections, models, router
from django.db.models.sql import UpdateQuery

Row = TypeVar("Row", bound=models.Model)
# what stands in a query for a number or a text that is not known yet; each slot has its own
NUMBER, TEXT = 2_147_480_000, "\x02slot "
# no column holds a larger number, so no row has it; a database answers an error where it is asked for one
MOST = 2**63 - 1


class Slots:
    """The open places of a query, by name: `slots.number("node")`, `slots.text("digest")`."""

    def __init__(self) -> None:
        self.names: dict[object, str] = {}

    def number(self, name: str) -> int:
        return cast(int, self._taken(NUMBER + len(self.names), name))

    def text(self, name: str) -> str:
        return cast(str, self._taken(f"{TEXT}{name}", name))

    def _taken(self, stand_in: object, name: str) -> object:
        self.names[stand_in] = name
        return stand_in


class Prepared(Generic[Row]):
    """`Prepared(lambda slots: Node.objects.filter(pk=slots.number("node"))).first(node=7)`.

    The queryset may have related rows and annotations. It must not depend on anything but its slots; what it is made of
    is looked at once.
    """

    def __init__(self, ask: Callable[[Slots], models.QuerySet[Row]]) -> None:
        self._ask = ask
        self._here = threading.local()

    def first(self, **values: object) -> Row | None:
        """The first row, in whatever order the query has; None where there is none."""
        rows = self.all(**values)
        return rows[0] if rows else None

    def all(self, **values: object) -> list[Row]:
        """Every row."""
        statement = getattr(self._here, "statement", None)
        if statement is None:
            statement = self._here.statement = _Statement(self._ask)
        return cast(list[Row], statement.rows(values))


class PreparedUpdate:
    """A conditional UPDATE in the same way: `ask` gives the rows and what becomes of them; calling it counts rows."""

    def __init__(self, ask: Callable[[Slots], tuple[models.QuerySet[Any], Mapping[str, Any]]]) -> None:
        self._ask = ask
        self._here = threading.local()

    def __call__(self, **values: object) -> int:
        change = getattr(self._here, "change", None)
        if change is None:
            change = self._here.change = _Change(self._ask)
        return cast(int, change.carry_out(values))


class _Sql:
    """A query's text, and where its slots stand among its parameters."""

    def __init__(self, compiler: Any, slots: Slots) -> None:
        self.text, self._parameters = compiler.as_sql()
        self._places = [(place, slots.names[one]) for place, one in enumerate(self._parameters) if _is_slot(one, slots)]
        missing = set(slots.names.values()) - {name for _, name in self._places}
        if missing:
            raise ValueError(f"{', '.join(sorted(missing))} did not reach the query as it was given.")

    def filled(self, values: Mapping[str, object]) -> Any:
        """The parameters with these values in their places."""
        parameters = list(self._parameters)
        for place, name in self._places:
            parameters[place] = values[name]
        return parameters


class _Statement:
    """A queryset and its SQL. Django's own iterable makes its rows, from a compiler that has asked already."""

    def __init__(self, ask: Callable[[Slots], models.QuerySet[Any]]) -> None:
        slots = Slots()
        self._rows: Any = ask(slots)
        self._using = router.db_for_write(self._rows.model)
        self._compiler: Any = self._rows.query.get_compiler(using=self._using)
        self._sql = _Sql(self._compiler, slots)
        converters = self._compiler.get_converters([one[0] for one in self._compiler.select])
        self._compiler.get_converters = lambda _: converters
        query: Any = self._rows.query
        query.get_compiler = lambda **_: self._compiler

    def rows(self, values: Mapping[str, object]) -> list[Any]:
        """Asks with these values."""
        if not _can_be(values):
            return []
        with connections[self._using].cursor() as cursor:
            cursor.execute(self._sql.text, self._sql.filled(values))
            found = cursor.fetchall()
        self._compiler.execute_sql = lambda **_: [found]
        return list(self._rows._iterable_class(self._rows))


class _Change:
    """An UPDATE in SQL."""

    def __init__(self, ask: Callable[[Slots], tuple[models.QuerySet[Any], Mapping[str, Any]]]) -> None:
        slots = Slots()
        rows, changes = ask(slots)
        self._using = router.db_for_write(rows.model)
        query: Any = rows.order_by().query.chain(UpdateQuery)
        query.add_update_values(changes)
        self._sql = _Sql(query.get_compiler(using=self._using), slots)

    def carry_out(self, values: Mapping[str, object]) -> int:
        if not _can_be(values):
            return 0
        with connections[self._using].cursor() as cursor:
            cursor.execute(self._sql.text, self._sql.filled(values))
            return int(cursor.rowcount)


def _is_slot(parameter: object, slots: Slots) -> bool:
    return isinstance(parameter, int | str) and parameter in slots.names


def _can_be(values: Mapping[str, object]) -> bool:
    """Whether a row may have every one of these numbers, which come from addresses too."""
    return all(-MOST <= value <= MOST for value in values.values() if isinstance(value, int))
