"""Who is let in to the page, and who is not."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dynid.studio.guard import Guard

TOKEN = "right-token"
HOST = "127.0.0.1:8123"
COOKIE = f"dynid_8123={TOKEN}"


def asked(
    headers: dict[str, str], *, path: str = "/", query: str = "", kind: str = "http", body: tuple[bytes, ...] = (b"",)
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What the guard answers, and what the page behind it got to read."""
    reached: list[dict[str, Any]] = []
    answers: list[dict[str, Any]] = []

    async def page(scope: Any, receive: Any, send: Any) -> None:
        for _ in body:
            reached.append(await receive())
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"page"})

    parts = iter(body)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": next(parts), "more_body": True}

    async def send(message: dict[str, Any]) -> None:
        answers.append(message)

    scope = {
        "type": kind,
        "path": path,
        "query_string": query.encode(),
        "headers": [(k.encode(), v.encode()) for k, v in headers.items()],
    }
    asyncio.run(Guard(page, token=TOKEN, hosts=(HOST, "localhost:8123"), limit=100)(scope, receive, send))  # type: ignore[arg-type]
    return answers, reached


def status(*arguments: Any, **options: Any) -> int:
    return int(asked(*arguments, **options)[0][0]["status"])


def test_the_token_is_exchanged_for_a_cookie() -> None:
    """The first visit is sent on without the token in its address, where it would stay in the history."""
    answers, reached = asked({"host": HOST}, query=f"token={TOKEN}&tab=2")
    headers = dict(answers[0]["headers"])
    assert answers[0]["status"] == 303 and not reached
    assert headers[b"location"] == b"/?tab=2"
    assert b"HttpOnly" in headers[b"set-cookie"] and b"SameSite=Strict" in headers[b"set-cookie"]
    assert status({"host": HOST, "cookie": COOKIE}) == 200


def test_a_visit_with_the_token_is_not_sent_to_another_host() -> None:
    """A path of two slashes would be read as a host by browsers."""
    answers, _ = asked({"host": HOST}, path="//evil.example/x", query=f"token={TOKEN}")
    assert dict(answers[0]["headers"])[b"location"] == b"/evil.example/x"


@pytest.mark.parametrize(
    ("headers", "query", "code"),
    [
        ({"host": HOST}, "", 403),
        ({"host": HOST}, "token=wrong", 403),
        ({"host": HOST, "cookie": "dynid_8123=wrong"}, "", 403),
        ({"host": HOST, "cookie": "dynid_9999=right-token"}, "", 403),
        ({"host": HOST, "cookie": "no=cookie; ;;="}, "", 403),
        ({"host": "evil.example:8123", "cookie": COOKIE}, "", 421),
        ({"host": "evil.example:8123"}, f"token={TOKEN}", 421),
        ({"cookie": COOKIE}, "", 421),
        ({"host": HOST, "cookie": COOKIE, "origin": "http://evil.example"}, "", 403),
        ({"host": HOST, "cookie": COOKIE, "origin": "null"}, "", 403),
        ({"host": HOST, "cookie": COOKIE, "origin": "http://[::1"}, "", 403),
        ({"host": HOST, "cookie": COOKIE, "content-length": "-1"}, "", 400),
        ({"host": HOST, "cookie": COOKIE, "content-length": "101"}, "", 413),
        ({"host": HOST, "cookie": COOKIE, "content-length": "many"}, "", 400),
    ],
)
def test_others_are_refused(headers: dict[str, str], query: str, code: int) -> None:
    """No token, a wrong one, a foreign host or origin, too much at once: the page behind never hears of it."""
    answers, reached = asked(headers, query=query)
    assert answers[0]["status"] == code and not reached
    assert TOKEN.encode() not in answers[1]["body"]


def test_its_own_origin_is_let_in() -> None:
    assert status({"host": HOST, "cookie": COOKIE, "origin": f"http://{HOST}"}) == 200


def test_websockets_are_guarded_alike() -> None:
    """A page of another site may open websockets to any host, so they count most."""
    for headers in ({"host": HOST}, {"host": HOST, "cookie": COOKIE, "origin": "http://evil.example"}):
        answers, reached = asked(headers, kind="websocket")
        assert answers[0]["type"] == "websocket.close" and not reached


def test_a_body_that_grows_is_cut_off() -> None:
    """Without a stated length the bytes are counted on their way, and the client is told what was wrong."""
    answers, reached = asked({"host": HOST, "cookie": COOKIE}, body=(b"x" * 60, b"x" * 60))
    assert [m["type"] for m in reached] == ["http.request", "http.disconnect"]
    assert answers[0]["status"] == 413


def test_a_client_that_stops_in_the_middle_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dynid.studio.guard._PATIENCE", 0.02)
    answers: list[dict[str, Any]] = []

    async def page(scope: Any, receive: Any, send: Any) -> None:
        if (await receive())["type"] == "http.disconnect":
            raise ConnectionError("the client is gone")

    async def never() -> dict[str, Any]:
        await asyncio.sleep(60)
        return {}

    async def send(message: Any) -> None:
        answers.append(message)

    headers = [(b"host", HOST.encode()), (b"cookie", COOKIE.encode())]
    scope = {"type": "http", "path": "/", "query_string": b"", "headers": headers}
    asyncio.run(Guard(page, token=TOKEN, hosts=(HOST,), limit=100)(scope, never, send))
    assert answers[0]["status"] == 408


def test_a_ticket_is_good_for_one_visit() -> None:
    """The address that a browser is started with can be read by other users of the computer."""
    guard = Guard(_nothing, token=TOKEN, hosts=(HOST,), limit=100, ticket="one-visit")
    codes = []

    async def send(message: Any) -> None:
        codes.append(message.get("status"))

    for query in (b"token=one-visit", b"token=one-visit", f"token={TOKEN}".encode()):
        scope = {"type": "http", "path": "/", "query_string": query, "headers": [(b"host", HOST.encode())]}
        asyncio.run(guard(scope, _nothing, send))  # type: ignore[arg-type]
    assert [code for code in codes if code is not None] == [303, 403, 303]


async def _nothing(*_: Any) -> None:
    pass


def test_answers_forbid_what_is_elsewhere() -> None:
    answers, _ = asked({"host": HOST, "cookie": COOKIE})
    headers = dict(answers[0]["headers"])
    policy = headers[b"content-security-policy"].decode()
    assert "default-src 'self'" in policy
    assert f"connect-src 'self' ws://{HOST} ws://localhost:8123 blob: data:;" in policy
    assert headers[b"x-content-type-options"] == b"nosniff"
