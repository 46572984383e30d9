"""What models say about crashes, in words."""

from crashbo.strategies.base import Limit, Relation


def describe_relation(relation: Relation | None, direction: str = "minimize") -> str:
    """Say what crashes have to do with the objective, and how sure that is.

    Args:
        relation: as probabilities; None while unknown.
        direction: of the optimization.
    """
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
    parts = [f"{name}: {share:.0%}" for name, share in ordered if share >= 0.005]
    return "Crashes are " + "; ".join(parts) + "."


def describe_limit(limit: Limit) -> str:
    """A limit with its standard deviation, unless it is known."""
    return f"{limit.value:.4g} ± {limit.deviation:.2g}" if limit.deviation else f"{limit.value:.4g}"
