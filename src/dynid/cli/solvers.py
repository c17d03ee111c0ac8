"""One feasible fit by all solvers of this computer, and as a file for others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from dynid.cli import options, values
from dynid.cli.app import Json, app, check_outputs, wrote
from dynid.cli.inputs import Inputs
from dynid.cli.output import show
from dynid.cli.progress import working
from dynid.cli.wrap import with_logs


@app.command()
@with_logs
def solvers(
    inputs: Inputs,
    data: options.Data = None,
    only: Annotated[
        str | None, typer.Option(help="Solvers to compare with ours, separated by commas. [all of this computer]")
    ] = None,
    solution: Annotated[
        Path | None, typer.Option(help="Solution that CSDP or SDPA has found for the file of --output.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the problem as an SDPA sparse file (.dat-s).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Solve one physically consistent fit with several solvers and compare what they find.

    The problem is weighted least squares over physically consistent robots, near the a-priori one. Exit code 1 if the
    solvers disagree on its cost by more than a millionth, or one of them breaks a constraint.

    Example: dynid solvers arm.urdf run.csv

    Example: dynid solvers arm.urdf run.csv --only csdp,CVXOPT -o problem.dat-s
    """
    from dataclasses import replace

    from dynid.identification.observing import observe
    from dynid.identification.other_solvers import feasible_problem

    check_outputs(output)
    observation = observe(inputs.robot, inputs.read(), signals=inputs.signals())
    problem = feasible_problem(observation)
    if output is not None:
        problem.write_sdpa(output)
        wrote(output)
    # A file is for another solver: ours alone is compared with it, unless others are named.
    others = None if output is None and solution is None else list[str]()
    given = others if only is None else values.names(only)
    read = [] if solution is None else [problem.read_sdpa(solution)]
    with working("solving") as work:
        found = problem.compare(given, work.report)
    found = replace(found, results=(*found.results, *read))
    if as_json:
        rows = [
            {
                "solver": x.solver,
                "failure": x.failure or None,
                "cost": None if x.failure else x.cost,
                "excess": None if x.failure else found.excess(x),
                "difference": None if x.failure else found.difference(x),
                "margin": None if x.failure else x.margin,
                "seconds": x.seconds,
            }
            for x in found.results
        ]
        print(json.dumps({"agree": found.agrees(), "solvers": rows}, indent=2))
    else:
        show(found.summary())
        print("The solvers agree." if found.agrees() else "The solvers do not agree.")
    if not found.agrees():
        raise typer.Exit(1)
