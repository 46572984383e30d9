"""When hyperparameters are learned anew."""

from crashbo.learning.schedule import learning_size


def test_every_early_trial_is_learned_from() -> None:
    assert [learning_size(n) for n in range(1, 13)] == list(range(1, 13))


def test_later_a_share_of_new_trials_is_waited_for() -> None:
    for n in range(13, 151):
        assert n - max(2, n // 6) <= learning_size(n) <= n
    assert len({learning_size(n) for n in range(13, 151)}) <= 25


def test_it_is_a_matter_of_the_number_of_trials_alone_and_ends() -> None:
    sizes = [learning_size(n) for n in range(1, 1000)]
    assert sizes == sorted(sizes)
    assert sizes[-1] == sizes[200] <= 150
