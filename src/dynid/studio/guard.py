"""Who may talk to the page: holders of its token, on this computer, from its own origin, in bounded requests."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

__all__ = ["Guard"]

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; connect-src 'self' ws: blob: data:; worker-src 'self' blob:; frame-ancestors 'self'; "
    "object-src 'none'; base-uri 'self'; form-action 'self'"
)


class Guard:
    """ASGI layer around a page.

    The first visit carries the token in its address and is answered with a cookie and the address without it. Requests
    must name a host of ours (a foreign site that resolves to this computer does not), and come from no other origin.
    """

    def __init__(self, app: App, *, token: str, hosts: tuple[str, ...], limit: int) -> None:
        self.app, self.token, self.hosts, self.limit = app, token, hosts, limit
        self.cookie = f"dynid_{hosts[0].rsplit(':', 1)[-1]}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers = {k.decode("latin-1").lower(): v.decode("latin-1") for k, v in scope["headers"]}
        refused = self.refusal(headers)
        query = dict(parse_qsl(scope.get("query_string", b"").decode("latin-1")))
        given = query.pop("token", None)
        if refused is None and not self._knows(headers.get("cookie", "")):
            if scope["type"] == "http" and given is not None and secrets.compare_digest(given.encode(), self._token):
                await self._let_in(scope["path"], query, send)
                return
            refused = 403, "this page asks for its token: open the address that `dynid studio` printed"
        if refused is not None:
            await _refuse(scope, send, *refused)
            return
        await self.app(scope, self._counted(receive), _with_policy(send))

    @property
    def _token(self) -> bytes:
        return self.token.encode()

    def refusal(self, headers: dict[str, str]) -> tuple[int, str] | None:
        """Status and reason why a request is not even asked for its token."""
        if headers.get("host", "") not in self.hosts:
            return 421, "this page is served only under its own address"
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc not in self.hosts:
            return 403, "requests of other sites are refused"
        try:
            length = int(headers.get("content-length", "0"))
        except ValueError:
            return 400, "a content length that is no number"
        if length > self.limit:
            return 413, f"the request has {length} bytes, {self.limit} are allowed"
        return None

    def _knows(self, cookies: str) -> bool:
        try:
            morsel = SimpleCookie(cookies).get(self.cookie)
        except CookieError:
            return False
        return morsel is not None and secrets.compare_digest(morsel.value.encode(), self._token)

    async def _let_in(self, path: str, query: dict[str, str], send: Send) -> None:
        where = path + (f"?{urlencode(query)}" if query else "")
        # Two slashes at the start would name another host.
        where = "/" + where.lstrip("/\\")
        cookie = f"{self.cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict"
        headers = [(b"location", where.encode("latin-1")), (b"set-cookie", cookie.encode()), (b"content-length", b"0")]
        await send({"type": "http.response.start", "status": 303, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    def _counted(self, receive: Receive) -> Receive:
        """The same request, cut off where it grows beyond the limit without having said so."""
        seen = 0

        async def limited() -> Message:
            nonlocal seen
            message = await receive()
            if message["type"] == "http.request":
                seen += len(message.get("body", b""))
                if seen > self.limit:
                    return {"type": "http.disconnect"}
            return message

        return limited


async def _refuse(scope: Scope, send: Send, status: int, reason: str) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": reason[:120]})
        return
    body = f"{reason}\n".encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _with_policy(send: Send) -> Send:
    """Answers tell the browser to load nothing from elsewhere, and to guess no types."""

    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            names = {k.lower() for k, _ in message["headers"]}
            more = [(b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"no-referrer")]
            if b"content-security-policy" not in names:
                more.append((b"content-security-policy", _POLICY.encode()))
            message = {**message, "headers": [*message["headers"], *more]}
        await send(message)

    return guarded
