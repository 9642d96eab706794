"""What stands before the routes: size of the body, the key, and the headers that keep a browser safe."""

from __future__ import annotations

import asyncio
import hmac

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regard.serve.problems import Problem, problem_response
from regard.serve.settings import KEY_VARIABLE

__all__ = ["BodyLimit", "KeyGuard", "SafeHeaders", "check_key", "key_of"]

_CONTENT_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
_HEADERS = {
    # Pages change with the version of the package; browsers ask whether theirs is still the same.
    "Cache-Control": "no-cache",
    "Content-Security-Policy": _CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class SafeHeaders:
    """Adds the headers that keep a page from loading, sending or being framed elsewhere."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""

        async def adding(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self.app(scope, receive, adding if scope["type"] == "http" else send)


class BodyLimit:
    """Reads the body, refuses one that is too large or comes too slowly, and hands it on in one piece."""

    def __init__(self, app: ASGIApp, *, max_body: int, timeout: float) -> None:
        self.app, self.max_body, self.timeout = app, max_body, timeout

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it if its body will not do."""
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self.app(scope, receive, send)
            return
        try:
            body = await self._read(Headers(scope=scope), receive)
        except Problem as problem:
            await problem_response(problem)(scope, receive, send)
            return
        if body is None:  # the client has gone
            return
        given = False

        async def replay() -> Message:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self.app(scope, replay, send)

    async def _read(self, headers: Headers, receive: Receive) -> bytes | None:
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length[:20]) > self.max_body:
            raise self._too_large()
        try:
            return await asyncio.wait_for(self._collect(receive), self.timeout)
        except asyncio.TimeoutError:
            raise Problem(
                408, "slow_body", f"the body did not arrive within {self.timeout:g} s; send it at once"
            ) from None

    async def _collect(self, receive: Receive) -> bytes | None:
        parts, size, more = [], 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self.max_body:
                raise self._too_large()
            more = message.get("more_body", False)
        return b"".join(parts)

    def _too_large(self) -> Problem:
        return Problem(
            413, "body_too_large", f"the body is over {self.max_body:,} bytes; send fewer inputs at a time"
        )


def key_of(headers: Headers) -> str | None:
    """The key that a request shows in its headers."""
    scheme, _, value = headers.get("authorization", "").partition(" ")
    return value.strip() if scheme.lower() == "bearer" else headers.get("x-api-key")


def check_key(expected: str | None, shown: str | None) -> None:
    """Compare keys in constant time.

    Raises:
        Problem: A key is needed, and this is none or another.
    """
    if expected is None or (shown is not None and hmac.compare_digest(shown.encode(), expected.encode())):
        return
    found = "no API key" if not shown else "another API key than the server's"
    raise Problem(
        401,
        "key",
        f"the request shows {found}; send the value of {KEY_VARIABLE} as `Authorization: Bearer KEY`",
        headers={"WWW-Authenticate": "Bearer"},
    )


class KeyGuard:
    """Asks for the key where a path begins with one of ``guarded``, before anything of the body is read."""

    def __init__(self, app: ASGIApp, *, key: str | None, guarded: tuple[str, ...]) -> None:
        self.app, self.key, self.guarded = app, key, guarded

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "http" and scope["path"].startswith(self.guarded):
            try:
                check_key(self.key, key_of(Headers(scope=scope)))
            except Problem as problem:
                await problem_response(problem)(scope, receive, send)
                return
        await self.app(scope, receive, send)
