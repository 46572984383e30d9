# %% [markdown]
# # A program in any language: a circuit
#
# A flyback converter makes 24 V from 12 V. [Its netlist and a shell script](../../examples/flyback) simulate
# it with ngspice (`apt install ngspice`). Three parameters are tuned: the inductance `lp`, the ratio of `turns`
# and the `duty` cycle. For many values the simulation fails: "Timestep too small", or results that are physically
# impossible. Then there is no cost.
#
# What people usually do is a sweep: simulate a grid of values and take the best. `crashbo run` starts the
# same script, learns from the simulations that failed, and keeps everything in a file.

# %%
import csv
import itertools
import json
import os
import subprocess
import sys

import matplotlib.pyplot as plt


def shell(command):
    """Run a command and show its output, as a terminal does."""
    words = command.replace("crashbo ", f"{sys.executable} -m crashbo ", 1)
    plain = {name: value for name, value in os.environ.items() if name != "FORCE_COLOR"}  # which notebooks set
    done = subprocess.run(words, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=plain)
    print(f"$ {command}\n{done.stdout}", end="")


shell("cat flyback/space.yaml")

# %% [markdown]
# The script takes the three values. It prints a line of JSON: the cost (deviation from 24 V plus losses, in percent)
# and the highest voltage at the transistor, which must not exceed 100 V.

# %%
shell("flyback/simulate.sh 5e-5 2.5 0.45")
shell("flyback/simulate.sh 1.8e-5 4.3 0.36")

# %% [markdown]
# ## Tune it
#
# The space is in a file; `{lp}`, `{turns}` and `{duty}` are replaced by their values. You can stop it at any time; the
# same command resumes.

# %%
shell("crashbo run --space flyback/space.yaml --trials 40 -- flyback/simulate.sh {lp} {turns} {duty}")

# %% [markdown]
# ## A sweep with the same script
#
# Four values of each parameter make 64 simulations.

# %%
sweep = []
for values in itertools.product([7e-6, 2.4e-5, 8e-5, 1.5e-4], [1.0, 2.0, 3.5, 5.0], [0.2, 0.4, 0.6, 0.8]):
    words = ["flyback/simulate.sh", *map(str, values)]
    said = json.loads(subprocess.run(words, capture_output=True, text=True).stdout)
    sweep.append((*values, said.get("objective") if said.get("drain", 0) <= 100 else None, "crash" in said))
lowest = min((row for row in sweep if row[3] is not None), key=lambda row: row[3])
print(f"{len(sweep)} simulations, {sum(row[4] for row in sweep)} failed; lowest cost {lowest[3]:.2f} at {lowest[:3]}")

# %% [markdown]
# ## Where both looked
#
# `crashbo export` writes all trials as a table. Circles are simulations with a cost (dark is good), crosses are those
# that failed.

# %%
shell("crashbo export trials.csv")
with open("trials.csv") as file:
    trials = [
        (
            *(float(row[name]) for name in ("lp", "turns", "duty")),
            float(row["objective"]) if row["objective"] else None,
            row["status"] == "crashed",
        )
        for row in csv.DictReader(file)
    ]
figure, axes = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
for axis, title, rows in ((axes[0], "crashbo run", trials), (axes[1], "sweep", sweep)):
    good = [row for row in rows if row[3] is not None]
    bad = [row for row in rows if row[4]]
    axis.scatter(
        [row[0] for row in good],
        [row[2] for row in good],
        c=[row[3] for row in good],
        cmap="viridis",
        vmin=8,
        vmax=60,
        edgecolors="black",
    )
    axis.plot([row[0] for row in bad], [row[2] for row in bad], "x", color="#d55e00")
    axis.set(xscale="log", xlabel="lp [H]", title=f"{title}: {len(bad)} of {len(rows)} failed")
axes[0].set_ylabel("duty")
plt.show()

# %% [markdown]
# `crashbo report` writes the study as a page with interactive pictures: [pictures and reports](../plots.md). [The
# command line](../command-line.md#any-program) says how a program gets its parameters and reports its cost.
