"""What was computed of the same trials before: bounded, and safe for threads."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

_KEPT = 4  # results of one kind: those of the last trials, and of trials that the last ones were learned with


class _Slot:
    """Where one result is put; whoever needs it while it is being computed waits for it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.made = False
        self.value: Any = None


class Memory:
    """Results of pure functions. Of every kind the last few are kept; the least recently used goes first.

    It saves time and changes no result. Threads may share it: each result is computed by one of them.
    """

    def __init__(self, kept: int = _KEPT) -> None:
        self._kept, self._lock = kept, threading.Lock()
        self._kinds: dict[Hashable, OrderedDict[Hashable, _Slot]] = {}

    def once(self, kind: Hashable, key: Hashable, make: Callable[[], Any]) -> Any:
        """What `make` returned for this kind and key before, or returns now."""
        slot = self._slot(kind, key)
        with slot.lock:
            if not slot.made:
                slot.value, slot.made = make(), True
            return slot.value

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy begins empty: what it holds can be computed anew."""
        return Memory, (self._kept,)

    def _slot(self, kind: Hashable, key: Hashable) -> _Slot:
        with self._lock:
            slots = self._kinds.setdefault(kind, OrderedDict())
            slot = slots.setdefault(key, _Slot())
            slots.move_to_end(key)
            while len(slots) > self._kept:
                slots.popitem(last=False)
            return slot
