"""Studies whose trials have different parameters: which path the next trial takes."""

from dataclasses import replace
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState

import crashbo
from crashbo.adapters.optuna import CrashBOSampler, read
from crashbo.adapters.optuna.codec import Record
from crashbo.adapters.optuna.history import make_optimizer, place
from crashbo.adapters.optuna.paths import Path, find_paths, heard, next_path, relative_space, settings_for
from crashbo.adapters.optuna.space import Translation, infer, infer_all
from crashbo.optimizer import Optimizer
from crashbo.problem.problem import UNKNOWN_SPACE, Problem
from crashbo.problem.space import Parameter
from crashbo.problem.suggestion import Reason, Suggestion
from tests.adapters.optuna.helpers import UNIT, light, make_study, old, params_of, square

CAUGHT: Any = (crashbo.Crash,)
KIND = CategoricalDistribution(["flat", "steep", "new"])
WORDS = CategoricalDistribution(["a", "b", "c"])


def record(
    number: int, status: str = "finished", ranges: dict[str, BaseDistribution] | None = None, **params: Any
) -> Record:
    distributions = {name: (ranges or {}).get(name, KIND if name == "kind" else UNIT) for name in params}
    cost = 1.0 if status == "finished" else None
    return Record(number, params, distributions, status, objective=cost)  # type: ignore[arg-type]


def paths_of(records: list[Record]) -> dict[tuple[str, ...], Translation]:
    return {tuple(one.distributions): one for one in find_paths(records, infer_all(records))}


def narrowed(records: list[Record], path: tuple[str, ...], name: str) -> Parameter:
    return paths_of(records)[path].space[name]


