# %% [markdown]
# # Models whose fits fail, with Optuna
#
# A support vector machine learns to tell benign from malignant tumours (scikit-learn's breast cancer data). Two
# parameters are tuned, `C` and `gamma`. In a part of the space the solver does not converge within its iterations:
# scikit-learn warns, and the model should not be used. Such a fit has no score.
#
# What Optuna does here: its default sampler (TPE) drops failed trials. It learns nothing from them and
# keeps failing in the same place. `CrashBOSampler` learns from them; study, storage and workers stay as they are.

# %%
import warnings

import matplotlib.pyplot as plt
import optuna
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import crashbo
from crashbo.integrations.optuna import CrashBOSampler, crashing

optuna.logging.set_verbosity(optuna.logging.ERROR)  # a failed fit is a result here, not an alarm
X, y = load_breast_cancer(return_X_y=True)

# %% [markdown]
# The objective is an ordinary Optuna objective, with one addition: a fit that did not converge raises
# `crashbo.Crash`. Any exception named in `catch` would do; this one keeps a reason.


# %%
@crashing  # writes the reason of a crash onto its trial
def objective(trial):
    C = trial.suggest_float("C", 1e-2, 1e6, log=True)
    gamma = trial.suggest_float("gamma", 1e-6, 1.0, log=True)
    model = make_pipeline(StandardScaler(), SVC(C=C, gamma=gamma, max_iter=1000))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        try:
            return 1.0 - cross_val_score(model, X, y, cv=5, error_score="raise").mean()
        except ConvergenceWarning as warning:
            raise crashbo.Crash("did not converge") from warning


def tune(sampler, n_trials=30):
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=n_trials, catch=(crashbo.Crash,))
    return study


# %% [markdown]
# The same study with both samplers, three seeds each. Only the sampler differs.

# %%
samplers = {"CrashBO": CrashBOSampler, "TPE": optuna.samplers.TPESampler}
studies = {(name, seed): tune(sampler(seed=seed)) for seed in range(3) for name, sampler in samplers.items()}
for (name, seed), study in studies.items():
    failed = sum(trial.state.name == "FAIL" for trial in study.trials)
    print(f"seed {seed}, {name}: lowest error {study.best_value:.4f}, {failed} of {len(study.trials)} fits failed")

# %% [markdown]
# An error of 0.0018 is one tumour of 569. Both samplers find models of similar quality, but with TPE more than half of
# the fits fail.
#
# ## Where they looked
#
# Circles are fits with a score (dark is good), crosses are fits that failed.

# %%
figure, axes = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
for axis, name in zip(axes, samplers, strict=True):
    trials = studies[name, 0].trials
    scored = [trial for trial in trials if trial.state.name == "COMPLETE"]
    failed = [trial for trial in trials if trial.state.name == "FAIL"]
    places = [trial.params["C"] for trial in scored], [trial.params["gamma"] for trial in scored]
    values = [trial.value for trial in scored]
    axis.scatter(*places, c=values, cmap="viridis", vmin=0.02, vmax=0.1, edgecolors="black")
    axis.plot([t.params["C"] for t in failed], [t.params["gamma"] for t in failed], "x", color="#d55e00")
    axis.set(xscale="log", yscale="log", xlabel="C", title=f"{name}: {len(failed)} of {len(trials)} failed")
axes[0].set_ylabel("gamma")
plt.show()

# %% [markdown]
# ## What the sampler has learned
#
# The best guess comes with the probability that the fit succeeds.

# %%
crash_aware = studies["CrashBO", 0]
print("Best guess:", crash_aware.sampler.best(crash_aware))
print(crash_aware.trials[-1].user_attrs["crashbo:why"])

# %% [markdown]
# You can treat a fit that takes too long or too much memory in the same way: run it in its own process, and raise
# `Crash` when you have to end it. See [with Optuna](../optuna.md) for what else counts as a crash, failures that should
# not count, and workers.
