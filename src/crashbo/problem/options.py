"""How the optimizer searches: what users may set, checked when it is set."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypedDict, get_args

from crashbo.errors import InputError
from crashbo.problem.outcome import is_number

KernelName = Literal["matern32", "matern52", "rbf"]
CrashModel = Literal["auto", "absorb", "separate", "coupled"]
_CRASHES = get_args(CrashModel)
KERNELS: tuple[KernelName, ...] = get_args(KernelName)
_SAMPLERS = ["pathwise", "virtual"]
_COUNTS = {"initial": 1, "samples": 1, "starts": 1, "raw": 1, "crash_budget": 0, "n_trials": 1}  # and the least


def require(name: str, value: object, holds: bool, rule: str, advice: str = "") -> None:
    """Refuse an argument that breaks a rule."""
    if not holds:
        raise InputError(f"`{name}` must {rule}; got {value!r}. {advice}".rstrip())


def is_count(value: object, least: int = 1) -> bool:
    """Whether a value is an integer, and not less than the least."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def check_kernel(name: str) -> None:
    """Refuse a name that is no kernel."""
    if name not in KERNELS:
        raise InputError(f"`kernel` must be one of {', '.join(map(repr, KERNELS))}; got {name!r}.")


@dataclass(frozen=True)
class FixedModel:
    """Fixed hyperparameters of an output, in the output's own units.

    Attributes:
        lengthscale: one for all inputs, in the unit cube.
        variance: prior variance around 0.
        noise_std: standard deviation of the noise.
        threshold_prior: mean and standard deviation of the threshold's hyperprior; None: maximum likelihood.
        kernel: "matern32", "matern52" or "rbf".
    """

    lengthscale: float
    variance: float
    noise_std: float = 0.01
    threshold_prior: tuple[float, float] | None = (0.0, 5.0)
    kernel: KernelName = "matern32"

    def __post_init__(self) -> None:
        for name in ("lengthscale", "variance", "noise_std"):
            value = getattr(self, name)
            require(name, value, is_number(value) and math.isfinite(value) and value > 0, "be a finite number > 0")
        check_kernel(self.kernel)


@dataclass(frozen=True)
class Options:
    """How the optimizer searches; the defaults need no tuning.

    Attributes:
        initial: number of quasi-random trials at the start; None: one more than dimensions, at least 3, at most 10.
        random_start: draw these trials uniformly at random instead, as in the paper.
        delta: accepted probability that the best guess fails. The paper's strategy also uses it to decide whether any
            point is safe enough.
        risk: share of the trials suggested by the model that may fail. Each failure raises the price of a crash, each
            success lowers it, so that the share of failures tends to this; 1 accepts every risk that seems worth it.
        crash_budget: how many trials may fail in the whole run, including the initial ones; None: no limit. This is
            not a guarantee: a point that looked safe can still crash.
        n_trials: how many trials the run will have, if known. A crash budget is spread over the trials left; without
            one, the first trials take more risk and the last ones less.
        crashes: what a crash says about the cost. "absorb": it is a high cost, as in the paper; "separate": nothing;
            "auto" or "coupled": learned from the trials.
        fixed: fixed hyperparameters, by output ("objective" or the name of a constraint).
        samples: number of samples of the minimum, for mES and mESCO (paper's strategy).
        sampler: how the minimum is sampled: by "virtual" evaluations (the paper) or "pathwise" (paper's strategy).
        starts: number of random points, the lowest of which starts the local search of a virtual sample; 1 is the
            paper's value, which overestimates the minimum (paper's strategy).
        raw: number of quasi-random points evaluated when a point is chosen.
    """

    initial: int | None = None
    random_start: bool = False
    delta: float = 0.05
    risk: float = 0.2
    crash_budget: int | None = None
    n_trials: int | None = None
    crashes: CrashModel = "auto"
    fixed: Mapping[str, FixedModel] = field(default_factory=dict)
    samples: int = 10
    sampler: str = "virtual"
    starts: int = 200
    raw: int = 512

    def __post_init__(self) -> None:
        for name, least in _COUNTS.items():
            value, optional = getattr(self, name), getattr(Options, name) is None
            holds = is_count(value, least) or (optional and value is None)
            require(name, value, holds, f"be an integer >= {least}{' or None' * optional}")
        require("delta", self.delta, is_number(self.delta) and 0 < self.delta < 1, "lie between 0 and 1")
        require("risk", self.risk, is_number(self.risk) and 0 < self.risk <= 1, "lie above 0 and not above 1")
        require("sampler", self.sampler, self.sampler in _SAMPLERS, f"be one of {_SAMPLERS}")
        require("crashes", self.crashes, self.crashes in _CRASHES, f"be one of {', '.join(map(repr, _CRASHES))}")
        fixed = isinstance(self.fixed, Mapping) and all(isinstance(one, FixedModel) for one in self.fixed.values())
        require("fixed", self.fixed, fixed, "map outputs to crashbo.FixedModel")

    def changed(self) -> dict[str, Any]:
        """Those that differ from the defaults, as plain JSON."""
        usual = asdict(Options())
        return {name: value for name, value in asdict(self).items() if value != usual[name]}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> "Options":
        """Read options that `dataclasses.asdict` or `changed` wrote; also those of version 0.1.

        Raises:
            InputError: if they are none.
        """
        try:
            values = dict(data)
            values["fixed"] = {name: _fixed_model(one) for name, one in dict(values.get("fixed") or {}).items()}
            return Options(**values)
        except (TypeError, ValueError, AttributeError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"`options` must be those of crashbo.Options; got {data!r} ({error}).") from error


def _fixed_model(data: Mapping[str, Any]) -> FixedModel:
    values: dict[str, Any] = {name: tuple(one) if isinstance(one, list) else one for name, one in data.items()}
    return FixedModel(**values)


class OptionKeywords(TypedDict, total=False):
    """The options that `minimize` takes by name beside `risk` and `crash_budget`; see `Options`."""

    initial: int | None
    random_start: bool
    delta: float
    crashes: CrashModel
    fixed: Mapping[str, FixedModel]
    samples: int
    sampler: str
    starts: int
    raw: int