class TestPaths:
    FLAT, STEEP = record(0, kind="flat", x=0.5), record(1, kind="steep", y=0.1, z=0.2)

    def test_one_for_each_set_of_parameters(self) -> None:
        found = paths_of([self.FLAT, self.STEEP, self.FLAT])
        assert set(found) == {("kind", "x"), ("kind", "y", "z")}
        assert relative_space([self.FLAT, self.STEEP]) == {"kind": KIND, "x": UNIT, "y": UNIT, "z": UNIT}

    def test_none_where_all_trials_have_the_same_parameters(self) -> None:
        records = [record(0, x=0.1, y=0.2), record(1, x=0.3, y=0.4), record(2, "crashed", x=0.5)]
        assert find_paths(records, infer_all(records)) == []
        assert relative_space(records) == infer(records) == {"x": UNIT, "y": UNIT}
        assert find_paths([], {}) == []

    def test_a_choice_leads_to_one_of_them_and_one_that_nobody_made_to_any(self) -> None:
        found = paths_of([self.FLAT, self.STEEP])
        assert found["kind", "x"].space["kind"] == crashbo.Categorical(["flat", "new"])
        assert found["kind", "y", "z"].space["kind"] == crashbo.Categorical(["steep", "new"])

    def test_trials_of_other_paths_lie_outside(self) -> None:
        flat = paths_of([self.FLAT, self.STEEP])["kind", "x"]
        assert place(self.FLAT, flat) == {"kind": "flat", "x": 0.5}
        assert place(self.STEEP, flat) is None
        assert place(replace(self.STEEP, status="crashed", objective=None), flat) is None

    def test_a_crash_before_the_last_parameter_is_no_path_of_its_own(self) -> None:
        early = record(2, "crashed", kind="flat")
        found = paths_of([self.FLAT, self.STEEP, early])
        assert set(found) == {("kind", "x"), ("kind", "y", "z")}
        placed = place(early, found["kind", "x"])
        assert placed is not None
        assert placed["kind"] == "flat"
        assert place(early, found["kind", "y", "z"]) is None

    def test_a_path_where_everything_crashed(self) -> None:
        found = paths_of([self.FLAT, replace(self.STEEP, status="crashed", objective=None)])
        assert found["kind", "y", "z"].space["kind"] == crashbo.Categorical(["steep", "new"])

    def test_a_choice_within_a_choice(self) -> None:
        ranges: dict[str, BaseDistribution] = {"kernel": WORDS}
        records = [
            self.FLAT,
            record(1, ranges=ranges, kind="steep", kernel="a", degree=0.2),
            record(2, ranges=ranges, kind="steep", kernel="b", gamma=0.2),
            record(3, ranges=ranges, kind="steep", kernel="c"),
        ]
        found = paths_of(records)
        kernels = {path: one.space["kernel"] for path, one in found.items() if "kernel" in path}
        assert kernels == {
            ("degree", "kernel", "kind"): crashbo.Categorical(["a"]),
            ("gamma", "kernel", "kind"): crashbo.Categorical(["b"]),
            ("kernel", "kind"): crashbo.Categorical(["c"]),
        }
        assert found["kind", "x"].space["kind"] == crashbo.Categorical(["flat", "new"])

    def test_a_shared_choice_that_has_nothing_to_do_with_it_stays_free(self) -> None:
        ranges: dict[str, BaseDistribution] = {"word": WORDS}
        records = [
            record(0, ranges=ranges, kind="flat", word="a", x=0.1),
            record(1, ranges=ranges, kind="steep", word="b", y=0.1),
            record(2, ranges=ranges, kind="flat", word="b", x=0.1),
        ]
        assert narrowed(records, ("kind", "word", "x"), "word") == crashbo.Categorical(["a", "b", "c"])
        assert narrowed(records, ("kind", "word", "x"), "kind") == crashbo.Categorical(["flat", "new"])

    def test_a_number_is_cut_half_way(self) -> None:
        records = [record(0, x=0.1, low=0.5), record(1, x=0.3, low=0.5), record(2, x=0.7), record(3, x=0.9)]
        assert narrowed(records, ("low", "x"), "x") == crashbo.Float(0.0, 0.5)
        assert narrowed(records, ("x",), "x") == crashbo.Float(0.5, 1.0)

    def test_on_a_log_scale_too(self) -> None:
        ranges: dict[str, BaseDistribution] = {"x": FloatDistribution(1e-4, 1.0, log=True)}
        records = [record(0, ranges=ranges, x=1e-3, low=0.5), record(1, ranges=ranges, x=1e-1)]
        assert narrowed(records, ("low", "x"), "x").high == pytest.approx(1e-2)  # type: ignore[union-attr]

    @pytest.mark.parametrize(
        ("range_", "values", "expected"),
        [
            (IntDistribution(1, 9), (2, 3, 6), crashbo.Int(4, 9)),
            (IntDistribution(0, 10, step=2), (2, 4, 8), crashbo.Int(6, 10, step=2)),
            (FloatDistribution(0.0, 1.0, step=0.1), (0.1, 0.3, 0.6), crashbo.Float(0.4, 1.0, step=0.1)),
        ],
    )
    def test_on_a_grid_it_is_cut_next_to_what_leads_elsewhere(
        self, range_: BaseDistribution, values: tuple[float, float, float], expected: Parameter
    ) -> None:
        ranges = {"n": range_}
        first, second, third = values
        records = [record(0, ranges=ranges, n=first), record(1, ranges=ranges, n=second)]
        records += [record(2, ranges=ranges, n=third, deep=0.5)]
        found = narrowed(records, ("deep", "n"), "n")
        assert (found.low, found.high) == pytest.approx((expected.low, expected.high))  # type: ignore[union-attr]

    def test_what_depends_on_two_parameters_cuts_nothing_wrong(self) -> None:
        records = [record(0, x=0.1, y=0.1, z=0.5), record(1, x=0.1, y=0.9), record(2, x=0.9, y=0.1)]
        for space in find_paths(records, infer_all(records)):
            assert any(place(one, space) is not None for one in records)

    def test_a_suggestion_that_a_trial_did_not_use_says_nothing(self) -> None:
        records = [record(0, a=0.1), replace(record(1, b=0.2), suggestion={"a": 0.3})]
        space = paths_of(records)["a",]
        assert place(records[1], space) == {"a": 0.3}
        assert [place(one, space) for one in heard(records, space)] == [{"a": 0.1}, None]
        used = [replace(record(2, a=0.4), suggestion={"a": 0.4}), replace(records[1], status="pending", objective=None)]
        assert heard(used, space) == used

    def test_a_range_of_each_path_s_own(self) -> None:
        records = [
            record(0, ranges={"rate": FloatDistribution(0, 10)}, kind="steep", rate=7.0, y=0.5),
            record(1, ranges={"rate": FloatDistribution(0, 1)}, kind="flat", rate=0.5),
        ]
        assert narrowed(records, ("kind", "rate", "y"), "rate") == crashbo.Float(0.0, 10.0)
        assert narrowed(records, ("kind", "rate"), "rate") == crashbo.Float(0.0, 1.0)


