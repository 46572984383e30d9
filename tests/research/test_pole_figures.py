"""Pictures of a roll-out show its path, its limits and where it failed."""

import numpy as np
import pytest

from crashbo.research.pole_figures import animate_rollouts, plot_rollouts
from crashbo.research.problems.pole.rollout import MONITOR
from crashbo.research.problems.pole.tuning import POLES


@pytest.fixture(scope="module")
def rollouts():
    robot = POLES["robot2d"]
    bounds = {name: (one.low, one.high) for name, one in robot.space.items()}
    corners = [{name: ends[i] for name, ends in bounds.items()} for i in (0, 1)]
    return {f"corner {i}": robot.without_recovery().rollout(params, 0) for i, params in enumerate(corners)}


def test_rollouts_are_drawn_over_time_with_their_limits(rollouts):
    figure = plot_rollouts(rollouts, seconds=5.0)
    assert [axes.get_ylabel() for axes in figure.axes] == ["angle [mrad]", "hand [cm]", "command [m/s²]"]
    (angle, *_) = figure.axes
    drawn = {line.get_label(): line for line in angle.lines}
    for name, outcome in rollouts.items():
        path = outcome.trajectory
        assert drawn[name].get_ydata() == pytest.approx(1e3 * path.angle[path.time <= 5.0])
    heights = sorted(line.get_ydata()[0] for line in angle.lines if line.get_label() == "limit of the robot")
    assert heights == pytest.approx([-1e3 * MONITOR.limits["angle"], 1e3 * MONITOR.limits["angle"]])
    ends = np.concatenate([points.get_offsets() for points in angle.collections if len(points.get_offsets())] or [[]])
    failed = [one for one in rollouts.values() if one.cost is None and one.seconds <= 5.0]
    assert len(ends) == len(failed)


def test_the_moving_picture_is_written(rollouts, tmp_path):
    path = animate_rollouts(rollouts, tmp_path / "new" / "pole.gif", seconds=0.5, frames=4)
    assert path.read_bytes().startswith(b"GIF")
