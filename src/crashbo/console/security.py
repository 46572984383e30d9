"""Who may talk to the console: its own page, from an address it knows, with the token where one is needed.

Four independent locks. The Host header must be an address or a name of this machine, so that no web site can point its
own name here (DNS rebinding). Writes must come from the page itself: Origin, Sec-Fetch-Site and a header that other
sites cannot set without asking; or from a program that shows the token with each. A token is needed, on this machine
too, where others may have accounts; guessing it is limited. The page may load and run nothing but its own files.
"""

import hashlib
import ipaddress
import logging
import secrets
import socket
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from crashbo.errors import InputError

MARK = "x-crashbo"
BODY_LIMIT = 64 * 1024  # bytes
_TOKEN_LENGTH = 16
_WRONG_TOKENS, _WRONG_SECONDS = 10, 60.0  # how many wrong tokens an address may send in how long
_ADDRESSES = 1000  # that are remembered for that
TOO_MANY = (429, "Too many wrong tokens came from this address. Wait a minute, then use the one the console printed.")
_UNEXPECTED = "The console has a problem; its terminal says more. Reload the page."
_log = logging.getLogger("crashbo.console")
_LOOPBACK = ("127.0.0.1", "::1", "localhost")

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "cache-control": "no-store",
}


@dataclass(frozen=True)
class Policy:
    """What is allowed.

    Attributes:
        port: the console listens on.
        hosts: names and addresses by which it may be called.
        any_address: allow every literal address: those cannot be rebound.
        token: that all but the page's own files need; empty if nobody needs one.
        guesses: of the token that were wrong.
    """

    port: int
    hosts: frozenset[str]
    any_address: bool = False
    token: str = ""
    guesses: "Guesses" = field(default_factory=lambda: Guesses())

    @property
    def cookie(self) -> str:
        """The name of the cookie; cookies do not know ports, and there may be several consoles."""
        return f"crashbo_session_{self.port}"

    @property
    def session(self) -> str:
        """The cookie of those who have shown the token; the token cannot be had from it."""
        return hashlib.sha256(f"crashbo session {self.token}".encode()).hexdigest()

    def knows(self, token: str) -> bool:
        """Whether a token is the right one."""
        return secrets.compare_digest(token.encode(), self.token.encode())


@dataclass
class Guesses:
    """Wrong tokens by address.

    Attributes:
        allowed: how many in a minute.
        seen: when they came.
    """

    allowed: int = _WRONG_TOKENS
    seen: dict[str, deque[float]] = field(default_factory=dict)

    def too_many(self, client: str) -> bool:
        """Whether an address has to wait."""
        found = self.seen.get(client)
        while found and time.monotonic() - found[0] > _WRONG_SECONDS:
            found.popleft()
        return found is not None and len(found) >= self.allowed

    def note(self, client: str) -> None:
        """Remember a wrong token."""
        if client not in self.seen and len(self.seen) >= _ADDRESSES:
            self.seen.pop(next(iter(self.seen)))
        self.seen.setdefault(client, deque(maxlen=max(self.allowed, 1))).append(time.monotonic())


