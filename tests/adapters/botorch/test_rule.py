"""What users say about a threshold."""

import math

import pytest

from crashbo import InputError
from crashbo.adapters.botorch.fit import check_rule
from crashbo.model.threshold import ThresholdRule


def test_arguments_become_a_rule():
    assert check_rule(2, None) == ThresholdRule(2.0, None)
    assert check_rule(None, [1, 2]) == ThresholdRule(None, (1.0, 2.0))


@pytest.mark.parametrize(
    ("threshold", "prior", "message"),
    [
        ("high", None, r"`threshold` must be a number or None; got 'high'"),
        (math.nan, None, r"`threshold` must be a number or None; got nan"),
        (None, 3.0, r"`threshold_prior` must be \(mean, standard deviation\) or None; got 3\.0"),
        (
            None,
            (0.0, 1.0, 2.0),
            r"`threshold_prior` must be \(mean, standard deviation\) or None; got \(0\.0, 1\.0, 2\.0\)",
        ),
        (None, ("a", "b"), r"`threshold_prior` must be \(mean, standard deviation\) or None; got \('a', 'b'\)"),
        (None, (0.0, 0.0), r"`threshold_prior` must be finite with a standard deviation > 0; got \(0\.0, 0\.0\)"),
        (None, (0.0, -1.0), r"`threshold_prior` must be finite with a standard deviation > 0; got \(0\.0, -1\.0\)"),
        (None, (math.nan, 1.0), r"`threshold_prior` must be finite .*; got \(nan, 1\.0\)"),
        (None, (0.0, math.inf), r"`threshold_prior` must be finite .*; got \(0\.0, inf\)"),
    ],
)
def test_bad_rules_are_refused(threshold, prior, message):
    with pytest.raises(InputError, match=message):
        check_rule(threshold, prior)
