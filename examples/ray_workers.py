# %% [markdown]
# # Many workers on Ray
#
# Ray Tune runs trials on all cores of one machine or of many. CrashBO is the search algorithm: it takes running
# trials into account, and learns from those that fail. The model is the support vector machine of [the Optuna
# tutorial](failing_fits.md).
#
# What Ray does here: it tells a search algorithm only that a trial has failed. Most search algorithms then ignore the
# trial.

# %%
import logging
import os
import warnings

import ray
from ray import tune
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import crashbo
from crashbo.integrations.ray import CrashBOSearch


def fit(config):
    model = make_pipeline(StandardScaler(), SVC(C=config["C"], gamma=config["gamma"], max_iter=1000))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        try:
            error = 1.0 - cross_val_score(model, *load_breast_cancer(return_X_y=True), cv=5, error_score="raise").mean()
        except ConvergenceWarning as warning:
            raise crashbo.Crash("did not converge") from warning
    tune.report({"error": error})


# %% [markdown]
# `search.crashing` tells a crash from a lost worker. CrashBO learns from a crash. What a lost worker was trying is
# tried again.

# %%
ray.init(num_cpus=2, include_dashboard=False, logging_level=logging.ERROR, log_to_driver=False)
search = CrashBOSearch(metric="error", mode="min", seed=0)
tuner = tune.Tuner(
    search.crashing(fit),
    param_space={"C": tune.loguniform(1e-2, 1e6), "gamma": tune.loguniform(1e-6, 1.0)},
    tune_config=tune.TuneConfig(search_alg=search, num_samples=24, max_concurrent_trials=4),
    run_config=tune.RunConfig(name="svc", storage_path=os.path.abspath("runs"), verbose=0),
)
results = tuner.fit()

# %% [markdown]
# Ray's own table has the results. A crashed trial has a reason instead of an error.

# %%
table = results.get_dataframe().sort_values("error")
print(table[["config/C", "config/gamma", "error", "crash"]].to_string(index=False, float_format="{:.3g}".format))

# %%
print("Best guess:", search.best())
print("Crashes:", int(table["error"].isna().sum()), "of", len(table))
ray.shutdown()

# %% [markdown]
# [With Ray Tune](../ray.md) has the details: what counts as what, retries, stop and restore.
