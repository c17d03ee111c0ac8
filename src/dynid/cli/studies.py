"""Demonstration, reproductions and the benchmark."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynid.cli import complete, options, values
from dynid.cli.app import Json, app, check_outputs, write, wrote
from dynid.cli.output import error_lines, mass_lines, show, verdict_lines
from dynid.cli.progress import working
from dynid.errors import DynidError
from dynid.files import writing_bytes
from dynid.progress import Progress

if TYPE_CHECKING:
    from studies.reproduce.study import Figure, Study


_AFTER_DEMO = (
    "  - every parameter beside its true value: dynid demo --table",
    "  - your own robot: dynid init ROBOT LOGS, then dynid check and dynid identify",
)


def need_checkout() -> None:
    """Make the folder `studies` of the source checkout importable; it is not part of the wheel."""
    root = Path(__file__).parents[3]
    if not (root / "studies" / "__init__.py").is_file():
        raise DynidError(
            "the studies are not part of the installed package: clone the repository and run "
            "'pip install -e .' there, then this command finds them",
            code="missing_package",
        )
    if str(root) not in sys.path:
        sys.path.append(str(root))


@app.command()
def demo(
    figure: options.Figure = None,
    report: Annotated[Path, typer.Option(help="File of the HTML report.")] = Path("tx40-report.html"),
    table: options.ParameterTable = False,
    as_json: Json = False,
) -> None:
    """Identify a TX40 from a recording that is simulated on the spot, and write a report.

    Example: dynid demo
    """
    from dynid.cli.demo import run_demo
    from dynid.identification.summary import truth_text

    check_outputs(figure, report)
    with working("simulating two recordings of a TX40 (encoders, 2 % torque noise) and identifying it"):
        result = run_demo()
    with working("assessing the estimate and writing the report"):
        assessment = result.report(report)
    if as_json:
        page = {
            "estimate": result.estimate.to_dict(),
            "truth": dict(zip(result.estimate.base.names, result.truth.tolist(), strict=True)),
            "validation": result.validation.to_dict(),
            "verdict": assessment.to_dict(),
            "report": str(report),
        }
        print(json.dumps(page, indent=2))
    else:
        if table:
            show(truth_text(result.estimate, result.truth))
            show(result.validation.summary())
        show("\n".join([*error_lines(result.estimate, result.validation), *mass_lines(result.estimate)]))
        show("\n".join([*verdict_lines(assessment, report), "next:", f"  - open {report} in a browser", *_AFTER_DEMO]))
    if figure is not None:
        from dynid.report.torques import torque_figure

        write(figure, torque_figure(result.validation, "TX40, predicted from another motion"))
    wrote(report)


@app.command()
def reproduce(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", autocompletion=complete.studies, help="Name of the study. [all of them]"),
    ] = None,
    as_json: Json = False,
    failed_only: Annotated[bool, typer.Option("--failed-only", help="Print only figures out of tolerance.")] = False,
    full: Annotated[bool, typer.Option("--full", help="The longer form, with more runs or cases.")] = False,
    half: Annotated[
        str | None,
        typer.Option(
            help="Only this half of the cases: 'development' or 'held back' (verdicts, fleet, bodies, regret). [both]"
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Keep finished parts here; a second call of this version does only what is missing.",
        ),
    ] = None,
    store: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Store the figures here as JSON; docs/studies is read by the pages."),
    ] = None,
) -> None:
    """Recompute published figures and print each beside ours; exit code 1 if one is out of tolerance.

    Example: dynid reproduce structure
    """
    need_checkout()
    from studies.reproduce.page import print_study
    from studies.reproduce.registry import find_study, studies
    from studies.reproduce.stored import plain, store_output, stored_count
    from studies.reproduce.study import has_data

    chosen = [find_study(name)] if name else list(studies().values())
    _check_options(chosen, full=full, half=half, folder=folder)
    if store is not None and half is not None:
        raise DynidError("--store keeps the figures of all cases; leave --half out", "half", code="conflicting")
    out: list[dict[str, Any]] = []
    failures = 0
    for place, study in enumerate(chosen, start=1):
        if name is None and study.needs_data and not has_data():
            print(f"dynid: {study.name} skipped, the real recordings are not there (DYNID_DATA)", file=sys.stderr)
            continue
        which = study.name if len(chosen) == 1 else f"{study.name}, study {place}/{len(chosen)}"
        run = partial(study.figures, full=full, half=half, folder=folder)
        figures = _figures(run, which, stored_count(study.name, full))
        failures += sum(not f.ok for f in figures)
        if as_json:
            out += [plain(study.name, f) for f in figures]
        else:
            print_study(study, figures, failed_only)
        if store is not None:
            wrote(store_output(store, study.name, full, figures))
    if as_json:
        print(json.dumps(out, indent=2))
    if failures:
        raise typer.Exit(1)


def _check_options(chosen: Sequence[Study], half: str | None, **others: bool | Path | None) -> None:
    """An option must apply to one of the chosen studies, --half to all of them."""
    from studies.reproduce.registry import studies

    for option, value in {"half": half, **others}.items():
        needed = all if option == "half" else any
        if value and not needed(study.takes(option) for study in chosen):
            able = ", ".join(study.name for study in studies().values() if study.takes(option))
            raise DynidError(
                f"--{option} applies to {able}, named one at a time; leave --{option} out",
                option,
                code="not_applicable",
            )


def _figures(run: Callable[[], Iterator[Figure]], which: str, expected: int) -> list[Figure]:
    """All figures of a study, counted as they are computed; so many are expected, 0 where that is not known."""
    out: list[Figure] = []
    started = time.perf_counter()
    with working(f"reproducing {which}") as work:
        for figure in run():
            out.append(figure)
            message = f"reproducing {which}: {len(out)} figures"
            if expected > len(out):
                left = (time.perf_counter() - started) * (expected / len(out) - 1)
                work.report(Progress(f"{message} of {expected}", len(out) / expected, left))
            else:
                work.report(Progress(message))
    return out


@app.command()
def benchmark(
    robots: Annotated[
        str | None,
        typer.Option(help="Robots separated by commas. [tx40,rv2sq,puma560,wam7,iiwa14; the first two with --quick]"),
    ] = None,
    runs: Annotated[
        int | None, typer.Option(min=1, help="Recordings of each robot and encoder. [2, with --quick 1]")
    ] = None,
    counts: Annotated[
        str | None, typer.Option(help="Encoder counts per revolution. [32000,1000; the first with --quick]")
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            autocompletion=complete.method_lists,
            help="Methods separated by commas. [wls, feasible, all that simulate but slow ones]",
        ),
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes that share the work. [one per core]")] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Keep finished parts here; a second call of this version does only what is missing."
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the table, robot by robot, into this CSV file.")
    ] = None,
    figure: options.Figure = None,
    quick: Annotated[bool, typer.Option("--quick", help="A short run: fewer robots, encoders and recordings.")] = False,
    as_json: Json = False,
) -> None:
    """Run every estimator on simulated robots with known parameters: accuracy, robustness and time.

    Example: dynid benchmark --runs 5 --figure benchmark.svg -o benchmark.csv
    """
    need_checkout()
    from studies.benchmark.benchmark import BENCHMARK_ROBOTS, COUNTS, run_benchmark

    encoders = [int(x) for x in values.numbers(counts, "--counts") or COUNTS[: 1 if quick else None]]
    check_outputs(output, figure)
    with working("simulating and identifying") as work:
        result = run_benchmark(
            robots.split(",") if robots else BENCHMARK_ROBOTS[: 2 if quick else None],
            runs or (1 if quick else 2),
            encoders,
            methods.split(",") if methods else None,
            workers,
            folder,
            progress=work.report,
        )
    if as_json:
        print(json.dumps(result.to_dict(), indent=2))
    else:
        show(result.summary())
    if output is not None:
        with writing_bytes(output) as file:
            result.table.write_csv(file)
        wrote(output)
    if figure is not None:
        from studies.benchmark.figure import benchmark_figure

        write(figure, benchmark_figure(result))
