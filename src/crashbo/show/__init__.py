"""Pictures: matplotlib for print here, plotly for the screen in `crashbo.show.interactive`.

Every picture takes an `Optimizer`, a `Result` of `crashbo.minimize`, or a `View` of either, which
adds units and trial numbers. The numbers behind the pictures, without any drawing, are in
`crashbo.show.data`, `crashbo.show.planes`, `crashbo.show.history` and `crashbo.show.importance`.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crashbo.show.figures import plot_convergence as plot_convergence
    from crashbo.show.figures import plot_importance as plot_importance
    from crashbo.show.figures import plot_maps as plot_maps
    from crashbo.show.figures import plot_model as plot_model
    from crashbo.show.figures import plot_pairs as plot_pairs
    from crashbo.show.figures import plot_parallel as plot_parallel
    from crashbo.show.figures import plot_slices as plot_slices
    from crashbo.show.figures import plot_thresholds as plot_thresholds
    from crashbo.show.gpcr import plot_posterior as plot_posterior
    from crashbo.show.gpcr import plot_predictive as plot_predictive
    from crashbo.show.views import View as View
    from crashbo.show.views import view as view

# Imported on first use: whoever draws with plotly alone does not wait for matplotlib.
_LAZY = {
    "View": "crashbo.show.views",
    "view": "crashbo.show.views",
    "plot_convergence": "crashbo.show.figures",
    "plot_importance": "crashbo.show.figures",
    "plot_maps": "crashbo.show.figures",
    "plot_model": "crashbo.show.figures",
    "plot_pairs": "crashbo.show.figures",
    "plot_parallel": "crashbo.show.figures",
    "plot_posterior": "crashbo.show.gpcr",
    "plot_predictive": "crashbo.show.gpcr",
    "plot_slices": "crashbo.show.figures",
    "plot_thresholds": "crashbo.show.figures",
}

__all__ = [*_LAZY]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'crashbo.show' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
