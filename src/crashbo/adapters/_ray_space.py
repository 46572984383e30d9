"""Search spaces of Ray Tune as those of CrashBO."""

from collections.abc import Mapping
from typing import Any

from ray.tune.search import sample
from ray.tune.search.variant_generator import parse_spec_vars

from crashbo.errors import InputError
from crashbo.problem.space import Categorical, Float, Int, Parameter, Space


def as_space(space: Space | Mapping[str, Any]) -> Space:
    """Return a space of CrashBO, from one of Tune if need be."""
    if isinstance(space, Space):
        return space
    return to_space(space) or Space(space)


def to_space(config: Mapping[str, Any]) -> Space | None:
    """Translate a Tune search space; nested names are joined by "/". None if nothing is to be searched.

    Raises:
        InputError: names what has no bounds or no counterpart.
    """
    _, domains, grids = parse_spec_vars(dict(config))
    for path, _ in [*grids, *domains]:
        if any(not isinstance(part, str) or "/" in part for part in path):
            raise InputError(f"`param_space` must be nested dicts with names free of '/'; got {path!r}. Rename it.")
    if grids:
        raise InputError(f"`{'/'.join(grids[0][0])}` must not be a grid_search; got one. Use tune.choice.")
    parameters = {"/".join(path): _parameter("/".join(path), domain) for path, domain in domains}
    return Space(parameters) if parameters else None


def _parameter(name: str, domain: Any) -> Parameter:
    sampler, step = domain.get_sampler(), None
    if isinstance(sampler, sample.Quantized):
        sampler, step = sampler.sampler, sampler.q
    log = isinstance(sampler, sample.LogUniform)
    known = isinstance(sampler, (sample.Uniform, sample.LogUniform)) and not (log and step)
    if known and isinstance(domain, sample.Float):
        return Float(domain.lower, domain.upper, log=log, step=step)
    if known and isinstance(domain, sample.Integer):
        return _integer(domain.lower, domain.upper, log, step or 1)
    if known and isinstance(domain, sample.Categorical):
        return _choice(name, domain.categories)
    kind = "sample_from" if domain.is_function() else f"{'a quantized ' if step else ''}{sampler}"
    raise InputError(
        f"`{name}` must be one of tune.uniform, quniform, loguniform, randint, qrandint, lograndint and choice; "
        f"got {kind}."
    )


def _integer(lower: int, upper: int, log: bool, step: int) -> Int:
    """Integers of Tune: the upper end is left out, but for the multiples of a step beyond 1."""
    if step == 1:
        return Int(lower, upper - 1, log=log)
    return Int(-(-lower // step) * step, upper // step * step, step=step)


def _choice(name: str, categories: list[Any]) -> Categorical:
    try:
        return Categorical(categories)
    except InputError as error:
        raise InputError(f"`{name}` must be a choice of plain values; got {categories!r}. {error}") from error
