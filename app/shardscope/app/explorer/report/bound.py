"""What of the Report screen binds keys: for settings and tests, which want all of it."""

from typing import Final

from textual.dom import DOMNode

from shardscope.app.explorer.report.own_error import ErrorPage, ReportedError
from shardscope.app.explorer.report.preview import Preview
from shardscope.app.explorer.report.screen import ReportScreen
from shardscope.app.explorer.report.writing import WriteTo, Wrote
from shardscope.widgets.report_form import ReportForm
from shardscope.widgets.report_rows import ReportRows

OWNERS: Final[tuple[type[DOMNode], ...]] = (
    ReportScreen,
    ReportForm,
    Preview,
    ReportRows,
    WriteTo,
    Wrote,
    ReportedError,
    ErrorPage,
)
