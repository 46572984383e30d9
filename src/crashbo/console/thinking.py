"""What the model says about a study, as plain numbers for the page."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crashbo.adapters.optuna.offers import skipped
from crashbo.adapters.optuna.records import read
from crashbo.console.snapshot import Reader, Snapshot
from crashbo.errors import InputError, NumericalError
from crashbo.model.words import describe_places
from crashbo.optimizer import Optimizer
from crashbo.problem.history import OBJECTIVE
from crashbo.problem.space import Space
from crashbo.show.views import View
from crashbo.store.asking import use_sampler
from crashbo.store.study import Study

CELLS, STEPS = 41, 101  # of a map along each axis, of a line


@dataclass
class Thinker:
    """Fits the models to a study and answers questions about them.

    Attributes:
        study: to read.
        reader: of it.
        optimizer: that has seen all trials; None before the first look.
        snapshot: what it has seen.
        problem: why the models cannot be fitted; empty if they can.
    """

    study: Study
    reader: Reader
    optimizer: Optimizer | None = None
    snapshot: Snapshot | None = None
    problem: str = ""
    _decided: tuple[str, View] | None = None

    def look(self) -> Iterator[dict[str, Any]]:
        """Read the study and say step by step what follows: models fitted, suggestion, best guess, limits."""
        self._refresh()
        yield {"kind": "model", **self._about(), "ready": self._has_model(), "problem": self.problem}
        offer = self._offer()
        yield {"kind": "offer", **self._about(), "offer": offer, "problem": self.problem}
        if self._has_model():
            yield {
                "kind": "best",
                **self._about(),
                "best": self._best(),
                "limits": {name: [one.value, one.deviation, *one.interval] for name, one in self._known.limits.items()},
                "relation": self._relation(),
            }

    def _relation(self) -> str:
        """What crashes have to do with the cost, and which reasons have a place of their own; empty while unknown."""
        known = self._known
        said = [] if known.relation is None else [known.crash_relation]
        return " ".join(said + describe_places(known.surrogate(), known.space, known.direction))

    def _about(self) -> dict[str, Any]:
        return {"basis": self._seen.basis, "count": len(self._seen.rows)}

    @property
    def _known(self) -> Optimizer:
        if self.optimizer is None:
            raise InputError("The model is not ready yet. Wait a moment.")
        return self.optimizer

    @property
    def _seen(self) -> Snapshot:
        if self.snapshot is None:
            raise InputError("The study has not been read yet. Wait a moment.")
        return self.snapshot

    def _refresh(self) -> None:
        """Read the study; fit anew only if there are new results, or the study was edited."""
        self.snapshot = self.reader.read()
        self.study = self.reader.study  # with its definition, which may have been edited
        sampler = use_sampler(self.study)
        with self.study.guarded():
            fresh = sampler.optimizer(self.study.inner)
        self.optimizer, self.problem = fresh, ""
        try:
            if self._has_model():
                fresh.surrogate()
        except NumericalError as error:
            self.problem = f"The model cannot be fitted to these trials ({error})."

    def _has_model(self) -> bool:
        return not self.problem and bool(self._known.trials) and self._known.space.dimension > 0

    # --- the suggestion --------------------------------------------------------------------------

    def _offer(self) -> dict[str, Any]:
        """What the next trial is offered, as the page shows it."""
        sampler = use_sampler(self.study)
        with self.study.guarded():
            offer = sampler.next_offer(self.study.inner)
        if offer.problem and not self.problem:
            self.problem = f"The model cannot choose a point ({offer.problem})."
        space, shown = self.study.definition.space, self.study.translation.shown
        params = {name: shown(name, offer.params[name]) for name in space}
        beliefs, expected = dict(offer.beliefs), {}
        with suppress(InputError):  # a queued value may lie outside its range: nothing is expected there
            params = space.validate(params)
            expected = self.predict(params) if self._has_model() else {}
        if beliefs.get("success_probability") is None and expected:
            beliefs["success_probability"] = expected["success_probability"]
        found = {"params": params, "beliefs": beliefs, "expected": expected}
        others = {"retry_of": offer.retry_of, "waiting": offer.waiting}
        return found | {name: number for name, number in others.items() if number is not None}

    def _apart(self) -> Optimizer:
        """A copy of the optimizer, to which what was skipped is under way: so it suggests something else."""
        with self.study.guarded():
            records = read(self.study.inner)
        return self._known.with_pending(skipped(records, self.study.translation))

    # --- questions -------------------------------------------------------------------------------

    def predict(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """What the models expect of a point.

        Returns:
            "objective" and "constraints" as mean and standard deviation, "success_probability", and "trials", the
            number of results behind it.
        """
        optimizer = self._known
        if not self._has_model():
            raise InputError("There is no model yet: it needs a first result.")
        point, models = optimizer.space.encode(params)[None], optimizer.surrogate()
        means = {name: [float(value[0]) for value in models.moments(point, name)] for name in models.outputs}
        mean, std = means.pop(OBJECTIVE)
        return {
            "objective": [optimizer.sign * mean, std] if models.any_cost else None,
            "constraints": means,
            "success_probability": float(models.success(point)[0]),
            "trials": len(optimizer.trials),
        }

    def _best(self) -> dict[str, Any]:
        guess = self._known.best()
        params = {name: guess.params[name] for name in self.study.definition.space}
        known = guess.mean == guess.mean
        return {
            "params": params,
            "objective": [guess.mean, guess.std] if known else None,
            "success_probability": guess.success_probability,
            "feasible": guess.feasible,
        }

    def picture(self, x: str, y: str | None, params: Mapping[str, Any], *, acquisition: bool = False) -> dict[str, Any]:
        """The models over two parameters, or along one, the others held.

        Positions along an axis run from 0 to 1, as `Parameter.locate` has them, in cells of one width.

        Args:
            x, y: the parameters; None for y: along x.
            params: values of the others.
            acquisition: add what the next point is chosen by, from 0 to 1. It takes a search.

        Returns:
            "layers": per quantity its values, row by row from y = 0 up; "basis": what it was drawn for.
        """
        optimizer = self._known
        if not self._has_model():
            raise InputError("There is no model yet: it needs a first result.")
        across, up = (STEPS, None) if y is None else (CELLS, CELLS)
        grid = _grid(optimizer.space, optimizer.space.encode(params), x, across, y, up)
        models = optimizer.surrogate()
        layers = {"success": models.success(grid)}
        for name in models.outputs:
            mean, std = models.moments(grid, name)
            if name != OBJECTIVE:
                layers |= {f"constraint:{name}": mean, f"std:{name}": std}
            elif models.any_cost:
                layers |= {"mean": optimizer.sign * mean, "std": std}
        if acquisition:
            with suppress(NumericalError):  # the other layers are worth showing
                layers["acquisition"] = self._view().acquisition(grid, params, [x] if y is None else [x, y])
        numbers = {name: [float(f"{value:.5g}") for value in one.tolist()] for name, one in layers.items()}
        return {"layers": numbers, "x": x, "y": y, "columns": across, "rows": up or 1, "basis": self._seen.basis}

    def _view(self) -> View:
        """The optimizer with its next decision, which is computed once."""
        basis = self._seen.basis
        if self._decided is None or self._decided[0] != basis:
            self._decided = basis, View(self._apart())
        return self._decided[1]


def _grid(
    space: Space, base: NDArray[np.float64], x: str, columns: int, y: str | None, rows: int | None
) -> NDArray[np.float64]:
    """Points of the unit cube in the middle of the cells of a map, or along a line, `(rows columns) x d`."""
    points = np.broadcast_to(base, (rows or 1, columns, len(base))).copy()
    blocks = {block.name: block for block in space.coordinates}
    ends = np.linspace(0, 1, columns) if y is None else (np.arange(columns) + 0.5) / columns
    for column, position in enumerate(ends):
        block = blocks[x]
        points[:, column, block.start : block.stop] = block.round(block.spread(position))
    for row in range(rows or 0):
        block = blocks[y or x]
        points[row, :, block.start : block.stop] = block.round(block.spread((row + 0.5) / (rows or 1)))
    return points.reshape(-1, len(base))
