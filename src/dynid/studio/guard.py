"""Who may talk to the page: holders of its token, on this computer, from its own origin, in bounded requests."""

from __future__ import annotations

import asyncio
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

# The sockets are those of the page itself: a script that got in could not talk to another server.
_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; connect-src 'self' {sockets} blob: data:; worker-src 'self' blob:; "
    "frame-ancestors 'self'; object-src 'none'; base-uri 'self'; form-action 'self'"
)
# Seconds without a byte after which the upload of a client is given up.
_PATIENCE = 60.0


class Guard:
    """ASGI layer around a page.

    The first visit carries the token in its address and is answered with a cookie and the address without it. A ticket
    does the same once: it is for addresses that other users of this computer may see, such as the arguments of a
    browser. Requests must name a host of ours (a foreign site that resolves to this computer does not), and come from
    no other origin.
    """

    def __init__(self, app: App, *, token: str, hosts: tuple[str, ...], limit: int, ticket: str | None = None) -> None:
        self.app, self.token, self.hosts, self.limit = app, token, hosts, limit
        self.cookie = f"dynid_{hosts[0].rsplit(':', 1)[-1]}"
        self._ticket = ticket
        self._policy = _POLICY.format(sockets=" ".join(f"ws://{host}" for host in hosts)).encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers = {k.decode("latin-1").lower(): v.decode("latin-1") for k, v in scope["headers"]}
        refused = self.refusal(headers)
        query = dict(parse_qsl(scope.get("query_string", b"").decode("latin-1")))
        given = query.pop("token", None)
        if refused is None and not self._knows(headers.get("cookie", "")):
            if scope["type"] == "http" and given is not None and self._admits(given):
                await self._let_in(scope["path"], query, send)
                return
            refused = 403, "this page asks for its token: open the address that `dynid studio` printed"
        if refused is not None:
            await _refuse(scope, send, *refused)
            return
        await self._passed_on(scope, receive, send)

    def _admits(self, given: str) -> bool:
        """Whether a visit has the token, or the ticket for the first time."""
        if self._ticket is not None and secrets.compare_digest(given.encode(), self._ticket.encode()):
            self._ticket = None
            return True
        return secrets.compare_digest(given.encode(), self._token)

    @property
    def _token(self) -> bytes:
        return self.token.encode()

    def refusal(self, headers: dict[str, str]) -> tuple[int, str] | None:
        """Status and reason why a request is not even asked for its token."""
        if headers.get("host", "") not in self.hosts:
            return 421, "this page is served only under its own address"
        origin = headers.get("origin")
        try:
            ours = origin is None or urlsplit(origin).netloc in self.hosts
        except ValueError:  # no address at all
            ours = False
        if not ours:
            return 403, "requests of other sites are refused"
        try:
            length = int(headers.get("content-length", "0"))
        except ValueError:
            return 400, "a content length that is no number"
        if length > self.limit:
            return 413, f"the request has {length} bytes, {self.limit} are allowed"
        if length < 0:
            return 400, "a content length below zero"
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

    async def _passed_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Give the request to the page; one that grows beyond the limit or stops is refused, whatever it said."""
        seen, started, complete = 0, False, False
        refused: tuple[int, str] | None = None

        async def limited() -> Message:
            nonlocal seen, complete, refused
            if scope["type"] != "http" or complete:  # what comes now is the end of the connection
                return await receive()
            try:
                message = await asyncio.wait_for(receive(), _PATIENCE)
            except TimeoutError:
                refused = 408, "the request stopped before its end"
                return {"type": "http.disconnect"}
            if message["type"] == "http.request":
                complete = not message.get("more_body", False)
                seen += len(message.get("body", b""))
                if seen > self.limit:
                    refused = 413, f"the request has more than {self.limit} bytes"
                    return {"type": "http.disconnect"}
            return message

        async def guarded(message: Message) -> None:
            nonlocal started
            if refused is not None and not started:
                return  # told below instead
            started = True
            await send(self._with_policy(message))

        try:
            await self.app(scope, limited, guarded)
        except Exception:
            if refused is None:  # the page gave up because its request ended early
                raise
        if refused is not None and not started:
            await _refuse(scope, send, *refused)

    def _with_policy(self, message: Message) -> Message:
        """An answer that tells the browser to load nothing from elsewhere, and to guess no types."""
        if message["type"] != "http.response.start":
            return message
        names = {k.lower() for k, _ in message["headers"]}
        more = [(b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"no-referrer")]
        if b"content-security-policy" not in names:
            more.append((b"content-security-policy", self._policy))
        return {**message, "headers": [*message["headers"], *more]}


async def _refuse(scope: Scope, send: Send, status: int, reason: str) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": reason[:120]})
        return
    body = f"{reason}\n".encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
