# %% [markdown]
# # A training run that diverges
#
# A small PyTorch network learns to predict the progression of diabetes (scikit-learn's diabetes data). A higher
# learning rate gives a better result, until it is too high and the loss becomes NaN. The best settings lie close to
# that border.
#
# What Optuna does here: a trial that returns NaN has failed and is dropped, so TPE keeps trying rates that
# diverge. A penalty would be hard to choose: the loss of runs that barely converge is anything between 0.5 and 100.

# %%
import math

import optuna
import torch
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

import crashbo

torch.set_num_threads(1)
X, y = load_diabetes(return_X_y=True, scaled=True)
X, y = X / X.std(axis=0), (y - y.mean()) / y.std()
X_train, X_valid, y_train, y_valid = (
    torch.tensor(part, dtype=torch.float32) for part in train_test_split(X, y, random_state=0)
)


def make_network():
    torch.manual_seed(0)
    layers = [torch.nn.Linear(10, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers, torch.nn.Linear(64, 1), torch.nn.Flatten(0))


# %% [markdown]
# One run has 25 steps. Its cost is the loss on validation data; a loss of NaN is a crash.


# %%
def train(params):
    network = make_network()
    optimizer = torch.optim.SGD(network.parameters(), lr=params["rate"], momentum=params["momentum"])
    for step in range(25):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(network(X_train), y_train)
        if not math.isfinite(loss.item()):
            raise crashbo.Crash(f"diverged at step {step}")
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        return torch.nn.functional.mse_loss(network(X_valid), y_valid).item()


space = {"rate": crashbo.Float(1e-4, 10.0, log=True), "momentum": (0.0, 0.99)}
result = crashbo.minimize(train, space, n_trials=30, seed=0)
print("Best guess:", result.best)
print("Diverged:", result.n_crashes, "of", len(result.trials))

# %% [markdown]
# ## The same with Optuna's default sampler


# %%
def objective(trial):
    rate = trial.suggest_float("rate", 1e-4, 10.0, log=True)
    return train({"rate": rate, "momentum": trial.suggest_float("momentum", 0.0, 0.99)})


optuna.logging.set_verbosity(optuna.logging.ERROR)
study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
study.optimize(objective, n_trials=30, catch=(crashbo.Crash,))
diverged = sum(trial.state.name == "FAIL" for trial in study.trials)
lowest = min(trial.objective for trial in result.trials if not trial.crashed)
print(f"CrashBO: lowest loss {lowest:.4f}, {result.n_crashes} of {len(result.trials)} diverged")
print(f"TPE:     lowest loss {study.best_value:.4f}, {diverged} of {len(study.trials)} diverged")

# %% [markdown]
# ## What the model believes
#
# On the left the expected loss, on the right the probability that training does not diverge. Crosses are runs that
# diverged.

# %%
from crashbo import plots

plots.plot_maps(result, "rate", "momentum", quantities=("mean", "success"))
