# %% [markdown]
# # A robot with people beside it
#
# This robot cannot be called as a function: a person resets it, starts it, watches it and writes down what happened.
# The study is a file. People work on it with a web page, the *console*; programs use commands or HTTP.
#
# What people usually do here: they keep a spreadsheet, choose the next values by feeling, and leave out the trials that
# failed.

# %%
import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid


def shell(command):
    """Run a command and show its output, as a terminal does."""
    words = command.replace("crashbo ", f"{sys.executable} -m crashbo ", 1)
    plain = {name: value for name, value in os.environ.items() if name != "FORCE_COLOR"}  # which notebooks set
    done = subprocess.run(words, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=plain)
    print(f"$ {command}\n{done.stdout}", end="")


# %% [markdown]
# ## Make the study
#
# There are two gains to tune, and a reach that must stay below an unknown limit. The budget is six crashes.

# %%
shell(
    "crashbo new --float stiffness 0 10 --log damping 0.01 10 --constraint reach --unit stiffness=N/m --crash-budget 6"
)

# %% [markdown]
# ## The console
#
# `crashbo console --open` opens the page. It shows what to try next and why, one big button for CRASHED, and what the
# model believes. It works on a phone too; see [the console](../console.md) for who can connect.
#
# ![The console: next experiment, one button for a crash, and what the model believes](../images/console.png)
#
# ## The same without a browser
#
# A robot's computer, a PLC or MATLAB can use the console's HTTP interface. This example uses Python's standard
# library. First start the console with our own token:

# %%
token = uuid.uuid4().hex
words = [sys.executable, "-m", "crashbo", "console", "--port", "0", "--token", token]  # 0: any free port
console = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
said = console.stdout.readline()
address = re.search(r"http://[\d.:]+", said)[0]
print(said.partition(": http")[0])


# %%
def call(name, body=None):
    """Ask the console something; POST with a body, GET without."""
    headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": uuid.uuid4().hex}
    if body is not None:
        headers["Content-Type"] = "application/json"
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{address}/api/{name}", data, headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def take(by):
    """Take the console's suggestion, as soon as there is one that knows the latest result."""
    while True:
        found = call("state")["offer"]
        try:
            if found is not None and found.get("key"):
                return call("take", {"offer": found["key"], "by": by})["number"]
        except urllib.error.HTTPError as error:
            if error.code != 409:  # 409: it is outdated, or someone else was faster
                raise
        time.sleep(0.2)


# %% [markdown]
# Take the suggestion, run the experiment, tell the result. This robot falls on its first trial. The reach measured
# before the fall is reported too; it helps the model.

# %%
trial = take(by="Ada")
call("crash", {"number": trial, "reason": "fell", "constraints": {"reach": 8.1}, "by": "Ada"})
trial = take(by="Ada")
call("tell", {"number": trial, "objective": 0.73, "constraints": {"reach": 5.2}, "by": "Ada"})

# %% [markdown]
# The commands work on the same study. Bob has tried values of his own. Ada has mistyped her result: the right one is
# 0.78.

# %%
shell("crashbo tell --params stiffness=3 damping=0.5 0.91 reach=4.4 --by Bob")
shell(f"crashbo correct {trial} 0.78 reach=5.2 --by Ada --reason 'mistyped'")
shell("crashbo status")

# %% [markdown]
# Everything is kept: who entered it, what was there before, and why it was changed.

# %%
shell(f"crashbo show {trial}")
console.terminate()
status = console.wait()
console.stdout.close()
