"""RunResult in, what people read out: one HTML file and one overview picture."""

from unpaired.report.html import render_report, write_report
from unpaired.report.plots import save_overview_png

__all__ = ["render_report", "save_overview_png", "write_report"]
