"""Who may hold a connection, and for how long: people who only hold the line do not keep others out."""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_SECONDS = 10.0  # for a whole request head, from its first moment on
PER_CLIENT, ALL = 150, 300  # connections


class Door(H11Protocol):
    """A connection that must ask for something soon.

    Where an address has too many, or all together have, the oldest one that asks for nothing makes room.
    """

    _born = 0.0
    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Take a connection, and make room for it."""
        super().connection_made(transport)
        self._born = self.loop.time()
        self._wait()
        self._make_room()

    def data_received(self, data: bytes) -> None:
        """Read; a request that is whole is not hurried any more."""
        super().data_received(data)
        if not self.idle:
            self._stop_waiting()
        elif self._patience is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a connection."""
        self._stop_waiting()
        super().connection_lost(exc)

    @property
    def idle(self) -> bool:
        """Whether nothing is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def _wait(self) -> None:
        self._patience = self.loop.call_later(HEADER_SECONDS, self._give_up)

    def _stop_waiting(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _give_up(self) -> None:
        self._patience = None
        if self.idle and not self.transport.is_closing():
            self.transport.close()

    def _make_room(self) -> None:
        others = [one for one in self.connections if isinstance(one, Door) and one is not self]
        mine = [one for one in others if _address(one) == _address(self)]
        if len(mine) < PER_CLIENT and len(others) < ALL:
            return
        crowd = mine if len(mine) >= PER_CLIENT else others
        idle = min((one for one in crowd if one.idle), key=lambda one: one._born, default=self)
        self.connections.discard(idle)
        idle.transport.abort()


def _address(door: Door) -> str:
    return door.client[0] if door.client else ""
