"""What was made for a reader and serves the next who may see the same: Django's cache, in this process."""

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import TypeVar, cast
from weakref import WeakValueDictionary

from django.core.cache import caches
from django.core.cache.backends.base import DEFAULT_TIMEOUT, BaseCache

Value = TypeVar("Value")


def cached(cache: str, *key: object, make: Callable[[], Value]) -> Value:
    """Return the value of this key in one of the settings' CACHES; made once, however many ask for it at the same
    time. A value of None is not kept, and made again for whoever asks next.

    Rights are asked before, and what differs by them is part of the key. The key names all that the value depends
    on: nothing is ever taken back.
    """
    return cast(Value, caches[cache].get_or_set(repr(key), make))


@dataclass(frozen=True)
class _Store:
    """What all threads share. `making`: a lock for each value that somebody makes now."""

    values: OrderedDict[str, object] = field(default_factory=OrderedDict)
    making: WeakValueDictionary[str, Lock] = field(default_factory=WeakValueDictionary)
    lock: Lock = field(default_factory=Lock)


_STORES: defaultdict[str, _Store] = defaultdict(_Store)


class ProcessCache(BaseCache):
    """The values last asked for, as they are: no run of 5,000 cells is pickled for each reader. Nothing expires."""

    def __init__(self, location: str, params: Mapping[str, object]) -> None:
        super().__init__(dict(params))
        self._store = _STORES[location]

    def get(self, key: str, default: object = None, version: int | None = None) -> object:
        with self._store.lock:
            if key not in self._store.values:
                return default
            self._store.values.move_to_end(key)
            return self._store.values[key]

    def set(self, key: str, value: object, timeout: float | None = DEFAULT_TIMEOUT, version: int | None = None) -> None:
        with self._store.lock:
            self._store.values[key] = value
            while len(self._store.values) > self._max_entries:
                self._store.values.popitem(last=False)

    def get_or_set(
        self, key: str, default: object, timeout: float | None = DEFAULT_TIMEOUT, version: int | None = None
    ) -> object:
        with self._store.lock:
            making = self._store.making.setdefault(key, Lock())
        with making:
            value = self.get(key)
            if value is None and callable(default):
                value = default()
                self.set(key, value)
            return value

    def clear(self) -> None:
        self._store.values.clear()
