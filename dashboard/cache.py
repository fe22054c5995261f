"""A cache in this process for values and pages that are the same for all readers with equal rights."""

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
    """Return the value of this key from one of the settings' CACHES, or call `make` and store its result. Threads that
    ask for the key at the same time wait for a single call. A result of None counts as missing, so `make` is called
    again the next time.

    The caller checks the reader's rights first. The key must name everything on which the value depends, rights too,
    because stored values are never invalidated.
    """
    return cast(Value, caches[cache].get_or_set(repr(key), make))


@dataclass(frozen=True)
class _Store:
    """The values that all threads share. `making`: a lock for each value that a thread is making now."""

    values: OrderedDict[str, object] = field(default_factory=OrderedDict)
    making: WeakValueDictionary[str, Lock] = field(default_factory=WeakValueDictionary)
    lock: Lock = field(default_factory=Lock)


_STORES: defaultdict[str, _Store] = defaultdict(_Store)


class ProcessCache(BaseCache):
    """A Django cache that stores the objects themselves, so that large runs are not pickled for each reader. Readers
    must not change them. Nothing expires: the least recently used values are dropped at `MAX_ENTRIES`, timeouts and
    versions are ignored, and `get_or_set` calls `default` once for all threads; a `default` that is not callable is
    ignored. A stored None counts as missing for `get_or_set`. `add`, `touch` and `delete` raise NotImplementedError."""

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
