"""docs/http.md: its shell example runs, and its table names every endpoint."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from crashbo.console.server import serving
from crashbo.store.study import Study
from tests.console.helpers import Client, QuickModel, make_study, reopen

PAGE = (Path(__file__).parents[2] / "docs" / "http.md").read_text()


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl")
def test_the_shell_example_runs(tmp_path: Path) -> None:
    study = make_study(tmp_path, constraints=[])
    found = re.search(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    with serving(study, model=QuickModel(study)) as url:
        client = Client(url)
        script = found[1].replace("http://127.0.0.1:8765", client.origin)
        ran = subprocess.run(
            ["sh", "-ec", script], capture_output=True, text=True, timeout=60, env=os.environ | {"TOKEN": client.token}
        )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == '{"number":0}{"number":0}'
    [record] = reopen(study).records()
    assert (record.status, record.reason, record.params) == ("crashed", "fell", {"kp": 1.5, "kd": 0.2})


def test_every_endpoint_is_on_the_page(study: Study) -> None:
    from crashbo.console.app import make_app
    from crashbo.console.hub import Hub
    from crashbo.console.security import make_policy

    app = make_app(Hub(study, QuickModel(study)), make_policy("127.0.0.1", 1))
    paths = {route.path for route in app.routes if route.path.startswith("/api/")}  # type: ignore[attr-defined]
    assert paths - {"/api/login", "/api/picture"} == set(re.findall(r"`(?:GET|POST) (/api/[\w.]+)`", PAGE))
