"""What a run, or all runs under a home, came to: one page for people."""

from promptchain_dagster.report.gather import Report, report_of_home, report_of_run
from promptchain_dagster.report.page import page

__all__ = ["Report", "page", "report_of_home", "report_of_run"]
