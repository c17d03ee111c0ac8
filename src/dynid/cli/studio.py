"""The local web page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from dynid.cli import complete
from dynid.cli.app import app


@app.command()
def studio(
    robot: Annotated[
        str | None,
        typer.Argument(
            metavar="ROBOT", autocompletion=complete.robots, help="URDF, MJCF, SDF or TOML file, or a built-in name."
        ),
    ] = None,
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="Workspace: the one folder that the page reads and writes.")
    ] = Path("dynid-studio"),
    host: Annotated[str, typer.Option(help="Address to listen on; others than this machine's are at your risk.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(help="Port. [a free one]", min=0, max=65535)] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
) -> None:
    """Open a local page: load a robot, design a motion, check recordings, identify, look, export.

    Example: dynid studio tx40 work
    """
    from dynid.studio.serve import serve

    if host != "127.0.0.1":
        print(f"warning: the page listens on {host}; whoever has its token can use it", file=sys.stderr)
    serve(out, robot, host=host, port=port, open_browser=browser, told=lambda address: print(address, flush=True))
