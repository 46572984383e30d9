"""When hyperparameters are learned anew: a rule of the number of trials alone."""

_EACH = 12  # trials up to which every new one is learned from
_SHARE = 6  # then, whenever there are so many more as a share of those learned from
_ENOUGH = 100  # trials to learn hyperparameters from


def learning_size(count: int) -> int:
    """How many of the first `count` trials hyperparameters are learned from.

    In between they are kept, while limits, weights and posteriors follow every trial. What is known depends on the
    trials alone, not on when it was asked for: a restored optimizer suggests what the uninterrupted one would.
    """
    size = min(count, _EACH)
    while (larger := size + max(2, size // _SHARE)) <= min(count, _ENOUGH):
        size = larger
    return size
