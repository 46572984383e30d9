"""The lowest versions that pyproject.toml allows, as constraints for pip: PYTHON .ci/lowest.py [EXTRA ...]

One line `name==version` for every dependency of the core and of the extras named.
"""

import re
import sys
import tomllib
from pathlib import Path

_LOWEST = re.compile(r"(?P<name>[\w.-]+)(\[[\w,-]+\])?>=(?P<version>[\d.]+)")


def lowest(requirement: str) -> str:
    """The lowest version that a requirement allows: "optuna>=5,<6" gives "optuna==5"."""
    found = _LOWEST.match(requirement)
    if found is None:
        raise SystemExit(f"`{requirement}` must begin with a lower bound, as in numpy>=2.0. Fix pyproject.toml.")
    return f"{found['name']}=={found['version']}"


def main() -> None:
    """Print them."""
    project = tomllib.loads(Path(__file__).parent.with_name("pyproject.toml").read_text())["project"]
    extras = [one for name in sys.argv[1:] for one in project["optional-dependencies"][name]]
    print("\n".join(lowest(one) for one in [*project["dependencies"], *extras]))


if __name__ == "__main__":
    main()
