"""Optuna's distributions as CrashBO parameters, and which of them a study has in common."""

import contextlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from crashbo.adapters.optuna.codec import Record
from crashbo.errors import InputError
from crashbo.problem.parameters import Categorical, Float, Int, Parameter
from crashbo.problem.space import Space

Distributions: TypeAlias = dict[str, BaseDistribution]
SPACE = "crashbo:space"  # a study's user attribute


@dataclass(frozen=True)
class Translation:
    """Params of an Optuna search space in CrashBO's terms, and back.

    Attributes:
        distributions: by name, in the order of the space.
        space: the same for CrashBO.
        coded: names of categories whose choices CrashBO cannot hold, such as tuples; it sees them as texts, or as
            their indices if those are not unique.
    """

    distributions: Mapping[str, BaseDistribution]
    space: Space
    coded: frozenset[str]

    def inward(self, params: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return Optuna's params for CrashBO; None if one is missing or outside its distribution."""
        try:
            inner = {name: self._inner(name, params[name]) for name in self.distributions}
            return self.space.validate(inner)
        except (KeyError, ValueError):
            return None

    def _inner(self, name: str, value: Any) -> Any:
        distribution = self.distributions[name]
        index = distribution.to_internal_repr(value)
        return self._codes(name)[int(index)] if name in self.coded else distribution.to_external_repr(index)

    def _codes(self, name: str) -> Sequence[Any]:
        """What stands for each choice of a coded category."""
        parameter = self.space[name]
        assert isinstance(parameter, Categorical)
        return parameter.choices

    def outward(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return CrashBO's params for Optuna, as native Python values."""
        return {
            name: self.distributions[name].to_external_repr(self._codes(name).index(value))
            if name in self.coded
            else value
            for name, value in params.items()
        }

    def shown(self, name: str, value: Any) -> Any:
        """A value of Optuna's for people; one outside its distribution, or of another parameter, as it is."""
        try:
            return self._inner(name, value) if name in self.coded else value
        except ValueError:
            return str(value)

    def pack(self, params: Mapping[str, Any]) -> dict[str, float]:
        """Return Optuna's params as internal numbers, which JSON can hold whatever the choices are; without others."""
        packed = {}
        for name, value in params.items():
            with contextlib.suppress(ValueError):  # a choice that is none, from the queue
                packed[name] = float(self.distributions[name].to_internal_repr(value))
        return packed

    def unpack(self, numbers: Mapping[str, float]) -> dict[str, Any]:
        """Return the params that `pack` wrote, those of this space."""
        return {
            name: self.distributions[name].to_external_repr(value)
            for name, value in numbers.items()
            if name in self.distributions
        }

    def fill(self, params: Mapping[str, Any], number: int) -> dict[str, Any]:
        """Complete the params of a trial that crashed before all were chosen: whatever the rest, it crashed."""
        rest = self.space.sample(1, np.random.default_rng(number))[0]
        return self.outward(rest) | {name: value for name, value in params.items() if name in self.distributions}

    def fits(self, params: Mapping[str, Any]) -> bool:
        """Whether all these params belong to the space, and have values of it."""
        return params.keys() <= self.distributions.keys() and self.inward(self.fill(params, 0)) is not None


def given_space(space: Any) -> Translation | None:
    """Return the translation of a search space that a user gave to the sampler; None without one.

    Raises:
        InputError: if it is neither a `crashbo.Space` nor a dict of Optuna's distributions.
    """
    if isinstance(space, Space):
        return translation_of(space)
    if space is None or (isinstance(space, Mapping) and all(isinstance(o, BaseDistribution) for o in space.values())):
        return translate(space) if space else None
    raise InputError(f"`space` must be a crashbo.Space or a dict of Optuna's distributions; got {space!r}.")


def translation_of(space: Space) -> Translation:
    """Return the translation of a declared space, which stays the one it is."""
    return Translation({name: distribution_of(one) for name, one in space.items()}, space, frozenset())


def translate(distributions: Mapping[str, BaseDistribution]) -> Translation:
    """Return the translation of a search space with at least one parameter, sorted by name."""
    ordered = dict(sorted(distributions.items()))
    parameters = {name: parameter_of(one) for name, one in ordered.items()}
    coded = frozenset(
        name
        for name, one in ordered.items()
        if isinstance(one, CategoricalDistribution) and parameters[name] != _choices(one)
    )
    return Translation(ordered, Space(parameters), coded)


def parameter_of(distribution: BaseDistribution) -> Parameter:
    """Return the CrashBO parameter of an Optuna distribution.

    Raises:
        InputError: if its range is too large for double precision.
    """
    if isinstance(distribution, FloatDistribution):
        return Float(distribution.low, distribution.high, log=distribution.log, step=distribution.step)
    if isinstance(distribution, IntDistribution):
        step = 1 if distribution.log else distribution.step
        return Int(distribution.low, distribution.high, log=distribution.log, step=step)
    if isinstance(distribution, CategoricalDistribution):
        return _choices(distribution) or _codes(distribution)
    raise InputError(f"`distribution` must be float, int or categorical; got {distribution!r}.")


def _choices(distribution: CategoricalDistribution) -> Categorical | None:
    """The choices themselves, None if CrashBO cannot hold them."""
    try:
        return Categorical(list(distribution.choices))
    except InputError:
        return None


def _codes(distribution: CategoricalDistribution) -> Categorical:
    """Texts that stand for choices CrashBO cannot hold; indices, if two look the same."""
    texts = [str(choice) for choice in distribution.choices]
    return Categorical(texts if len(set(texts)) == len(texts) else list(range(len(texts))))


def distribution_of(parameter: Parameter) -> BaseDistribution:
    """Return the Optuna distribution of a CrashBO parameter."""
    if isinstance(parameter, Float):
        return FloatDistribution(parameter.low, parameter.high, log=parameter.log, step=parameter.step)
    if isinstance(parameter, Int):
        return IntDistribution(parameter.low, parameter.high, log=parameter.log, step=parameter.step)
    return CategoricalDistribution(parameter.choices)


def declared(attributes: Mapping[str, Any]) -> Translation | None:
    """Return the search space that `crashbo new` wrote among a study's attributes; None if it did not."""
    return translation_of(Space.from_json(attributes[SPACE])) if SPACE in attributes else None


def within(params: Mapping[str, Any], space: Mapping[str, BaseDistribution]) -> dict[str, Any]:
    """Those params that a search space still allows."""
    return {name: value for name, value in params.items() if name in space and _holds(space[name], value)}


def _holds(distribution: BaseDistribution, value: Any) -> bool:
    try:
        inner = distribution.to_external_repr(distribution.to_internal_repr(value))
        coded = isinstance(distribution, CategoricalDistribution)  # its internal representation is an index
        return coded or parameter_of(distribution).check("value", inner) is not None
    except ValueError:
        return False


def infer(records: Sequence[Record]) -> Distributions:
    """Return the parameters that all trials of a study share, as the newest trial that has them sees them.

    Finished trials decide; without any, the crashed ones that got farthest; without those, any others.
    Constants, and ranges no model can take, are left out.
    """
    return _usable(_shared(records))


def infer_all(records: Sequence[Record]) -> Distributions:
    """Return the parameters that all trials share, and those that only some have."""
    some = {name: one for record in records if record.teaches for name, one in record.distributions.items()}
    return _usable(some | _shared(records))


def _shared(records: Sequence[Record]) -> Distributions:
    seen = [record for record in records if record.distributions]
    tiers = [
        [record for record in seen if record.status == "finished"],
        _farthest([record for record in seen if record.status == "crashed"]),
        _farthest(seen),
    ]
    deciding = next((tier for tier in tiers if tier), [])
    if not deciding:
        return {}
    shared = set.intersection(*(set(record.distributions) for record in deciding))
    return {name: one for record in deciding for name, one in record.distributions.items() if name in shared}


def _usable(distributions: Mapping[str, BaseDistribution]) -> Distributions:
    return {name: one for name, one in sorted(distributions.items()) if not one.single() and _possible(one)}


def infer_largest(records: Sequence[Record]) -> Distributions:
    """Return the parameters of the largest group of trials that have the same ones."""
    groups = Counter(frozenset(record.distributions) for record in records if record.distributions)
    if not groups:
        return {}
    largest = max(groups.values())
    group = next(names for names, count in groups.items() if count == largest)
    return infer([record for record in records if frozenset(record.distributions) == group])


def _farthest(records: Sequence[Record]) -> list[Record]:
    most = max((len(record.distributions) for record in records), default=0)
    return [record for record in records if len(record.distributions) == most]


def _possible(distribution: BaseDistribution) -> bool:
    try:
        parameter_of(distribution)
    except InputError:
        return False
    return True
