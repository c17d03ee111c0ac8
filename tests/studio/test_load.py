"""The page under load and attack: many tabs, uploads at once, slow and foreign clients, and a kill in the middle.

`pytest -m slow -s tests/studio/test_load.py` prints the figures.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

httpx = pytest.importorskip("httpx")
socketio = pytest.importorskip("socketio")
websockets = pytest.importorskip("websockets")

TABS, UPLOADS, SLOW, FOREIGN, MEGABYTES = 200, 20, 20, 200, 8
# The studio as a person starts it, with less patience so that the test need not wait for minutes, and with a signal
# that makes it write down what it still holds.
PROGRAM = """
import asyncio, json, os, runpy, signal, sys
from dynid.studio import guard, patience, serve
guard._PATIENCE, patience._PERIOD, serve._RECONNECT = 6.0, 3.0, 8.0
book = sys.argv.pop(1)

def held(*_):
    from nicegui import Client, core
    tasks = sorted(task.get_coro().__qualname__ for task in asyncio.all_tasks(core.loop))
    with open(book + ".part", "w") as file:
        json.dump({"tasks": tasks, "tabs": len(Client.instances)}, file)
    os.replace(book + ".part", book)

signal.signal(signal.SIGUSR1, held)
runpy.run_module("dynid", run_name="__main__", alter_sys=True)
"""


@dataclass(frozen=True)
class Server:
    """A running studio."""

    process: subprocess.Popen[str]
    address: str
    book: Path

    @property
    def home(self) -> str:
        return self.address.split("/?")[0]

    def held(self) -> dict[str, Any]:
        """Tasks and tabs that the server holds."""
        self.book.unlink(missing_ok=True)
        self.process.send_signal(signal.SIGUSR1)
        for _ in range(200):
            if self.book.exists():
                return dict(json.loads(self.book.read_text()))
            time.sleep(0.05)
        raise AssertionError("the server does not answer its signal")

    def number(self, field: str) -> int:
        """A figure of /proc, such as VmHWM in KiB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.findall(rf"{field}:\s+(\d+)", status)[0])

    def sockets(self) -> int:
        folder, count = Path(f"/proc/{self.process.pid}/fd"), 0
        for entry in folder.iterdir():
            with suppress(OSError):
                count += os.readlink(entry).startswith("socket:")
        return count


def children(process: int) -> list[int]:
    """Processes that a process has started and that are there."""
    with suppress(OSError):
        return [int(x) for x in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    return []


@contextmanager
def studio(folder: Path, book: Path) -> Iterator[Server]:
    outside = {k: v for k, v in os.environ.items() if "PYTEST" not in k}
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(book), "studio", "twolink", str(folder), "--no-browser"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=outside,
    )
    assert process.stdout is not None
    try:
        server = Server(process, process.stdout.readline().strip(), book)
        for _ in range(240):
            with suppress(httpx.HTTPError):
                if httpx.get(server.home).status_code == 403:
                    break
            time.sleep(0.25)
        yield server
    finally:
        process.kill()
        process.wait()


def let_in(server: Server) -> dict[str, str]:
    """The cookie that the token is exchanged for."""
    answer = httpx.get(server.address)
    assert answer.status_code == 303
    name, _, value = answer.headers["set-cookie"].partition(";")[0].partition("=")
    return {name: value}


@asynccontextmanager
async def tab(server: Server, client: Any, cookie: dict[str, str]) -> AsyncIterator[str]:
    """An open page with its websocket; gives the address of its first upload."""
    page = (await client.get("/")).text
    found = re.search(r"/_nicegui/client/([\w-]+)/upload/\d+", page)
    assert found is not None, page[:500]
    socket = socketio.AsyncClient(reconnection=False)
    words = "; ".join(f"{k}={v}" for k, v in cookie.items())
    query = f"client_id={found[1]}&tab_id={found[1]}&document_id={found[1]}&next_message_id=0&implicit_handshake=true"
    await socket.connect(
        f"{server.home}/?{query}",
        headers={"Cookie": words, "Origin": server.home},
        transports=["websocket"],
        socketio_path="/_nicegui_ws/socket.io",
        wait_timeout=60,
    )
    try:
        yield found[0]
    finally:
        await socket.disconnect()


