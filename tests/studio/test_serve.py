"""How the page is started: at an address that works once, and what it sends with files that anyone may have made."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

nicegui = pytest.importorskip("nicegui")
httpx = pytest.importorskip("httpx")

from dynid.studio import page as page_module  # noqa: E402
from dynid.studio.serve import serve  # noqa: E402
from dynid.studio.session import Session  # noqa: E402
from dynid.studio.workspace import Workspace  # noqa: E402


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the server would be run with, and the address that is told."""
    found: dict[str, Any] = {}
    monkeypatch.setattr(page_module, "build", lambda session: None)
    monkeypatch.setattr(nicegui.app, "add_middleware", lambda layer, **given: found.update(guard=given))
    monkeypatch.setattr(nicegui.ui, "run", lambda **given: found.update(run=given))
    serve(tmp_path / "work", told=lambda address: found.update(address=address))
    return found


def test_the_browser_is_sent_to_the_page_with_a_ticket(started: dict[str, Any]) -> None:
    """`show` is a path, not an address, which led to a 404; the token is in no argument of the browser."""
    show = urlsplit(started["run"]["show"])
    assert (show.scheme, show.netloc, show.path) == ("", "", "/")
    ticket, token = parse_qs(show.query)["token"][0], parse_qs(urlsplit(started["address"]).query)["token"][0]
    assert ticket == started["guard"]["ticket"] and token == started["guard"]["token"] and ticket != token
    assert started["run"]["host"] == "127.0.0.1" and started["run"]["limit_concurrency"] <= 256


def test_a_page_of_the_workspace_has_no_power(tmp_path: Path) -> None:
    """An uploaded report.html gets an origin of its own: it reaches neither the page around it nor the server."""
    (tmp_path / "report.html").write_text("<script>parent.alert(1)</script>")
    page_module.build(Session(Workspace(tmp_path)))

    async def asked() -> httpx.Response:
        transport = httpx.ASGITransport(app=nicegui.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.get("/files/report.html")

    answer = asyncio.run(asked())
    policy = answer.headers["content-security-policy"]
    assert answer.status_code == 200 and "default-src 'none'" in policy and "connect-src" not in policy
    rights = policy.partition("sandbox ")[2].split()
    assert "allow-scripts" in rights and "allow-same-origin" not in rights
    assert page_module._SANDBOX.split() == rights
