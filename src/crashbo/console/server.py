"""Serve the console of a study until it is told to stop."""

import contextlib
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import quote

import uvicorn

from crashbo.console.app import make_app
from crashbo.console.hub import Hub
from crashbo.console.model import Model, ModelProcess
from crashbo.console.security import Policy, is_loopback, make_policy
from crashbo.errors import InputError
from crashbo.studies.study import Study

_HEADER_LIMIT = 16 * 1024  # bytes
_CONNECTIONS = 300


@dataclass(frozen=True)
class Address:
    """Where a console listens.

    Attributes:
        host: an address or a name.
        port: 0 for any that is free.
        token: None: drawn if others can connect.
        allowed: more names of this machine.
    """

    host: str = "127.0.0.1"
    port: int = 8765
    token: str | None = None
    allowed: tuple[str, ...] = ()


def listen(address: Address) -> socket.socket:
    """Bind an address, so that it is known to be free before anything else is started.

    Raises:
        InputError: if it cannot be had.
    """
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((address.host, address.port))
    except (OSError, OverflowError) as error:
        found.close()
        raise InputError(
            f"`--host` and `--port` must be free; got {address.host} {address.port} ({error}). Try --port 0."
        ) from error
    return found


def link(policy: Policy, host: str) -> str:
    """The address to open; the token stands behind #, which browsers keep to themselves."""
    name = socket.gethostname() if host in ("0.0.0.0", "::") else host
    shown = f"[{name}]" if ":" in name else name
    return f"http://{shown}:{policy.port}/" + (f"#token={quote(policy.token, safe='')}" if policy.token else "")


def serve(study: Study, address: Address, *, announce: Callable[[str], None], model: Model | None = None) -> None:
    """Serve a study until Ctrl-C.

    Args:
        study: to show.
        address: to listen on.
        announce: called with the address to open, once connections are accepted.
        model: computes; None: a process of its own.
    """
    with listen(address) as found:
        server, policy = _server(study, address, found.getsockname()[1], model)
        opened = link(policy, address.host)
        server.ready = lambda: announce(opened)
        server.run(sockets=[found])


@contextlib.contextmanager
def serving(study: Study, address: Address | None = None, *, model: Model | None = None) -> Iterator[str]:
    """Serve a study from a thread while the context lasts; gives the address to open."""
    address = address or Address(port=0)
    with listen(address) as found:
        server, policy = _server(study, address, found.getsockname()[1], model)
        ready = threading.Event()
        server.ready = ready.set
        thread = threading.Thread(target=server.run, args=([found],), daemon=True)
        thread.start()
        ready.wait(30)
        try:
            yield link(policy, address.host)
        finally:
            server.should_exit = True
            thread.join(15)


class _Server(uvicorn.Server):
    """Says when it is ready."""

    ready: Callable[[], None] = staticmethod(lambda: None)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if not self.should_exit:
            self.ready()


def _server(study: Study, address: Address, port: int, model: Model | None) -> tuple[_Server, Policy]:
    policy = make_policy(address.host, port, token=address.token, allowed=address.allowed)
    hub = Hub(study, model or ModelProcess(study.place))
    logging.getLogger("crashbo.console").setLevel(logging.INFO)
    config = uvicorn.Config(
        make_app(hub, policy),
        log_level="critical",
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        ws="none",
        http="h11",
        loop="asyncio",
        lifespan="on",
        limit_concurrency=_CONNECTIONS,
        h11_max_incomplete_event_size=_HEADER_LIMIT,
        timeout_graceful_shutdown=3,
    )
    return _Server(config), policy


def is_open(address: Address) -> bool:
    """Whether others can connect."""
    return not is_loopback(address.host)
