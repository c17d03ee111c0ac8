"""Whether the installation is complete."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from dynid.cli.app import Json, app


@app.command()
def doctor(
    models: Annotated[
        Path | None,
        typer.Option("--models", metavar="FOLDER", help="Check the robot files below a folder instead, one line each."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check the installation, or that robot files load and agree with MuJoCo or Pinocchio; exit code 1 if not.

    Example: dynid doctor

    Example: dynid doctor --models .
    """
    if models is not None:
        _check_models(models, as_json)
        return
    from dynid.cli.examine import examine

    found = examine()
    if as_json:
        print(json.dumps(found.to_dict(), indent=2))
    else:
        width = max(len(line.name) for line in found.lines)
        for line in found.lines:
            mark = "ok" if line.ok else "MISSING" if line.needed else "-"
            print(f"{line.topic:<9}{line.name:<{width}}  {mark:<8}{line.state}")
            if line.advice:
                print(f"{'':<{9 + width + 10}}{line.advice}")
    if not found.healthy:
        raise typer.Exit(1)


def _check_models(folder: Path, as_json: bool) -> None:
    """Load and compare every robot file below a folder."""
    from dynid.assessment.model.collection import check_models

    found = check_models(folder, progress=None if as_json else lambda model: print(model.line(), flush=True))
    print(json.dumps(found.to_dict(), indent=2) if as_json else found.summary())
    if not found.ok:
        raise typer.Exit(1)
