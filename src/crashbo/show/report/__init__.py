"""A run as one HTML file that opens anywhere, without a network."""

from crashbo.show.report.write import Extra, render_report, write_report

__all__ = ["Extra", "render_report", "write_report"]