def is_loopback(host: str) -> bool:
    """Whether only this machine can connect to an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def make_policy(
    host: str, port: int, *, token: str | None = None, allowed: Sequence[str] = (), without_token: bool = False
) -> Policy:
    """Return what is allowed on an address; a token is drawn if none is given.

    Args:
        host: to listen on.
        port: to listen on.
        token: at least 16 characters; None: drawn.
        allowed: more names of this machine, of a proxy for example.
        without_token: let everyone in who can connect; for this machine only.

    Raises:
        InputError: if the token is too short, or lacks where others can connect.
    """
    if token is not None and len(token) < _TOKEN_LENGTH:
        raise InputError(f"`token` must have at least {_TOKEN_LENGTH} characters; got {len(token)}. Leave it out.")
    local = is_loopback(host)
    if without_token and (token is not None or allowed or not local):
        raise InputError("`--no-token` must come alone: with --token, --allow-host or another --host one is needed.")
    names = {*_LOOPBACK, *(name.lower() for name in allowed)}
    if not local:
        machine = socket.gethostname().lower()
        names |= {host.lower(), machine, f"{machine}.local", socket.getfqdn().lower()}
    drawn = "" if without_token else secrets.token_urlsafe(24)
    return Policy(port, frozenset(names), not local, drawn if token is None else token)


# --- one request ---------------------------------------------------------------------------------


def refuse(policy: Policy, method: str, path: str, headers: Headers) -> tuple[int, str] | None:
    """Why a request is not allowed, as a status and a sentence; None if it is."""
    if not _known_host(policy, headers.get("host", "")):
        return 421, "This console does not go by that name. Use the address it printed, or start it with --allow-host."
    if method not in ("GET", "HEAD", "POST"):
        return 405, "The console understands GET and POST only."
    site = headers.get("sec-fetch-site", "same-origin")
    if path.startswith("/api/") and site not in ("same-origin", "none"):
        return 403, "Requests from other web sites are refused."
    if method == "POST":
        found = _refuse_write(headers, site, program=shows_token(policy, headers))
        if found is not None:
            return found
    if policy.token and path.startswith("/api/") and path != "/api/login" and not _has_token(policy, headers):
        return 401, "The token is missing or wrong. Open the whole address that the console printed."
    return None


def shows_token(policy: Policy, headers: Headers) -> bool:
    """Whether a program shows the right token; browsers show a cookie instead."""
    kind, _, token = headers.get("authorization", "").partition(" ")
    return bool(policy.token) and kind.lower() == "bearer" and policy.knows(token.strip())


def _refuse_write(headers: Headers, site: str, *, program: bool) -> tuple[int, str] | None:
    origin = headers.get("origin")
    if origin is not None and not _same_origin(origin, headers.get("host", "")):
        return 403, "Writes from other web sites are refused."
    if not program and (site != "same-origin" or headers.get(MARK) != "1"):
        return 403, "Writes must come from the console's own page (header X-CrashBO: 1)."
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        return 415, "The body must be JSON (content-type application/json)."
    return None


def _known_host(policy: Policy, text: str) -> bool:
    name, _ = _split(text)
    return name in policy.hosts or (policy.any_address and _is_address(name))


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _split(text: str) -> tuple[str, int]:
    """Name and port of a Host header; an empty name if it is none."""
    name, colon, port = text.lower().rpartition(":") if not text.endswith("]") else (text.lower(), "", "")
    if not colon:
        name, port = text.lower(), "80"
    if not (port.isascii() and port.isdigit()) or len(port) > 5:
        return "", 0
    return name.strip("[]"), int(port)


def _same_origin(origin: str, host: str) -> bool:
    scheme, _, rest = origin.lower().partition("://")
    return scheme in ("http", "https") and bool(host) and _split(rest) == _split(host)


def _has_token(policy: Policy, headers: Headers) -> bool:
    if "authorization" in headers:
        return shows_token(policy, headers)
    found = [pair.strip().partition("=") for pair in headers.get("cookie", "").split(";")]  # others' may be malformed
    mine = [value.strip().strip('"') for name, _, value in found if name.strip() == policy.cookie]
    return any(secrets.compare_digest(value.encode(), policy.session.encode()) for value in mine)


class Guard:
    """ASGI middleware: refuses what is not allowed, and puts the security headers on every answer."""

    def __init__(self, app: ASGIApp, policy: Policy) -> None:
        self.app, self.policy = app, policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request that is allowed."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return

        started = False

        async def protected(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refusal = self._refuse(scope, Headers(scope=scope))
        if refusal is not None:
            await JSONResponse({"error": refusal[1]}, refusal[0])(scope, receive, protected)
            return
        try:
            await self.app(scope, receive, protected)
        except Exception as error:  # nobody outside is to see more than a sentence
            _log.error("%s at %s: %s", type(error).__name__, scope["path"], error)
            if not started:
                await JSONResponse({"error": _UNEXPECTED}, 500)(scope, receive, protected)

    def _refuse(self, scope: Scope, headers: Headers) -> tuple[int, str] | None:
        """Why a request is not allowed; whoever guesses tokens has to wait."""
        client, guesses = client_of(scope), self.policy.guesses
        if "authorization" in headers and guesses.too_many(client):
            return TOO_MANY
        refusal = refuse(self.policy, scope["method"], scope["path"], headers)
        if refusal is not None and refusal[0] == 401 and "authorization" in headers:
            guesses.note(client)
        return refusal


def client_of(scope: Scope) -> str:
    """The address of whoever asks."""
    return str(scope["client"][0]) if scope.get("client") else ""
