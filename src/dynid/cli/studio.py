"""The local web page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from dynid.cli import options
from dynid.cli.app import app


@app.command()
def studio(
    robot: options.RobotArgument = None,
    out: Annotated[
        Path | None,
        typer.Argument(
            metavar="OUT",
            help="Workspace: the one folder that the page reads and writes. "
            "[dynid-studio; without ROBOT the folder of dynid.toml]",
        ),
    ] = None,
    host: Annotated[
        str,
        typer.Option(help="Address to listen on; others than 127.0.0.1 open the page to the network."),
    ] = ("127.0.0.1"),
    port: Annotated[int, typer.Option(help="Port. [a free one]", min=0, max=65535)] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
) -> None:
    """Open a local page: load a robot, design a motion, check recordings, identify, look, export.

    Example: dynid studio tx40 work
    """
    from dynid.cli.project import find_project
    from dynid.studio.serve import serve

    if out is None:
        project = find_project(None) if robot is None else None
        out = Path("dynid-studio") if project is None else project.folder
    if host != "127.0.0.1":
        print(f"warning: the page listens on {host}; anyone with its token can use it", file=sys.stderr)
    serve(out, robot, host=host, port=port, open_browser=browser, told=lambda address: print(address, flush=True))
