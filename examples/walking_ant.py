"""Teach a robot from elsewhere to walk: Gymnasium's Ant, a gait of eight numbers, a fall is a crash.

pip install 'crashbo[gym]'
python examples/walking_ant.py                            # one or two minutes
MUJOCO_GL=egl python examples/walking_ant.py --gif ant.gif  # and a moving picture of the first trial and the best guess
"""

import argparse
from pathlib import Path
from typing import Any

import crashbo
from crashbo.problems.ant import SPACE, Ant, Walk


def main(n_trials: int = 60, seed: int = 0, gif: Path | None = None) -> crashbo.Result:
    """Tune the gait, walk again with the best guess, and draw it if there is a path for that."""
    robot, number = Ant(), iter(range(1000 * seed, 1000 * seed + n_trials))

    def trial(params: dict[str, Any]) -> float:
        walk = robot.rollout(params, next(number))
        if walk.cost is None:
            raise crashbo.Crash(walk.reason)
        return walk.cost

    result = crashbo.minimize(trial, SPACE, n_trials=n_trials, seed=seed, progress=False)
    again = [robot.rollout(result.best.params, one) for one in range(10**6, 10**6 + 5)]
    steady = [walk.distance / walk.seconds for walk in again if not walk.failed]
    print(f"{n_trials} trials, {result.n_crashes} falls. Best guess: " + _text(result.best.params))
    print(f"Walked 5 times more it stayed up {len(steady)} times, at {sum(steady) / max(1, len(steady)):.2f} m/s.")
    if gif is not None:
        film = Ant(duration=4.0, pictures=True)
        first = film.rollout(result.trials[0].params, 0)
        write_gif([first, film.rollout(result.best.params, 0)], gif)
        print(f"First trial and best guess side by side: {gif}")
    return result


def _text(params: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value:.3g}" for name, value in params.items())


def write_gif(walks: list[Walk], path: Path) -> None:
    """Write roll-outs side by side; one that fell stays where it fell."""
    from PIL import Image

    length = max(len(walk.frames) for walk in walks)
    width, height = Image.fromarray(walks[0].frames[0]).size
    pictures = []
    for number in range(0, length, 2):
        sheet = Image.new("RGB", (width * len(walks), height))
        for place, walk in enumerate(walks):
            frame = walk.frames[min(number, len(walk.frames) - 1)]
            sheet.paste(Image.fromarray(frame), (width * place, 0))
        pictures.append(sheet.quantize(32))
    pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=100, loop=0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--gif", type=Path, help="where to write a moving picture")
    options = parser.parse_args()
    main(options.trials, options.seed, options.gif)
