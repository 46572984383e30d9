"""The web application: a page, its state, and what can be written. Every answer is JSON, and every error a sentence."""

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib import resources
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from crashbo.adapters.optuna.correcting import OutdatedError
from crashbo.console.desk import TakenError
from crashbo.console.forms import NAME_LIMIT, Form, FormError
from crashbo.console.hub import Hub
from crashbo.console.model import ModelError
from crashbo.console.security import BODY_LIMIT, TOO_MANY, Guard, Policy, client_of
from crashbo.errors import CrashBOError, InputError
from crashbo.store.storage import StudyError
from crashbo.store.transfer import export_csv

SCRIPTS = ("app", "api", "dom", "space", "next", "running", "trials", "charts", "map")
_FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    **{f"/{name}.js": (f"{name}.js", "text/javascript; charset=utf-8") for name in SCRIPTS},
    "/style.css": ("style.css", "text/css; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
_ANSWER_SECONDS = 60.0  # a question to the model may wait behind a fit
_HEARTBEAT_SECONDS = 15.0
_BODY_SECONDS = 15.0  # for a whole request body
_KEY = re.compile(r"[!-~]{1,100}")
_LISTENERS = 100


def make_app(hub: Hub, policy: Policy) -> Starlette:
    """Return the application of a hub; it starts and stops the hub with itself."""

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        app.state.stopping = asyncio.Event()
        await run_in_threadpool(hub.start)
        yield
        app.state.stopping.set()
        await run_in_threadpool(hub.stop)

    app = Starlette(
        routes=[*_page_routes(), *_read_routes(hub), *_write_routes(hub), _login_route(policy)],
        middleware=[Middleware(Guard, policy=policy), Middleware(GZipMiddleware, minimum_size=2000)],
        exception_handlers={HTTPException: _refused, CrashBOError: _explained},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    return app


# --- errors --------------------------------------------------------------------------------------


async def _refused(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    known = {404: "There is nothing here. Open the console's first page.", 405: "This is not done that way."}
    headers = getattr(error, "headers", None)
    return JSONResponse({"error": known.get(status) or str(getattr(error, "detail", ""))}, status, headers)


async def _explained(request: Request, error: Exception) -> Response:
    """An error on purpose: its sentence, and the fields it is about."""
    if isinstance(error, FormError):
        words = error.fields.get("params", "Nothing was stored: see beside the fields.")
        return JSONResponse({"error": words, "fields": error.fields}, 422)
    kinds = ((TakenError, 409), (OutdatedError, 409), (ModelError, 503), (InputError, 422), (StudyError, 503))
    status = next((code for kind, code in kinds if isinstance(error, kind)), 500)
    return JSONResponse({"error": str(error)}, status)


# --- the page ------------------------------------------------------------------------------------


def _page_routes() -> list[Route]:
    """The page's own files, read once: no path of a request ever reaches the file system."""
    folder = resources.files("crashbo.console") / "static"
    return [_file(path, (folder / name).read_bytes(), kind) for path, (name, kind) in _FILES.items()]


def _file(path: str, content: bytes, kind: str) -> Route:
    async def answer(request: Request) -> Response:
        return Response(content, media_type=kind)

    return Route(path, answer)


# --- reading -------------------------------------------------------------------------------------


def _read_routes(hub: Hub) -> list[Route]:
    async def state(request: Request) -> Response:
        query = request.query_params
        since = query.get("since", "0")
        known = int(since) if since.isascii() and since.isdigit() and len(since) < 16 else 0
        text = await run_in_threadpool(hub.state, query.get("boot", ""), known)
        return Response(text, media_type="application/json")

    async def trials(request: Request) -> Response:
        text = await run_in_threadpool(export_csv, hub.study)
        head = {"content-disposition": 'attachment; filename="trials.csv"'}
        return Response(text, media_type="text/csv; charset=utf-8", headers=head)

    async def events(request: Request) -> Response:
        return StreamingResponse(_events(hub, request), media_type="text/event-stream")

    async def predict(request: Request) -> Response:
        form = Form(await read_body(request), ("params",))
        params = form.allowed_params(hub.study.definition)
        form.finish()
        return JSONResponse(await _ask(hub, "predict", params=params))

    async def picture(request: Request) -> Response:
        form = Form(await read_body(request), ("x", "y", "params", "acquisition"))
        varying = [block.name for block in hub.study.definition.space.coordinates]
        x, y = form.word("x", varying), form.word("y", [*varying, ""])
        acquisition = form.flag("acquisition")
        params = form.params(hub.study.definition)
        form.finish()
        if x == y:
            raise InputError("The two axes of the map must be different parameters.")
        return JSONResponse(await _ask(hub, "picture", x=x, y=y or None, at=params, acquisition=acquisition))

    return [
        Route("/api/state", state),
        Route("/api/events", events),
        Route("/api/trials.csv", trials),
        Route("/api/predict", predict, methods=["POST"]),
        Route("/api/picture", picture, methods=["POST"]),
    ]


async def _ask(hub: Hub, kind: str, **details: Any) -> dict[str, Any]:
    """Ask the model a question; the server does other things meanwhile."""
    answer = hub.model.ask(kind, **details)
    try:
        return await asyncio.wait_for(asyncio.wrap_future(answer), _ANSWER_SECONDS)
    except TimeoutError as error:
        raise ModelError("The model is still computing. Try again in a moment.") from error


async def _events(hub: Hub, request: Request) -> AsyncIterator[str]:
    """Say when there is something new, as server-sent events, until the page or the server goes away."""
    loop, stopping = asyncio.get_running_loop(), request.app.state.stopping
    news = asyncio.Event()
    if hub.listeners >= _LISTENERS:
        yield "retry: 10000\n\n"
        return
    deaf = hub.listen(lambda revision: loop.call_soon_threadsafe(news.set))
    try:
        yield "retry: 1000\ndata: hello\n\n"
        while not stopping.is_set():
            heard = await _either(news, stopping, _HEARTBEAT_SECONDS)
            news.clear()
            yield "data: news\n\n" if heard else ": still here\n\n"
            await asyncio.sleep(0.05)  # several changes at once are one piece of news
    finally:
        deaf()


async def _either(one: asyncio.Event, other: asyncio.Event, seconds: float) -> bool:
    """Wait for either of two events; whether it was the first."""
    tasks = [asyncio.ensure_future(one.wait()), asyncio.ensure_future(other.wait())]
    try:
        await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
    return one.is_set()


# --- writing -------------------------------------------------------------------------------------


async def read_body(request: Request) -> Any:
    """Return the JSON of a request, refusing what is too large or malformed.

    Raises:
        HTTPException: with what is wrong.
    """
    chunks, size = [], 0
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            async for chunk in request.stream():
                size += len(chunk)
                if size > BODY_LIMIT:
                    raise HTTPException(413, f"The request must have at most {BODY_LIMIT} bytes. Shorten the texts.")
                chunks.append(chunk)
    except ClientDisconnect as error:
        raise HTTPException(400, "The request ended too early.") from error
    except TimeoutError as error:
        raise HTTPException(408, "The request took too long to arrive. Try again.", {"connection": "close"}) from error
    try:
        found = json.loads(b"".join(chunks).decode("utf-8"), parse_constant=_no_constant)
        json.dumps(found, ensure_ascii=False).encode()  # half a character would reach the database
        return found
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, "The request must be JSON. Reload the page.") from error


def key_of(request: Request) -> str | None:
    """The key by which a repeated request is known.

    Raises:
        HTTPException: if it is no short text.
    """
    key = request.headers.get("idempotency-key")
    if key is not None and not _KEY.fullmatch(key):
        raise HTTPException(400, "The header Idempotency-Key must be up to 100 printable ASCII characters, no spaces.")
    return key


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _write_routes(hub: Hub) -> list[Route]:
    desk = hub.desk

    def recorded(write: Callable[[Form, str | None], int], *allowed: str) -> Callable[[Request], Awaitable[Response]]:
        """A handler that stores what came of a trial and waits for nothing else."""

        async def answer(request: Request) -> Response:
            form = Form(await read_body(request), ("number", "by", *allowed))
            number = await run_in_threadpool(write, form, key_of(request))
            hub.wrote()
            return JSONResponse({"number": number})

        return answer

    def claimed(write: Callable[..., int]) -> Callable[[Request], Awaitable[Response]]:
        """A handler that takes or skips the suggestion."""

        async def answer(request: Request) -> Response:
            form = Form(await read_body(request), ("offer", "by"))
            offer, by = form.text("offer", 40), form.text("by", NAME_LIMIT)
            form.finish()
            number = await run_in_threadpool(_claim, hub, write, offer, by, key_of(request))
            return JSONResponse({"number": number})

        return answer

    async def start(request: Request) -> Response:
        form = Form(await read_body(request), ("params", "by"))
        params, by = form.allowed_params(hub.study.definition), form.text("by", NAME_LIMIT)
        form.finish()
        number = await run_in_threadpool(desk.start, params, by, key_of(request))
        await run_in_threadpool(hub.refresh)
        return JSONResponse({"number": number})

    handlers = {
        "take": claimed(desk.take),
        "skip": claimed(desk.skip),
        "start": start,
        "tell": recorded(desk.tell, "objective", "constraints"),
        "crash": recorded(desk.crash, "reason", "constraints"),
        "transient": recorded(desk.transient, "reason"),
        "correct": recorded(desk.correct, "status", "objective", "constraints", "reason", "version"),
    }
    return [Route(f"/api/{name}", handler, methods=["POST"]) for name, handler in handlers.items()]


def _claim(hub: Hub, write: Callable[..., int], name: str, by: str, key: str | None) -> int:
    """Take or skip an offer; what the same request has done before is found by its key."""
    try:
        offer = hub.claim(name)
        try:
            return write(offer, by, key)
        finally:
            hub.gone(offer)
    except TakenError:
        before = hub.desk.find(key)
        if before is None:
            raise
        return before


def _login_route(policy: Policy) -> Route:
    async def login(request: Request) -> Response:
        form = Form(await read_body(request), ("token",))
        token = form.text("token", 400)
        form.finish()
        client = client_of(request.scope)
        if policy.guesses.too_many(client):
            return JSONResponse({"error": TOO_MANY[1]}, TOO_MANY[0])
        if not policy.knows(token):
            policy.guesses.note(client)
            return JSONResponse({"error": "The token is wrong. Open the whole address that the console printed."}, 401)
        answer = JSONResponse({"ok": True})
        secure = "https" in (request.url.scheme, *_behind(request))
        answer.set_cookie(policy.cookie, policy.session, httponly=True, samesite="strict", secure=secure, path="/")
        return answer

    return Route("/api/login", login, methods=["POST"])


def _behind(request: Request) -> tuple[str, str]:
    """The scheme that a browser sees before a proxy: what the proxy says, and what the page's own address has."""
    forwarded = request.headers.get("x-forwarded-proto", "").partition(",")[0].strip().lower()
    return forwarded, request.headers.get("origin", "").partition("://")[0].lower()
