"""What was made for one reader and serves the next: the newest values by key, in this process."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

Value = TypeVar("Value")


class _Slot(Generic[Value]):
    """One value, made under its own lock, so that whoever asks meanwhile waits instead of making it again."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.made: list[Value] = []


class Kept(Generic[Value]):
    """At most `most` values. A key must name everything that its value depends on: nothing is ever taken back."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = Lock()
        self._slots: OrderedDict[Hashable, _Slot[Value]] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of this key; made once however many ask for it at the same time."""
        with self._lock:
            slot = self._slots.setdefault(key, _Slot())
            self._slots.move_to_end(key)
            while len(self._slots) > self._most:
                self._slots.popitem(last=False)
        with slot.lock:
            if not slot.made:
                slot.made.append(make())
            return slot.made[0]

    def known(self, key: Hashable) -> Value | None:
        """The value of this key where it has been made; asking does not keep it longer."""
        with self._lock:
            slot = self._slots.get(key)
        return slot.made[0] if slot is not None and slot.made else None
