"""Serve the console of a study until it is told to stop."""

import contextlib
import logging
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import uvicorn
from starlette.applications import Starlette

from crashbo.console.app import make_app
from crashbo.console.doors import Door
from crashbo.console.hub import Hub
from crashbo.console.model import Model, ModelProcess
from crashbo.console.security import Policy, is_loopback, make_policy
from crashbo.errors import InputError
from crashbo.store.study import Study

_HEADER_LIMIT = 16 * 1024  # bytes


@dataclass(frozen=True)
class Address:
    """Where a console listens.

    Attributes:
        host: an address or a name.
        port: 0 for any that is free.
        token: None: drawn.
        allowed: more names of this machine.
        without_token: let everyone in who can connect; for this machine only.
        certificate: file of a TLS certificate; None: HTTP.
        key: file of its key; None: it is in the same file.
    """

    host: str = "127.0.0.1"
    port: int = 8765
    token: str | None = None
    allowed: tuple[str, ...] = ()
    without_token: bool = False
    certificate: Path | None = None
    key: Path | None = None

    @property
    def scheme(self) -> str:
        return "http" if self.certificate is None else "https"


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


def link(policy: Policy, host: str, scheme: str = "http") -> str:
    """The address to open; the token stands behind #, which browsers keep to themselves."""
    name = socket.gethostname() if host in ("0.0.0.0", "::") else host
    shown = f"[{name}]" if ":" in name else name
    return f"{scheme}://{shown}:{policy.port}/" + (f"#token={quote(policy.token, safe='')}" if policy.token else "")


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
        opened = link(policy, address.host, address.scheme)
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
            yield link(policy, address.host, address.scheme)
        finally:
            server.should_exit = True
            thread.join(15)


class _Server(uvicorn.Server):
    """Says when it is ready, and ends the streams of open pages before it waits for answers under way."""

    ready: Callable[[], None] = staticmethod(lambda: None)

    def __init__(self, app: Starlette, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._app = app

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if not self.should_exit:
            self.ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._app.state.stopping.set()
        await super().shutdown(sockets)


def _server(study: Study, address: Address, port: int, model: Model | None) -> tuple[_Server, Policy]:
    policy = make_policy(
        address.host, port, token=address.token, allowed=address.allowed, without_token=address.without_token
    )
    _check_certificate(address)
    hub = Hub(study, model or ModelProcess(study.place))
    logging.getLogger("crashbo.console").setLevel(logging.INFO)
    app = make_app(hub, policy)
    config = uvicorn.Config(
        app,
        log_level="critical",
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        ws="none",
        http=Door,
        loop="asyncio",
        lifespan="on",
        ssl_certfile=address.certificate,
        ssl_keyfile=address.key,
        h11_max_incomplete_event_size=_HEADER_LIMIT,
        timeout_graceful_shutdown=3,
    )
    return _Server(app, config), policy


def _check_certificate(address: Address) -> None:
    """Refuse a certificate that cannot be used, before anything is served."""
    if address.certificate is None:
        if address.key is not None:
            raise InputError("`--tls-key` must come with --tls-cert; got no certificate.")
        return
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(address.certificate, address.key)
    except OSError as error:  # SSL errors are of that kind too
        raise InputError(
            f"`--tls-cert` must be a certificate, with its key in the same file or as --tls-key; got "
            f"{address.certificate} ({error})."
        ) from error


def is_open(address: Address) -> bool:
    """Whether others can connect."""
    return not is_loopback(address.host)
