# %% [markdown]
# # Four workers on PostgreSQL
#
# Four machines fit the support vector machine of [the Optuna tutorial](failing_fits.md) at the same time. They share
# one database and nothing else. Each runs the same command, and any of them may fail.
#
# What Optuna does here: its workers can share a database too. But they learn nothing from a failed fit, two
# workers may try nearly the same values, and a worker that dies leaves its trial "running" for ever unless heartbeats
# are set up.

# %%
import os
import signal
import subprocess
import sys
import time

import optuna

STORAGE = os.environ["CRASHBO_STORAGE"]  # such as postgresql://user:password@host/database


def shell(command):
    """Run a command and show its output, as a terminal does."""
    words = command.replace("crashbo ", f"{sys.executable} -m crashbo ", 1)
    plain = {name: value for name, value in os.environ.items() if name != "FORCE_COLOR"}  # which notebooks set
    done = subprocess.run(words, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=plain)
    print(f"$ {command}\n{done.stdout}", end="")


# %% [markdown]
# The program fits one model and prints its error; a fit that does not converge exits with code 1. `pip install
# 'crashbo[postgres]'` brings the driver.

# %%
shell("cat svc/fit.py")

# %% [markdown]
# ## Four workers
#
# The first worker creates the study, the others join it. `--trials` is the number of trials of the whole study. On four
# machines, you run this command once on each.

# %%
command = [
    *(sys.executable, "-m", "crashbo", "run", "--trials", "16"),
    *("--log", "C", "1e-2", "1e6", "--log", "gamma", "1e-6", "1"),
    *("--", sys.executable, "svc/fit.py", "{C}", "{gamma}"),
]
quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
workers = [subprocess.Popen(command, **quiet) for _ in range(4)]

# %% [markdown]
# A machine loses power: one worker is killed, in the middle of a trial.

# %%
DATABASE = STORAGE.replace("postgresql:", "postgresql+psycopg:")  # as SQLAlchemy names it


def is_busy(worker):
    """Whether a worker is in the middle of a trial."""
    if "crashbo" not in optuna.get_all_study_names(DATABASE):
        return False
    trials = optuna.load_study(study_name="crashbo", storage=DATABASE).trials
    running = [trial for trial in trials if trial.params and not trial.state.is_finished()]
    return worker.pid in [trial.user_attrs["crashbo:worker"]["pid"] for trial in running]


while workers[3].poll() is None and not is_busy(workers[3]):
    time.sleep(0.1)
workers[3].send_signal(signal.SIGKILL)
for worker in workers[:3]:
    worker.wait()

# %% [markdown]
# ## The result
#
# The trial of the dead worker is marked as transient, and its values have been tried again. Otherwise no two workers
# tried the same values.

# %%
shell("crashbo status")

# %%
trials = optuna.load_study(study_name="crashbo", storage=DATABASE).trials
points = {tuple(trial.params.values()) for trial in trials}
print(len(trials), "trials,", len(points), "different points")
