"""Start the page: on this computer alone, behind a token."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable
from pathlib import Path

from dynid.errors import InvalidValue, MissingPackage, NotWritable
from dynid.files import remove_left_over
from dynid.studio.guard import Guard
from dynid.studio.session import Session
from dynid.studio.workspace import UPLOAD_LIMIT, Workspace

__all__ = ["serve"]

# Connections at a time; more are answered with "503 Service Unavailable".
_CONNECTIONS = 256
# Seconds for which a page that lost its connection is kept. A long log that is read on a busy computer can hold up the
# server for some seconds; a page that was given up would load again and forget what was chosen.
_RECONNECT = 60.0


def serve(
    folder: Path,
    robot: str | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    open_browser: bool = True,
    told: Callable[[str], None] = print,
) -> None:
    """Serve the page of a workspace until interrupted; `told` hears its address, which holds the token."""
    try:
        from nicegui import app, ui
    except ImportError:
        raise MissingPackage("the studio needs nicegui: pip install 'dynid[studio]'") from None
    from dynid.studio.page import build
    from dynid.studio.patience import PatientProtocol

    try:
        folder.mkdir(parents=True, exist_ok=True)
        remove_left_over(folder)  # of a page that was killed
    except OSError as error:
        raise NotWritable(f"the workspace '{folder}' cannot be made: {error}", "workspace") from None
    session = Session(Workspace(folder))
    if robot is not None:
        session.adopt(robot)
    port = port or _free_port(host)
    # The browser gets an address that works once: the arguments of a process can be read by all users.
    token, ticket = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
    names = ("127.0.0.1", "localhost") if host == "127.0.0.1" else (host,)
    hosts = tuple(f"{name}:{port}" for name in names)
    app.add_middleware(Guard, token=token, hosts=hosts, limit=UPLOAD_LIMIT + 2**20, ticket=ticket)
    build(session)
    address = f"http://{hosts[0]}/?token={token}"
    told(address)
    ui.run(
        host=host,
        port=port,
        title="dynid studio",
        show=f"/?token={ticket}" if open_browser else False,
        reload=False,
        show_welcome_message=False,
        favicon="⚙️",
        limit_concurrency=_CONNECTIONS,
        http=PatientProtocol,
        reconnect_timeout=_RECONNECT,
    )


def _free_port(host: str) -> int:
    with socket.socket() as probe:
        try:
            probe.bind((host, 0))
        except OSError as error:
            raise InvalidValue(f"this computer cannot listen on '{host}': {error}", "host") from None
        return int(probe.getsockname()[1])
