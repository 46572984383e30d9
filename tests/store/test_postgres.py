"""Many processes on one PostgreSQL study."""

import itertools
from pathlib import Path

import pytest

from crashbo.store.files import make_definition
from crashbo.store.storage import Place, StudyError, hide_password
from crashbo.store.study import Study, create_study, open_study
from tests.store.helpers import start_cli

SCRIPT = 'echo "$CRASHBO_TRIAL $(date +%s.%N)" >> started; sleep 0.2; test "$CRASHBO_KIND" = good || exit 1; echo {x}'
PROGRAM = ("sh", "-c", SCRIPT)
SAME = 1e-6  # of the unit square: as close as the search itself may come to a point under way
LITTLE_EFFORT = {"initial": 10, "raw": 64, "samples": 3}  # of the search; the models are fitted as ever


def run_together(url: str, folder: Path, workers: int, trials: int, options: dict[str, int]) -> Study:
    """Let several processes run one study to its end."""
    place = Place(url, f"{workers}-workers")
    parameters = {"x": [0.0, 1.0], "y": [0.0, 1.0], "kind": ["good", "good_too", "bad"]}
    create_study(place, make_definition(parameters, options=options))
    place_options = ("--storage", url, "--study", place.study, "--trials", trials)
    started = [start_cli(folder, "run", *place_options, "--", *PROGRAM) for _ in range(workers)]
    try:
        for process in started:
            process.join(3000)
            assert process.exitcode == 0, (folder / "cli.out").read_text()
    finally:
        for process in started:
            process.kill()
    return open_study(place)


def check(study: Study, folder: Path, trials: int) -> None:
    """None lost, none doubled, no two at the same point at the same time."""
    records = study.records()
    learned = [record for record in records if record.status in ("finished", "crashed")]
    assert len(learned) == trials
    assert [record.status for record in records].count("pending") == 0
    assert all(record.objective == record.params["x"] for record in learned if record.status == "finished")
    assert all((record.status == "finished") == (record.params["kind"] == "good") for record in learned)
    lines = [line.split() for line in (folder / "started").read_text().splitlines()]
    began = {int(number): float(moment) for number, moment in lines}
    assert len(lines) == len(began)
    assert {record.number for record in learned} == set(began)
    found = [study.trial(record.number) for record in learned]
    ended = {one.number: one.datetime_complete.timestamp() for one in found if one.datetime_complete}
    for a, b in itertools.combinations(found, 2):
        if began[a.number] < ended[b.number] and began[b.number] < ended[a.number]:
            apart = max(abs(a.params["x"] - b.params["x"]), abs(a.params["y"] - b.params["y"]))
            assert apart > SAME or a.params["kind"] != b.params["kind"], (a, b)


def test_three_processes_share_a_study(postgres: str, tmp_path: Path) -> None:
    check(run_together(postgres, tmp_path, workers=3, trials=24, options={"initial": 22}), tmp_path, 24)


@pytest.mark.slow
def test_eight_processes_share_a_study(postgres: str, tmp_path: Path) -> None:
    check(run_together(postgres, tmp_path, workers=8, trials=200, options=LITTLE_EFFORT), tmp_path, 200)


def test_a_wrong_password_is_said_without_it(postgres: str) -> None:
    with pytest.raises(StudyError, match="password authentication failed") as found:
        open_study(Place(postgres.replace("s3cret", "hidden"), "any"))
    assert "hidden" not in str(found.value)
    assert "s3cret" not in repr(Place(postgres))
    assert hide_password(f"cannot reach {postgres}!").endswith(":***@127.0.0.1:" + postgres.rpartition(":")[2] + "!")


def test_a_missing_study_on_a_server(postgres: str) -> None:
    with pytest.raises(StudyError, match=r"There is no study 'nowhere' in postgresql://\w+:\*\*\*@"):
        open_study(Place(postgres, "nowhere"))
