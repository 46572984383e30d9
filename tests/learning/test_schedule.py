import itertools

from crashbo.learning.schedule import learning_size


def test_every_trial_at_first_then_by_a_sixth_and_never_beyond_what_is_enough():
    assert [learning_size(n) for n in range(1, 13)] == list(range(1, 13))
    sizes = sorted({learning_size(n) for n in range(12, 2000)})
    assert sizes[0] == 12
    assert all(2 <= b - a <= max(2, a // 6) for a, b in itertools.pairwise(sizes))
    assert sizes[-1] <= 100
    assert all(learning_size(n) <= n for n in range(1, 500))
