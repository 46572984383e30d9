"""Pictures: matplotlib for print here, plotly for the screen in `crashbo.plots.interactive`.

Every picture takes an `Optimizer`, a `Result` of `crashbo.minimize`, or a `View` of either, which
adds units and trial numbers. The numbers behind the pictures, without any drawing, are in
`crashbo.plots.data`, `crashbo.plots.planes`, `crashbo.plots.history` and `crashbo.plots.importance`.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crashbo.plots.figures import plot_maps as plot_maps
    from crashbo.plots.figures import plot_model as plot_model
    from crashbo.plots.figures import plot_pairs as plot_pairs
    from crashbo.plots.figures import plot_slices as plot_slices
    from crashbo.plots.gpcr import plot_posterior as plot_posterior
    from crashbo.plots.gpcr import plot_predictive as plot_predictive
    from crashbo.plots.run_figures import plot_convergence as plot_convergence
    from crashbo.plots.run_figures import plot_importance as plot_importance
    from crashbo.plots.run_figures import plot_parallel as plot_parallel
    from crashbo.plots.run_figures import plot_thresholds as plot_thresholds
    from crashbo.plots.views import View as View
    from crashbo.plots.views import view as view

# Imported on first use: whoever draws with plotly alone does not wait for matplotlib.
_LAZY = {
    "View": "crashbo.plots.views",
    "view": "crashbo.plots.views",
    "plot_convergence": "crashbo.plots.run_figures",
    "plot_importance": "crashbo.plots.run_figures",
    "plot_maps": "crashbo.plots.figures",
    "plot_model": "crashbo.plots.figures",
    "plot_pairs": "crashbo.plots.figures",
    "plot_parallel": "crashbo.plots.run_figures",
    "plot_posterior": "crashbo.plots.gpcr",
    "plot_predictive": "crashbo.plots.gpcr",
    "plot_slices": "crashbo.plots.figures",
    "plot_thresholds": "crashbo.plots.run_figures",
}

__all__ = [*_LAZY]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'crashbo.plots' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
