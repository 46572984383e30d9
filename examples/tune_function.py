# %% [markdown]
# # Tune a function
#
# A controller has two gains. Where their product is large it oscillates, and the experiment has to be stopped. Then
# there is no cost; all you know is that it crashed. Raise `crashbo.Crash`, and `crashbo.minimize` does the rest.
#
# What other tools do here: they need a number for every trial, so you return a penalty such as 1000. The model
# then has to fit a cliff that is not there, and how well the search works depends on the number you chose.

# %%
import crashbo


def experiment(params):
    kp, kd = params["kp"], params["kd"]
    if kp * kd > 3.0:
        raise crashbo.Crash("oscillates")  # no cost, no penalty, just the label
    return (kp - 6.0) ** 2 + 10.0 * (kd - 0.4) ** 2


space = {"kp": (0.0, 10.0), "kd": (0.1, 1.0)}
result = crashbo.minimize(experiment, space, n_trials=20, seed=0)

# %% [markdown]
# ## The result
#
# The best guess is where the model expects a low cost and where success is likely enough. It comes with its
# uncertainty.

# %%
print("Best guess:", result.best)
print("Crashes:", result.n_crashes, "of", len(result.trials))

# %% [markdown]
# Every trial is kept, with the reason of a crash.

# %%
for trial in result.trials[:6]:
    outcome = f"crashed ({trial.reason})" if trial.crashed else f"{trial.objective:.3f}"
    print(f"kp = {trial.params['kp']:5.2f}, kd = {trial.params['kd']:4.2f}: {outcome}")

# %% [markdown]
# ## What the model believes
#
# On the left the expected cost, on the right the probability that a trial succeeds. Circles are trials with a cost,
# crosses are crashes. The border, kp kd = 3, was learned from the trials.

# %%
from crashbo import plots

plots.plot_maps(result, "kp", "kd", quantities=("mean", "success"))

# %% [markdown]
# Crashes may be high costs, or have nothing to do with the cost. CrashBO considers both and says how likely each is:

# %%
print(result.optimizer.crash_relation)

# %% [markdown]
# ## Ask and tell
#
# If your experiment cannot be a function, write the loop yourself: ask for the next trial, run it, tell the result.

# %%
optimizer = crashbo.Optimizer(space, seed=0)
for _ in range(8):
    params = optimizer.ask()
    try:
        optimizer.tell(params, experiment(params))
    except crashbo.Crash as crash:
        optimizer.tell(params, crashbo.CRASHED, reason=crash.reason)
print("Next:", optimizer.ask().why)

# %% [markdown]
# Next: [how much risk is taken](../how-to/risk.md), [constraints](../how-to/constraints.md), [stop and
# resume](../how-to/resume.md).
