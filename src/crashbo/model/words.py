"""What models say about crashes, in words."""

from crashbo.model.surrogate import Limit, Place, Relation, Surrogate
from crashbo.problem.space import Space

# A kind is named from this probability on, if there are as many crashes and costs. On draws 0 to 149 of the suite, on
# which it was chosen (`python -m benchmarks.relation --draws 150`), it is right in 83 % of 30 cases after 20 trials
# and in 82 % of 84 after 60. Always named: in 59 % and 69 %; from 0.9 on: in 70 % and 83 %. On draws 1000 to 1149: in
# 84 % of 19 and in 84 % of 86.
_CLEAR, _LEAST = 0.99, 3


def describe_relation(relation: Relation | None, direction: str = "minimize") -> str:
    """Say what crashes have to do with the objective, and how sure that is; the relation is None while unknown."""
    if relation is None:
        return "It is not known yet what crashes have to do with the objective."
    bad, good = ("high", "low") if direction == "minimize" else ("low", "high")
    shares = {
        f"{bad} values of the objective": relation.high,
        "unrelated to the objective": relation.unrelated,
        f"where the objective is {good}": relation.low,
        f"random, striking about {relation.rate:.0%} of trials": relation.random,
    }
    ordered = sorted(shares.items(), key=lambda one: -one[1])
    if ordered[0][1] < _CLEAR or (relation.rarer is not None and relation.rarer < _LEAST):
        likely = [f"{name} ({share:.0%})" for name, share in ordered if share >= 0.05]
        return f"Crashes are of unclear cause, perhaps {' or '.join(likely)}."
    parts = [f"{name}: {share:.0%}" for name, share in ordered if share >= 0.005]
    return "Crashes are " + "; ".join(parts) + "."


def describe_limit(limit: Limit) -> str:
    """A limit with its standard deviation, unless it is known."""
    if not limit.deviation:
        return f"{limit.value:.4g}"
    likely = "" if limit.range is None else " (95 %: {:.3g} to {:.3g})".format(*limit.range)
    return f"{limit.value:.4g} ± {limit.deviation:.2g}{likely}"


def describe_places(surrogate: Surrogate, space: Space, direction: str = "minimize") -> list[str]:
    """Say which named reasons of crashes have a place of their own, where, and how sure that is.

    Only surrogates with `places` know named reasons.
    """
    found: list[Place] = getattr(surrogate, "places", list)()
    said = []
    for place in found:
        values = space.decode(place.point).items()
        where = ", ".join(f"{name} = {f'{one:.4g}' if isinstance(one, float) else one}" for name, one in values)
        times = f"{place.count} crash" + "es" * (place.count != 1)
        relation = describe_relation(place.relation, direction).removeprefix("Crashes are ")
        said.append(
            f"{place.reason!r} ({times}) has a place of its own, most likely around {where} (probability "
            f"{place.probability:.0%} there). Such crashes are {relation}"
        )
    return said