async def drip(server: Server, cookie: dict[str, str], upload: str | None) -> float:
    """Seconds until the server closes a connection that sends a byte now and then, of a request or of an upload."""
    host, port = server.home.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    started = time.monotonic()
    words = "; ".join(f"{k}={v}" for k, v in cookie.items())
    head = f"{'GET / ' if upload is None else f'POST {upload} '}HTTP/1.1\r\nHost: {host}:{port}\r\nCookie: {words}\r\n"
    if upload is not None:
        head += "Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 100000\r\n\r\n--x\r\n"
    writer.write(head.encode())
    try:
        while time.monotonic() - started < 120:
            if upload is None:
                writer.write(b"x")
                await writer.drain()
            with suppress(TimeoutError):
                if not await asyncio.wait_for(reader.read(4096), 0.5):
                    break
    except OSError:
        pass
    writer.close()
    return time.monotonic() - started


async def foreign(server: Server, cookie: dict[str, str]) -> Counter[Any]:
    """What becomes of requests with wrong tokens, hosts and origins."""
    count: Counter[Any] = Counter()
    wrong = dict.fromkeys(cookie, "wrong")
    words = "; ".join(f"{k}={v}" for k, v in cookie.items())
    async with httpx.AsyncClient(base_url=server.home, timeout=60) as client:
        for k in range(FOREIGN // 4):
            answers = [
                await client.get(f"/?token=wrong{k}"),
                await client.get("/", headers={"Cookie": "; ".join(f"{a}={b}" for a, b in wrong.items())}),
                await client.get("/", headers={"Cookie": words, "Host": "evil.example"}),
                await client.post(
                    "/_nicegui/client/x/upload/1", headers={"Cookie": words, "Origin": "http://evil.example"}
                ),
            ]
            count.update(answer.status_code for answer in answers)
    place = server.home.replace("http", "ws") + "/_nicegui_ws/socket.io/?EIO=4&transport=websocket"
    for k in range(20):
        headers = {"Cookie": words if k % 2 else ""}
        try:
            async with websockets.connect(place, additional_headers=headers, origin="http://evil.example"):
                count["a websocket was let in"] += 1
        except websockets.exceptions.InvalidStatus as error:
            count[f"websocket {error.response.status_code}"] += 1
    return count


async def patient(client: Any, seconds: list[float], until: asyncio.Event) -> None:
    """An honest client that asks for a small file, again and again."""
    while not until.is_set():
        started = time.monotonic()
        answer = await client.get("/files/kept.csv")
        assert answer.status_code == 200 and answer.content == b"t,q\n0,1\n"
        seconds.append(time.monotonic() - started)
        await asyncio.sleep(0.1)


def content(k: int) -> bytes:
    return bytes([65 + k]) * (MEGABYTES << 20)


def shown(what: str, seconds: list[float]) -> None:
    ms = 1e3 * np.array(seconds)
    print(f"{what}: median {np.median(ms):.0f} ms, 95 % {np.quantile(ms, 0.95):.0f} ms, largest {ms.max():.0f} ms")


async def storm(server: Server, cookie: dict[str, str], folder: Path) -> None:
    """All of it at once."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
    settings: dict[str, Any] = {"base_url": server.home, "cookies": cookie, "limits": limits, "timeout": 120}
    async with httpx.AsyncClient(**settings) as client:
        alone: list[float] = []
        done = asyncio.Event()
        honest = asyncio.create_task(patient(client, alone, done))
        await asyncio.sleep(3)
        done.set()
        await honest
        shown("alone", alone)
        tabs = [tab(server, client, cookie) for _ in range(TABS)]
        opening: list[float] = []
        uploads = []
        for one in tabs:
            started = time.monotonic()
            uploads.append(await one.__aenter__())
            opening.append(time.monotonic() - started)
        shown(f"opening {TABS} tabs, each", opening)
        assert server.held()["tabs"] >= TABS
        during: list[float] = []
        done = asyncio.Event()
        honest = asyncio.create_task(patient(client, during, done))
        slow = [asyncio.create_task(drip(server, cookie, uploads[k] if k % 2 else None)) for k in range(SLOW)]
        others = asyncio.create_task(foreign(server, cookie))
        started = time.monotonic()
        sent = [client.post(uploads[k], files={"file": (f"up{k}.csv", content(k))}) for k in range(UPLOADS)]
        answers = await asyncio.gather(*sent)
        print(f"{UPLOADS} uploads of {MEGABYTES} MiB: {time.monotonic() - started:.1f} s")
        assert [answer.status_code for answer in answers] == [200] * UPLOADS
        refused = await others
        print(f"refusals: {dict(refused)}")
        dropped = await asyncio.gather(*slow)
        print(f"slow clients dropped after {min(dropped):.0f} to {max(dropped):.0f} s")
        done.set()
        await honest
        shown(f"beside {TABS} tabs, {UPLOADS} uploads, {SLOW} slow and {FOREIGN} foreign requests", during)
        for k in range(UPLOADS):
            assert (folder / f"up{k}.csv").read_bytes() == content(k)
        assert refused == {403: 3 * FOREIGN // 4, 421: FOREIGN // 4, "websocket 403": 20}
        assert max(dropped) < 60
        assert np.median(during) < 2.0  # an honest client is served meanwhile
        for one in tabs:
            await one.__aexit__(None, None, None)


async def visits(server: Server, cookie: dict[str, str], count: int) -> None:
    """Tabs that are opened and closed, one after another."""
    async with httpx.AsyncClient(base_url=server.home, cookies=cookie, timeout=60) as client:
        for _ in range(count):
            async with tab(server, client, cookie):
                pass


def settled(server: Server) -> dict[str, Any]:
    """What the server holds when all tabs are forgotten; they are kept for a while, since a tab may come back."""
    for _ in range(60):
        found = server.held()
        if not found["tabs"] and not [name for name in found["tasks"] if name.startswith("RequestResponseCycle")]:
            break
        time.sleep(1)
    return found


@pytest.mark.slow
def test_an_honest_client_is_served_and_nothing_is_left_behind(tmp_path: Path) -> None:
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "kept.csv").write_bytes(b"t,q\n0,1\n")
    with studio(folder, tmp_path / "book.json") as server:
        cookie = let_in(server)
        asyncio.run(visits(server, cookie, 1))
        before, sockets, memory = settled(server), server.sockets(), server.number("VmRSS")
        asyncio.run(storm(server, cookie, folder))
        after, grown = settled(server), server.number("VmRSS")
        asyncio.run(visits(server, cookie, TABS))
        after = settled(server)
        print(f"tasks {len(before['tasks'])} -> {len(after['tasks'])}, tabs {before['tabs']} -> {after['tabs']}")
        print(f"sockets {sockets} -> {server.sockets()}, processes {len(children(server.process.pid))}")
        again = server.number("VmRSS")
        print(f"memory {memory >> 10} -> {grown >> 10}, after {TABS} more tabs {again >> 10} MiB")
        print(f"peak {server.number('VmHWM') >> 10} MiB")
        assert after["tabs"] <= before["tabs"] and server.sockets() <= sockets
        assert Counter(after["tasks"]) - Counter(before["tasks"]) == Counter()
        assert not children(server.process.pid)
        assert server.number("VmHWM") < 2 << 20 and again - grown < 50 << 10  # closed tabs are forgotten
        asyncio.run(_killed_in_the_middle(server, cookie))
    names = {f"up{k}.csv" for k in range(UPLOADS)}
    for k in range(UPLOADS):  # whole, or as it was
        assert (folder / f"up{k}.csv").read_bytes() == content(k)
    new = [p for p in folder.iterdir() if p.name.startswith("new")]
    assert all(p.read_bytes() == content(int(p.stem[3:])) for p in new)
    with studio(folder, tmp_path / "book.json") as server:
        cookie = let_in(server)
        assert httpx.get(f"{server.home}/files/kept.csv", cookies=cookie).content == b"t,q\n0,1\n"
        page = httpx.get(server.home, cookies=cookie)
        assert page.status_code == 200 and "up3.csv" in page.text
        assert {p.name for p in folder.iterdir()} == names | {"kept.csv", "dynid.toml"} | {p.name for p in new}
    print(
        f"killed in the middle of {UPLOADS} uploads: {len(new)} of them whole, the others absent; no other file changed"
    )


async def _killed_in_the_middle(server: Server, cookie: dict[str, str]) -> None:
    """Kill the server while uploads are under way."""
    async with (
        httpx.AsyncClient(base_url=server.home, cookies=cookie, timeout=60) as client,
        tab(server, client, cookie) as upload,
    ):
        sent = [client.post(upload, files={"file": (f"new{k}.csv", content(k))}) for k in range(UPLOADS)]
        under_way = asyncio.gather(*sent, return_exceptions=True)
        await asyncio.sleep(0.5)
        server.process.kill()
        await under_way