def path_with(costs: list[float | None], name: str = "x", **options: Any) -> Path:
    records = [
        Record(number, {name: number / 10}, {name: UNIT}, "finished" if cost is not None else "crashed", cost)
        for number, cost in enumerate(costs)
    ]
    translation = Translation({name: UNIT}, crashbo.Space({name: (0.0, 1.0)}), frozenset())
    settings = Problem(UNKNOWN_SPACE, options=crashbo.Options(**{"initial": 3} | options))
    return Path(translation, make_optimizer(records, translation, settings, maximize=False, number=9))


def said(path: Path, mean: float, std: float, success: float = 1.0) -> Suggestion:
    why = Reason("gain", success_probability=success, expected=mean, expected_std=std)
    return Suggestion({next(iter(path.optimizer.space)): 0.5}, 9, why)


class TestNextPath:
    def test_paths_with_few_trials_take_turns_first(self) -> None:
        paths = [path_with([0.1, 0.2, 0.3]), path_with([9.0, 8.0]), path_with([7.0])]
        asked = []

        def ask(optimizer: Optimizer) -> Suggestion:
            asked.append(optimizer)
            return said(paths[2], 1.0, 1.0)

        assert next_path(paths, ask)[0] is paths[2]
        assert asked == [paths[2].optimizer]  # no other model is computed

    @pytest.mark.parametrize(
        ("first", "second", "winner"),
        [
            ((0.0, 0.1), (0.5, 0.1), 0),  # expects an improvement on 0.1, the best of all
            ((0.1, 1e-6), (0.5, 0.5), 1),  # nothing left to gain where the best trial is
            ((0.1, 1e-6), (5.0, 0.5), 0),  # an improvement on its own best trial alone does not count
            ((0.1, 0.2, 0.1), (0.1, 0.2, 0.9), 1),  # likelier to succeed
        ],
    )
    def test_the_largest_improvement_on_the_best_of_all(
        self, first: tuple[float, ...], second: tuple[float, ...], winner: int
    ) -> None:
        paths = [path_with([0.1, 0.2, 0.3]), path_with([9.0, 8.0, 7.0])]
        moments = {id(path.optimizer): one for path, one in zip(paths, (first, second), strict=True)}
        path, suggestion = next_path(paths, lambda optimizer: said(paths[0], *moments[id(optimizer)]))
        assert path is paths[winner]
        assert suggestion.why.expected == (first, second)[winner][0]

    def test_a_path_where_every_trial_failed_comes_last(self) -> None:
        paths = [path_with([None, None, None]), path_with([1.0, 2.0, 3.0])]
        assert next_path(paths, lambda optimizer: said(paths[1], 1.0, 0.0))[0] is paths[1]
        everywhere = [path_with([None] * 5), path_with([None] * 4)]
        assert next_path(everywhere, lambda optimizer: said(paths[1], 1.0, 0.0))[0] is everywhere[1]

    def test_without_a_crash_budget_only_where_a_trial_succeeded(self) -> None:
        paths = [path_with([None], crash_budget=1), path_with([1.0, 2.0, 3.0], crash_budget=0)]
        assert next_path(paths, lambda optimizer: said(paths[1], 1.0, 0.0))[0] is paths[1]

    def test_failures_of_other_paths_count_against_the_budget(self) -> None:
        records = [record(0, "crashed", kind="steep", y=0.1), record(1, "crashed", kind="flat", x=0.1)]
        settings = Problem(UNKNOWN_SPACE, options=crashbo.Options(crash_budget=5))
        for space in find_paths(records, infer_all(records)):
            assert settings_for(settings, records, space).options.crash_budget == 4
        assert settings_for(Problem(UNKNOWN_SPACE), records, space).options.crash_budget is None

    def test_the_design_of_a_path_counts_parameters(self) -> None:
        records = [record(0, kind="steep", y=0.1), record(1, kind="flat", x=0.1, u=0.1, v=0.2)]
        designs = [
            settings_for(Problem(UNKNOWN_SPACE), records, one).options.initial
            for one in find_paths(records, infer_all(records))
        ]
        assert designs == [8, 4]  # two for each parameter that is free; `kind` is, since "new" may lead anywhere
        short = Problem(UNKNOWN_SPACE, options=crashbo.Options(initial=2))
        assert settings_for(short, records, find_paths(records, infer_all(records))[0]).options.initial == 2


