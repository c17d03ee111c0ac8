"""Whether the installation is complete."""

from __future__ import annotations

import json

import typer

from dynid.cli.app import Json, app


@app.command()
def doctor(as_json: Json = False) -> None:
    """Check the installation: versions, extras, compilers, caches, data; exit code 1 if a required part is missing.

    Example: dynid doctor
    """
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
