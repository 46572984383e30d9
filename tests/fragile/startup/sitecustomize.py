"""Python runs this at its start where the folder is on PYTHONPATH: see tests/fragile/perturb.py."""

import os
import runpy
from pathlib import Path

if "CRASHBO_PERTURB" in os.environ:
    install = runpy.run_path(str(Path(__file__).parents[1] / "perturb.py"))["install"]
    install(int(os.environ["CRASHBO_PERTURB"]), float(os.environ["CRASHBO_PERTURB_SIZE"]))
