"""Monte Carlo studies: many simulated recordings, every estimator on each of them, and the scatter of the estimates."""

from __future__ import annotations

import json
import os
import pickle
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from dynid.dynamics.batch import core_count
from dynid.errors import DamagedFile, DynidError, InvalidValue, NotWritable, UnknownName, WrongFormat
from dynid.files import make_folder, remove_left_over, write_text, writing_bytes
from dynid.identification.estimate import Estimate
from dynid.identification.estimators.feasible import feasible
from dynid.identification.estimators.solution import Outcome
from dynid.identification.experiment import Experiment
from dynid.identification.pipeline import estimate_closed_loop, estimate_from
from dynid.markup import HtmlFrame
from dynid.montecarlo.scenario import Estimator, MonteCarloStudy, Start, perturbed_parameters
from dynid.progress import Progress, ProgressCallback
from dynid.reading import read_json
from dynid.robot.model import Robot
from dynid.saved import envelope
from dynid.simulation.engine import simulate

if TYPE_CHECKING:
    import polars as pl

__all__ = ["MonteCarlo", "monte_carlo"]


# Tables of a Monte Carlo study: every fit, every estimate, and the summary in the layout of the papers.

_CASE = ("robot", "noise", "filter", "start")
_FIT = (*_CASE, "method", "run")
OUTCOMES = ("converged", "not converged", "aborted", "failed", "no data")
_FIT_TYPES: dict[str, Any] = {
    "robot": str, "noise": str, "filter": str, "start": str, "method": str,
    "run": int, "outcome": str, "status": str, "iterations": int, "smallest": float,
    "seconds": float, "simulation_seconds": float, "solver_seconds": float,
}  # fmt: skip
_ESTIMATE_TYPES: dict[str, Any] = {
    "robot": str, "noise": str, "filter": str, "start": str, "method": str,
    "run": int, "kind": str, "parameter": str, "estimate": float, "std": float,
    "truth": float,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class MonteCarlo(HtmlFrame):
    """Results of a Monte Carlo study.

    Attributes
    ----------
    fits : polars.DataFrame
        One row per fit: robot, noise, filter, start, method, run, outcome (converged, not converged, aborted, failed,
        no data), status, iterations, smallest feasibility slack of any iteration, seconds, and the figures of the
        study's own `measure`. Methods that do not simulate have no start.
    estimates : polars.DataFrame
        One row per parameter and fit, of kind "base" or "standard": estimate, predicted standard deviation (`std`) and
        true value, in SI units.
    """

    fits: pl.DataFrame
    estimates: pl.DataFrame

    @staticmethod
    def from_units(units: Sequence[dict[str, Any]]) -> MonteCarlo:
        """Build the tables from the results of the recordings, in their order."""
        import polars as pl

        figures = sorted({name for unit in units for fit in unit["fits"] for name in fit.get("figures", {})})
        fits = [
            {key: {**unit, **fit}.get(key) for key in _FIT_TYPES}
            | {name: fit.get("figures", {}).get(name) for name in figures}
            for unit in units
            for fit in unit["fits"]
        ]
        estimates = pl.concat([_estimates(unit) for unit in units])
        return MonteCarlo(pl.DataFrame(fits, schema=_FIT_TYPES | dict.fromkeys(figures, float)), estimates)

    def to_frame(self) -> pl.DataFrame:
        """Every estimate joined with the row of its fit."""
        return self.estimates.join(self.fits, on=_FIT, how="left", nulls_equal=True, maintain_order="left")

    def methods(self) -> pl.DataFrame:
        """Runs and outcomes of every method, with mean iterations and seconds of the fits that converged."""
        import polars as pl

        good = pl.col("outcome") == "converged"
        counts = [(pl.col("outcome") == o).sum().alias(o) for o in OUTCOMES]
        means = [
            pl.col(c).filter(good).mean() for c in ("iterations", "seconds", "simulation_seconds", "solver_seconds")
        ]
        return self.fits.group_by(*_CASE, "method", maintain_order=True).agg(pl.len().alias("runs"), *counts, *means)

    def parameters(self, kind: str = "base") -> pl.DataFrame:
        """Statistics of every parameter by method, over the fits that converged.

        Parameters
        ----------
        kind : {"base", "standard"}, default "base"
            Base or standard parameters.

        Returns
        -------
        polars.DataFrame
            Columns truth, mean, std (of the estimates), predicted (mean of the predicted standard deviations) and
            bias_percent.
        """
        import polars as pl

        if kind not in ("base", "standard"):
            raise UnknownName(f"parameters are of kind 'base' or 'standard', not '{kind}'", "kind")
        converged = self.fits.filter(pl.col("outcome") == "converged").select(_FIT)
        rows = self.estimates.filter(pl.col("kind") == kind).join(
            converged, on=_FIT, how="semi", nulls_equal=True, maintain_order="left"
        )
        mean = pl.col("estimate").mean()
        truth = pl.col("truth").first()
        return rows.group_by(*_CASE, "method", "parameter", maintain_order=True).agg(
            pl.len().alias("fits"),
            truth,
            mean.alias("mean"),
            pl.col("estimate").std().alias("std"),
            pl.col("std").mean().alias("predicted"),
            pl.when(truth != 0).then(100 * (mean - truth) / truth.abs()).alias("bias_percent"),
        )

    def summary(self, parameters: Sequence[str] | None = None, kind: str = "base") -> str:
        """Summarise the study as Markdown.

        Parameters
        ----------
        parameters : sequence of str, optional
            Names of the parameters to show; all by default.
        kind : {"base", "standard"}, default "base"
            Base or standard parameters.

        Returns
        -------
        str
            One table per case: mean, standard deviation and bias of each method beside the truth, then the outcomes.
        """
        import polars as pl

        known = set(self.estimates.filter(pl.col("kind") == kind)["parameter"])
        for name in parameters or ():
            if name not in known:
                raise UnknownName(f"the study has no {kind} parameter '{name}'", "name")
        figures, methods = self.parameters(kind), self.methods()
        if parameters is not None:
            figures = figures.filter(pl.col("parameter").is_in(list(parameters)))
        return "\n".join(line for case in _cases(methods) for line in _case_text(case, figures, methods))

    def to_csv(self, path: str | Path) -> None:
        """Write `table` as CSV."""
        with writing_bytes(path) as file:
            self.to_frame().write_csv(file)

    def to_parquet(self, path: str | Path) -> None:
        """Write `table` as Parquet."""
        with writing_bytes(path) as file:
            self.to_frame().write_parquet(file)

    def __repr__(self) -> str:
        converged = int((self.fits["outcome"] == "converged").sum())
        return f"MonteCarlo({len(self.fits)} fits, {converged} converged)"


def _estimates(unit: dict[str, Any]) -> pl.DataFrame:
    """One row per parameter of every fit that has an estimate."""
    import polars as pl

    frames = [pl.DataFrame(schema=_ESTIMATE_TYPES)]
    for fit in unit["fits"]:
        label = {key: {**unit, **fit}[key] for key in _FIT}
        for kind in ("base", "standard"):
            if fit.get(kind) is None:
                continue
            values, std = fit[kind]
            columns = {
                "kind": kind,
                "parameter": unit[kind]["names"],
                "estimate": values,
                "std": std,
                "truth": unit[kind]["truth"],
            }
            frames.append(pl.DataFrame(label | columns, schema=_ESTIMATE_TYPES))
    return pl.concat(frames)


def _cases(methods: pl.DataFrame) -> Iterator[dict[str, str | None]]:
    """Every robot, noise, filter and start; the rows without a start belong to each start of their case."""
    import polars as pl

    cases = methods.select(_CASE).unique(maintain_order=True)
    for case in cases.iter_rows(named=True):
        others = cases.filter(*(pl.col(c) == case[c] for c in _CASE[:3]), pl.col("start").is_not_null())
        if case["start"] is not None or others.is_empty():
            yield case


def _case_text(case: dict[str, str | None], figures: pl.DataFrame, methods: pl.DataFrame) -> Iterator[str]:
    import polars as pl

    def of_case(frame: pl.DataFrame) -> pl.DataFrame:
        mine = [pl.col(c) == case[c] for c in _CASE[:3]]
        return frame.filter(*mine, pl.col("start").is_null() | pl.col("start").eq_missing(pl.lit(case["start"])))

    figures, methods = of_case(figures), of_case(methods)
    names = methods["method"].to_list()
    yield f"### {', '.join(f'{c} {case[c]}' for c in _CASE if case[c] is not None)}"
    yield ""
    yield f"| parameter | {' | '.join(f'{n} | bias % | std' for n in names)} | true |"
    yield f"|---|{'---|---|---|' * len(names)}---|"
    for parameter in figures["parameter"].unique(maintain_order=True):
        rows = {r["method"]: r for r in figures.filter(pl.col("parameter") == parameter).iter_rows(named=True)}
        truth = next(iter(rows.values()))["truth"]
        yield f"| {parameter} | {' | '.join(_cell(rows.get(n)) for n in names)} | {truth:.5g} |"
    yield ""
    yield f"| method | runs | {' | '.join(OUTCOMES)} | iterations | seconds |"
    yield f"|---|---|{'---|' * len(OUTCOMES)}---|---|"
    for row in methods.iter_rows(named=True):
        counts = " | ".join(str(row[o]) for o in OUTCOMES)
        costs = f"{_number(row['iterations'])} | {_number(row['seconds'])}"
        yield f"| {row['method']} | {row['runs']} | {counts} | {costs} |"
    yield ""


def _cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return "- | - | -"
    std, bias = _number(row["std"]), row["bias_percent"]
    return f"{row['mean']:.5g} ({std}) | {'-' if bias is None else f'{bias:+.2f}'} | {_number(row['predicted'])}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


Array = NDArray[np.float64]
Unit = tuple[str, str, int]

_HEADER = "study.json"


def monte_carlo(
    study: MonteCarloStudy,
    *,
    workers: int | None = None,
    folder: str | Path | None = None,
    client: Any = None,
    progress: ProgressCallback | None = None,
) -> MonteCarlo:
    """Run a Monte Carlo study: simulate every recording once and run all filters, starts and estimators on it.

    Recordings and starts follow from the study's seed and names alone: the number of workers does not change results.

    Parameters
    ----------
    study : MonteCarloStudy
        What to simulate and identify.
    workers : int, optional
        Number of processes; by default one per core. With 1 everything runs in this process.
    folder : str or Path, optional
        Folder that keeps each completed recording in a file. A later call with the same study, or with more runs of
        it, computes only what is missing.
    client : distributed.Client, optional
        Dask cluster that runs the work instead (`pip install dynid[cluster]`).
    progress : callable, optional
        Receives a `Progress` after every recording.

    Returns
    -------
    MonteCarlo
        Tables of all fits and estimates.

    Raises
    ------
    DataError
        If the number of workers or the folder does not fit the study.
    DynidError
        If a worker process dies; completed recordings stay in `folder`.
    """
    store = None if folder is None else _Store(Path(folder), study)
    done = {} if store is None else store.read(study.units())
    left = [unit for unit in study.units() if unit not in done]
    started = time.perf_counter()
    for count, result in enumerate(_results(study, left, workers, client, store), start=1):
        done[_key(result)] = result
        if store is not None:
            store.write(result)
        if progress is not None:
            spent = time.perf_counter() - started
            total = len(study.units())
            message = f"{len(done)} of {total} recordings, {spent / count:.3g} s each"
            progress(Progress(message, len(done) / total, spent / count * (len(left) - count)))
    return MonteCarlo.from_units([done[unit] for unit in study.units()])


def _results(
    study: MonteCarloStudy, left: list[Unit], workers: int | None, client: Any, store: _Store | None
) -> Iterator[dict[str, Any]]:
    """Result of each unit, as soon as it is there."""
    count = workers if workers is not None else core_count()
    if count < 1:
        raise InvalidValue(f"a study needs at least one worker, got {count}", "workers")
    if client is not None:
        yield from _on_cluster(study, left, client, store)
    elif min(count, len(left)) <= 1:
        yield from (run_unit(study, *unit) for unit in left)
    else:
        yield from _on_processes(study, left, min(count, len(left)), store)


def _on_processes(
    study: MonteCarloStudy, left: list[Unit], count: int, store: _Store | None
) -> Iterator[dict[str, Any]]:
    from joblib import Parallel, delayed
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    # Arrays travel whole: mapped from files they would be read-only, another type to compiled kernels.
    pool = Parallel(n_jobs=count, backend="loky", return_as="generator_unordered", max_nbytes=None)
    try:
        yield from pool(delayed(run_unit)(study, *unit) for unit in left)
    except TerminatedWorkerError:
        raise DynidError(f"a worker process died{_kept(store)}", code="interrupted") from None


def _on_cluster(
    study: MonteCarloStudy, left: list[Unit], client: Any, store: _Store | None
) -> Iterator[dict[str, Any]]:
    try:
        from distributed import as_completed
        from distributed.protocol.pickle import dumps
        from distributed.scheduler import KilledWorker
    except ImportError:
        raise DynidError(
            "studies on a cluster need Dask: pip install 'dynid[cluster]'", code="missing_package"
        ) from None
    # A task rather than scattered data: the scheduler makes it again when the worker that holds it dies.
    shared = client.submit(_itself, dumps(study), pure=False)
    futures = [client.submit(_run_packed, shared, *unit, pure=False) for unit in left]
    try:
        for future in as_completed(futures):
            yield future.result()
            future.release()
    except KilledWorker as error:
        raise DynidError(f"several workers died on one recording ({error}){_kept(store)}", code="interrupted") from None
    finally:
        client.cancel(futures)


def _itself(packed: bytes) -> bytes:
    return packed


def _run_packed(packed: bytes, robot: str, noise: str, run: int) -> dict[str, Any]:
    """`run_unit` of a study that comes as bytes, as arrays that Dask moves arrive read-only."""
    return run_unit(pickle.loads(packed), robot, noise, run)


def _kept(store: _Store | None) -> str:
    return "" if store is None else f"; completed recordings are in '{store.folder}', call again to continue"


def run_unit(study: MonteCarloStudy, robot: str, noise: str, run: int) -> dict[str, Any]:
    """One simulated recording with every fit to it, as plain data."""
    scenario = study.robots[robot]
    loop = replace(scenario.loop, sensors=study.noise[noise])
    assert isinstance(scenario.robot, Robot) and scenario.model is not None
    truth = scenario.model.parameters
    with _one_thread():
        simulation = simulate(
            scenario.robot,
            loop,
            scenario.reference,
            rate=scenario.rate,
            seed=study.seed_of("recording", robot, noise, run),
        )
        recording = simulation.recording()
        fits: list[dict[str, Any]] = []
        for name, signals in study.filters_of(noise).items():
            experiment = Experiment(scenario.model, recording, loop, signals)
            for start, estimators in _groups(study):
                seed = study.seed_of("start", robot, start, run)
                stop = None if simulation.completed else simulation.outcome
                fits += [{"filter": name, **fit} for fit in _fits(study, experiment, start, estimators, seed, stop)]
    base = experiment.base
    return {
        "robot": robot,
        "noise": noise,
        "run": run,
        "base": {"names": list(base.names), "truth": base.values(truth).tolist()},
        "standard": {"names": list(scenario.model.parameter_names), "truth": truth.tolist()},
        "fits": fits,
    }


def _groups(study: MonteCarloStudy) -> list[tuple[str | None, list[Estimator]]]:
    """Starts with the estimators that they matter to; None for those that do not simulate."""
    all_of = [e for e in study.estimators if isinstance(e, Estimator)]
    simulating = [e for e in all_of if e.simulates]
    groups: list[tuple[str | None, list[Estimator]]] = [(None, [e for e in all_of if not e.simulates])]
    return [group for group in [*groups, *((start, simulating) for start in study.starts)] if group[1]]


def _fits(
    study: MonteCarloStudy,
    experiment: Experiment,
    start: str | None,
    estimators: list[Estimator],
    seed: int,
    stop: str | None,
) -> Iterator[dict[str, Any]]:
    """All fits from one start; what fails is an outcome like any other."""
    labels = [{"start": start, "method": e.name} for e in estimators]
    if stop is not None:
        yield from (label | {"outcome": "no data", "status": stop} for label in labels)
        return
    try:
        experiment = _started(experiment, "truth" if start is None else study.starts[start], seed)
        begun = time.perf_counter()
        if start is None:
            experiment.measured  # noqa: B018
        preparation = time.perf_counter() - begun
    except Exception as error:
        yield from (label | _failed(error) for label in labels)
        return
    for label, estimator in zip(labels, estimators, strict=True):
        run = estimate_closed_loop if estimator.simulates else estimate_from
        data: Any = experiment if estimator.simulates else experiment.measured
        try:
            estimate = run(data, estimator.method, noise_model=estimator.noise_model, **estimator.options)
            figures = {} if study.measure is None else dict(study.measure(experiment, estimate))
        # A study of hours must not end with one fit, whatever went wrong in it.
        except Exception as error:
            yield label | _failed(error)
        else:
            yield label | _plain(estimate, preparation) | {"figures": figures}


def _started(experiment: Experiment, start: Start, seed: int) -> Experiment:
    """The experiment of a robot whose a-priori parameters are the start."""
    if isinstance(start, str) and start == "truth":
        return experiment
    if isinstance(start, str):
        found = feasible(experiment.measured).parameters
        assert found is not None
    elif np.ndim(start) == 0:
        found = perturbed_parameters(experiment.robot, float(start), seed)  # type: ignore[arg-type]
    else:
        found = np.asarray(start, dtype=float)
    return replace(experiment, robot=experiment.robot.with_parameters(found))


def _plain(estimate: Estimate, preparation: float) -> dict[str, Any]:
    """An estimate as plain data; its time counts the preparation of the signals, which all methods need."""
    covariance = estimate.standard_covariance
    history = estimate.history
    return {
        "outcome": _outcome(estimate),
        "status": estimate.status,
        "iterations": len(history) or None,
        "smallest": min((r.smallest for r in history), default=None),
        "seconds": preparation + estimate.seconds,
        "simulation_seconds": sum(r.simulation_seconds for r in history) if history else None,
        "solver_seconds": sum(r.solver_seconds for r in history) if history else None,
        "base": [estimate.beta.tolist(), estimate.std.tolist()],
        "standard": None
        if estimate.standard is None or covariance is None
        else [estimate.standard.tolist(), np.sqrt(np.diag(covariance)).tolist()],
    }


def _outcome(estimate: Estimate) -> str:
    if estimate.converged:
        return "converged"
    return "aborted" if estimate.outcome is Outcome.ABORTED else "not converged"


def _failed(error: Exception) -> dict[str, Any]:
    words = str(error) if isinstance(error, DynidError) else f"{type(error).__name__}: {error}"
    return {"outcome": "failed", "status": words}


@contextmanager
def _one_thread() -> Iterator[None]:
    """One thread for kernels and BLAS: workers share the cores, and results do not depend on how many there are."""
    before = os.environ.get("DYNID_THREADS")
    os.environ["DYNID_THREADS"] = "1"
    try:
        with threadpool_limits(1):
            yield
    finally:
        if before is None:
            os.environ.pop("DYNID_THREADS", None)
        else:
            os.environ["DYNID_THREADS"] = before


def _key(result: dict[str, Any]) -> Unit:
    return result["robot"], result["noise"], result["run"]


class _Store:
    """A folder with one file a finished unit and a header that says of which study."""

    def __init__(self, folder: Path, study: MonteCarloStudy) -> None:
        self.folder = folder
        header = folder / _HEADER
        mine = envelope("monte carlo") | {"digest": study.digest()}
        make_folder(folder)
        remove_left_over(folder)  # of a study that was killed
        if header.exists():
            if _read(header) != mine:
                raise NotWritable(
                    f"folder '{folder}' holds another study; choose another folder for this one", "folder"
                )
        elif any(folder.iterdir()):
            raise NotWritable(f"folder '{folder}' holds other files; choose an empty one for the study", "folder")
        else:
            self._put(header, mine)

    def path(self, unit: Unit) -> Path:
        robot, noise, run = unit
        return self.folder / f"{quote(robot, '')}@{quote(noise, '')}@{run:05d}.json"

    def read(self, units: list[Unit]) -> dict[Unit, dict[str, Any]]:
        """Finished units by key."""
        return {unit: _read(self.path(unit)) for unit in units if self.path(unit).exists()}

    def write(self, result: dict[str, Any]) -> None:
        self._put(self.path(_key(result)), result)

    def _put(self, path: Path, data: dict[str, Any]) -> None:
        """Write whole files only: one that is there is complete."""
        write_text(path, json.dumps(data))


def _read(path: Path) -> dict[str, Any]:
    try:
        data = read_json(path)
    except ValueError as error:
        raise DamagedFile(f"'{path}' is damaged ({error}); delete it to have it made again") from None
    if not isinstance(data, dict):
        raise WrongFormat(f"'{path}' is no part of a Monte Carlo study")
    return data
