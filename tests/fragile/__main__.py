"""Run the tests as they are, then as other processors would, and list each test that ends otherwise.

make fragile
make fragile FRAGILE="--only perturb-1,nehalem -- tests/model tests/test_docs.py"
"""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

DEFAULT = ["-m", "not slow", "-n", os.environ.get("TEST_WORKERS", "2"), "--dist", "worksteal"]


@dataclass(frozen=True)
class Setting:
    """A kind of processor: options of pytest and environment variables; `missing` says why it cannot be tried here."""

    options: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    missing: str = ""

    def __str__(self) -> str:
        return " ".join([*self.options, *(f"{name}={value!r}" for name, value in self.environment.items())])


def settings() -> dict[str, Setting]:
    """All kinds, by name."""
    found = {f"perturb-{seed}": Setting((f"--perturb={seed}",)) for seed in range(1, 5)}
    features = disabled_by_numpy()
    kinds = {
        "haswell": {"OPENBLAS_CORETYPE": "Haswell"},
        "skylake": {"OPENBLAS_CORETYPE": "SkylakeX"},
        "nehalem": {
            "OPENBLAS_CORETYPE": "Nehalem",
            "ATEN_CPU_CAPABILITY": "default",
            "NPY_DISABLE_CPU_FEATURES": " ".join(features),
        },
    }
    needs = {"haswell": "AVX2", "skylake": "AVX512F", "nehalem": "SSE42"}
    for name, environment in kinds.items():
        missing = "" if has(needs[name]) else f"this processor ({platform.machine()}) has no {needs[name]}"
        found[name] = Setting((), environment, missing)
    return found


CHOSEN = ("perturb-1", "perturb-2", "haswell", "skylake", "nehalem")


def has(feature: str) -> bool:
    """Whether this processor has a feature, by NumPy's name for it."""
    from numpy._core._multiarray_umath import __cpu_features__

    return bool(__cpu_features__.get(feature))


def disabled_by_numpy() -> list[str]:
    """The features of this processor that NumPy has code for and can be told to leave."""
    from numpy._core._multiarray_umath import __cpu_dispatch__

    return [one for one in __cpu_dispatch__ if has(one)]


def outcomes(setting: Setting, arguments: list[str]) -> dict[str, tuple[str, str]]:
    """How every test ended, and why in a line, by its name."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        words = [sys.executable, "-m", "pytest", "-q", "--tb=no", "-rN", f"--junitxml={report}"]
        environment = {**os.environ, **setting.environment}
        started = time.monotonic()
        done = subprocess.run(
            [*words, "-o", "junit_family=xunit1", *setting.options, *arguments], env=environment, check=False
        )
        print(f"  {time.monotonic() - started:.0f} s", flush=True)
        if done.returncode not in (0, 1):
            raise SystemExit(f"pytest ended with exit code {done.returncode}.")
        found = {}
        for case in ElementTree.parse(report).iter("testcase"):
            ending = next((one for one in case if one.tag in ("failure", "error", "skipped")), None)
            kind, message = ("passed", "") if ending is None else (ending.tag, ending.get("message", ""))
            found[name_of(case)] = kind, (message.splitlines() or [""])[0][:200]
        return found


def name_of(case: ElementTree.Element) -> str:
    """A test's name as pytest takes it, with its file and class."""
    file, name = case.get("file", ""), case.get("name", "")
    module = file.removesuffix(".py").replace("/", ".")
    classes = case.get("classname", "").removeprefix(module).split(".")
    return "::".join([one for one in [file, *classes, name] if one])


def main() -> None:
    """Compare all chosen settings with the machine as it is."""
    known = settings()
    parser = argparse.ArgumentParser(
        prog="python -m tests.fragile", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default=",".join(CHOSEN), help=f"Of {', '.join(known)}.  [default: %(default)s]")
    parser.add_argument("pytest", nargs="*", help=f"Arguments of pytest, after `--`.  [always: {' '.join(DEFAULT)}]")
    chosen = parser.parse_args()
    names = chosen.only.split(",")
    if unknown := sorted(set(names) - set(known)):
        parser.error(f"--only must name some of {', '.join(known)}; got {', '.join(unknown)}.")

    arguments = [*DEFAULT, *chosen.pytest]
    print(f"As it is: pytest {' '.join(arguments)}", flush=True)
    first = outcomes(Setting(), arguments)
    broken = [name for name, (kind, _) in first.items() if kind in ("failure", "error")]
    changed: list[str] = []
    for name in names:
        setting = known[name]
        if setting.missing:
            print(f"{name}: left out, {setting.missing}.", flush=True)
            continue
        print(f"{name}: {setting}", flush=True)
        now = outcomes(setting, arguments)
        for test in sorted(first.keys() | now.keys()):
            before, (after, why) = first.get(test, ("absent", ""))[0], now.get(test, ("absent", ""))
            if before != after:
                changed.append(f"{test}\n    {before}; with {name} {after}: {why}")
    for test in broken:
        print(f"{test}\n    {first[test][0]} already as it is: {first[test][1]}")
    print("\n".join(changed) or "No test ends otherwise.")
    raise SystemExit(1 if changed or broken else 0)


if __name__ == "__main__":
    main()
