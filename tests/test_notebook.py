"""A first day in a notebook: progress, a result, pictures and a data frame, and no warning."""

import pytest

pytest.importorskip("ipykernel", reason="needs pip install 'crashbo[notebook]'")
nbclient = pytest.importorskip("nbclient", reason="needs pip install 'crashbo[notebook]'")
pytest.importorskip("pandas", reason="needs pip install 'crashbo[notebook]'")
import nbformat  # noqa: E402

CELLS = [
    "import warnings; warnings.simplefilter('error')\nimport crashbo\nfrom crashbo import plots",
    "def rollout(params):\n"
    "    if params['x'] > 0.7:\n"
    "        raise crashbo.Crash('fell')\n"
    "    return (params['x'] - 0.5) ** 2 + params['y']\n"
    "result = crashbo.minimize(rollout, {'x': (0.0, 1.0), 'y': (0.0, 1.0)}, n_trials=6)",
    "result",
    "plots.plot_maps(result, quantities=('mean', 'success'))",
    "plots.plot_convergence(result)",
    "plots.plot_slices(result).show()",
    "result.to_dataframe()",
]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the notebook's own machinery, in this process
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_first_day_in_a_notebook():
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in CELLS])
    nbclient.NotebookClient(book, timeout=300, kernel_name="python3").execute()
    outputs = [cell["outputs"] for cell in book["cells"]]
    assert not [one for cell in outputs for one in cell if one["output_type"] in ("stream", "error")]
    assert outputs[0] == []
    (progress,) = outputs[1]
    assert "6/6" in progress["data"]["text/html"]
    assert "crashed" in progress["data"]["text/html"]
    (shown,) = outputs[2]
    assert "best guess" in shown["data"]["text/html"]
    assert "data:image/png;base64," in shown["data"]["text/html"]
    assert shown["data"]["text/plain"].startswith("Result(6 trials")
    for cell in outputs[3:6]:
        (picture,) = cell
        assert len(picture["data"]["image/png"]) > 5000
    (frame,) = outputs[6]
    assert "<th>status</th>" in frame["data"]["text/html"]
