"""Connections that do nothing are closed, those that are served are not."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

uvicorn = pytest.importorskip("uvicorn")

from dynid.studio import patience  # noqa: E402

PERIOD = 0.1


async def page(scope: Any, receive: Any, send: Any) -> None:
    """Answers at once, after a while (/late), or with more than a connection holds (/large)."""
    assert scope["type"] == "http"
    if scope["path"] == "/late":
        await asyncio.sleep(5 * PERIOD)
    size = 64 << 20 if scope["path"] == "/large" else 4
    length = str(size).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
    await send({"type": "http.response.body", "body": bytes(size)})


def served(client: Callable[[int], Awaitable[Any]], monkeypatch: pytest.MonkeyPatch) -> tuple[Any, int]:
    """What a client of the server returns, and the connections that are left a while later."""
    monkeypatch.setattr(patience, "_PERIOD", PERIOD)

    async def story() -> tuple[Any, int]:
        config = uvicorn.Config(page, port=0, http=patience.PatientProtocol, log_level="error", lifespan="off")
        server = uvicorn.Server(config)
        running = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        found = await asyncio.wait_for(client(port), 20)
        for _ in range(100):
            if not server.server_state.connections:
                break
            await asyncio.sleep(PERIOD / 2)
        left = len(server.server_state.connections)
        server.should_exit = True
        await running
        return found, left

    return asyncio.run(story())


async def ended(reader: asyncio.StreamReader) -> bool:
    try:
        return not await reader.read(1)
    except ConnectionError:
        return True


@pytest.mark.parametrize("head", [b"", b"GET / HTTP/1.1\r\nHost: x\r\nX: "])
def test_a_request_that_does_not_end_is_closed(head: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing at all, or a byte now and then; also after a request that was served."""

    async def client(port: int) -> bool:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        if head:  # a first request is answered
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            await reader.readuntil(bytes(4))
        writer.write(head)
        asked = asyncio.create_task(ended(reader))
        while not asked.done():
            if head:
                writer.write(b"x")
            await asyncio.sleep(PERIOD / 4)
        writer.close()
        return asked.result()

    assert served(client, monkeypatch) == (True, 0)


def test_an_answer_that_nobody_reads_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def client(port: int) -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
        writer.write(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
        await asyncio.sleep(6 * PERIOD)
        client.writer = writer  # type: ignore[attr-defined]

    assert served(client, monkeypatch) == (None, 0)


def test_an_answer_that_takes_long_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    async def client(port: int) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        started = time.monotonic()
        writer.write(b"GET /late HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        answer = await reader.read()
        assert time.monotonic() - started > 4 * PERIOD
        writer.close()
        return answer[:15]

    assert served(client, monkeypatch)[0] == b"HTTP/1.1 200 OK"
