"""CrashBO's sampler as an OptunaHub package."""

from crashbo.integrations.optuna import (
    CrashBOSampler,
    crashing,
    lost_worker,
    report,
    report_crash,
    report_transient,
)

__all__ = ["CrashBOSampler", "crashing", "lost_worker", "report", "report_crash", "report_transient"]