def two(trial: optuna.Trial) -> float:
    """A flat branch, and a steep one with the minimum, which is worse on average."""
    if trial.suggest_categorical("kind", ["flat", "steep"]) == "flat":
        return 0.15 + 0.3 * (trial.suggest_float("x", 0, 1) - 0.3) ** 2
    return 2 * (trial.suggest_float("y", 0, 1) - 0.85) ** 2 + 2 * (trial.suggest_float("z", 0, 1) - 0.15) ** 2


def by_number(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", 0, 1)
    if x < 0.5:
        return 0.1 + (x - 0.2) ** 2 + (trial.suggest_float("low", 0, 1) - 0.3) ** 2
    return (x - 0.7) ** 2 + 2 * (trial.suggest_float("high", -1, 1) - 0.3) ** 2


def crashing_inside(trial: optuna.Trial) -> float:
    """The branch with the minimum has two kernels, and one of them crashes."""
    if trial.suggest_categorical("kind", ["tree", "machine"]) == "tree":
        return 0.3 + (trial.suggest_float("depth", 0, 1) - 0.5) ** 2
    c = trial.suggest_float("C", 0, 1)
    if trial.suggest_categorical("kernel", ["wide", "narrow"]) == "wide":
        raise crashbo.Crash("no solution")
    return (c - 0.7) ** 2 + (trial.suggest_float("gamma", 0, 1) - 0.2) ** 2


class TestStudies:
    @pytest.mark.parametrize("objective", [two, by_number, crashing_inside])
    def test_it_does_not_get_stuck_in_the_wrong_branch(self, objective: Any) -> None:
        study = make_study(CrashBOSampler(seed=0))
        study.optimize(objective, n_trials=30, catch=CAUGHT)
        assert study.best_value < 1e-3  # the other branch has 0.1 or more

    def test_it_maximises_too(self) -> None:
        found = []
        for direction, sign in [("minimize", 1.0), ("maximize", -1.0)]:
            study = make_study(direction=direction)
            study.optimize(lambda trial, sign=sign: sign * two(trial), n_trials=9)  # type: ignore[misc]
            found.append([list(params.values())[1:] for params in params_of(study)])
        for first, second in zip(*found, strict=True):
            assert first == pytest.approx(second, abs=1e-6)

    def test_another_process_goes_on_the_same(self) -> None:
        study, other = make_study(light(seed=3)), make_study(light(seed=3))
        study.optimize(two, n_trials=14)
        for _ in range(14):
            other.sampler = light(seed=3)  # remembers nothing
            other.optimize(two, n_trials=1)
        assert params_of(study) == params_of(other)
        assert {params["kind"] for params in params_of(study)} == {"flat", "steep"}

    def test_where_all_trials_have_the_same_parameters_it_is_the_optimizer_s_own_suggestion(self) -> None:
        study = make_study()
        study.optimize(square, n_trials=8, catch=CAUGHT)
        expected = study.sampler.optimizer(study).ask()  # type: ignore[union-attr]
        assert study.ask({"x": UNIT, "y": UNIT}).params == expected

    def test_what_others_are_trying_is_not_suggested_again(self) -> None:
        study = make_study()
        study.optimize(two, n_trials=12)
        asked = [study.ask() for _ in range(4)]
        chosen = [(trial.suggest_categorical("kind", ["flat", "steep"]), trial) for trial in asked]
        points = [
            (trial.suggest_float("x", 0, 1), 0.0)
            if kind == "flat"
            else (trial.suggest_float("y", 0, 1), trial.suggest_float("z", 0, 1))
            for kind, trial in chosen
        ]
        for i in range(4):
            for j in range(i):
                same = chosen[i][0] == chosen[j][0]
                assert not same or np.abs(np.subtract(points[i], points[j])).max() > 1e-3

    def test_another_worker_with_the_same_idea_at_the_same_moment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        study = make_study()
        study.optimize(two, n_trials=12)
        publish = CrashBOSampler._publish
        moments: list[dict[str, Any]] = []

        def at_the_same_moment(self: CrashBOSampler, study: Any, trial: Any, offer: Any, *rest: Any) -> None:
            if not moments:
                moments.append(offer.params)
                twin = study._storage.get_trial(study._storage.create_new_trial(study._study_id))
                publish(self, study, twin, offer, *rest)
            publish(self, study, trial, offer, *rest)

        monkeypatch.setattr(CrashBOSampler, "_publish", at_the_same_moment)
        trial = study.ask()
        mine: dict[str, Any] = {"kind": trial.suggest_categorical("kind", ["flat", "steep"])}
        mine |= {name: trial.suggest_float(name, 0, 1) for name in moments[0] if name != "kind"}
        gaps = [abs(mine[name] - moments[0][name]) for name in moments[0] if name != "kind"]
        assert mine["kind"] != moments[0]["kind"] or max(gaps) >= 0.01

    def test_pruned_trials_count_on_their_path(self) -> None:
        study = make_study(light(prune_as="value"))
        study.optimize(two, n_trials=6)
        space = {"kind": CategoricalDistribution(["flat", "steep"]), "x": UNIT}
        study.add_trial(old(0.2, space=space, state=TrialState.PRUNED, kind="flat", x=0.4))
        records = read(study, pruned="value")
        flat = paths_of(records)["kind", "x"]
        assert place(records[-1], flat) == {"kind": "flat", "x": 0.4}

    def test_a_whole_path_that_the_user_gives(self, monkeypatch: pytest.MonkeyPatch) -> None:
        study = make_study()
        study.optimize(two, n_trials=6)
        study.enqueue_trial({"kind": "flat", "x": 0.25})
        monkeypatch.setattr(crashbo.Optimizer, "ask", None)  # no model is asked
        assert study.ask().relative_params == {"kind": "flat", "x": 0.25}
        assert study.trials[-1].user_attrs["crashbo:mode"] == "given"

    def test_of_a_part_that_the_user_gives_the_rest_is_planned(self) -> None:
        for kind, names in [("flat", {"kind", "x"}), ("steep", {"kind", "y", "z"})]:
            study = make_study()
            study.optimize(two, n_trials=8)
            study.enqueue_trial({"kind": kind})
            trial = study.ask()
            assert trial.suggest_categorical("kind", ["flat", "steep"]) == kind
            assert trial.relative_params.keys() == names

    def test_a_space_that_the_user_gives_is_searched_as_it_is(self) -> None:
        space = {"kind": CategoricalDistribution(["flat", "steep"])}
        study = make_study(light(space=space))
        study.optimize(two, n_trials=6)
        trial = study.ask()
        trial.suggest_categorical("kind", ["flat", "steep"])
        assert trial.relative_params.keys() == {"kind"}

    def test_an_independent_sampler_keeps_what_not_all_trials_have(self) -> None:
        study = make_study(light(independent_sampler=optuna.samplers.RandomSampler(seed=0)))
        study.optimize(two, n_trials=6)
        trial = study.ask()
        trial.suggest_categorical("kind", ["flat", "steep"])
        assert trial.relative_params.keys() == {"kind"}

    def test_a_branch_without_parameters(self) -> None:
        def switch(trial: optuna.Trial) -> float:
            if trial.suggest_categorical("on", [False, True]):
                return (trial.suggest_float("x", 0, 1) - 0.4) ** 2
            return 0.05

        study = make_study(CrashBOSampler(seed=1))
        study.optimize(switch, n_trials=14)
        assert study.best_value < 1e-4
        assert sum(not params["on"] for params in params_of(study)) <= 4
