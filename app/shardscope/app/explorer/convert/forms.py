"""The steps of choices of a guided conversion."""

from typing import ClassVar

from textual.binding import BindingType

from shardscope.app.explorer.convert.option_fields import OPTIONS
from shardscope.app.explorer.convert.what_fields import WHAT
from shardscope.app.explorer.output.forms import Form, bindings_of, where_form
from shardscope.widgets.plan_settings import SettingRows


class WhatRows(SettingRows):
    """What is made."""

    BINDINGS: ClassVar[list[BindingType]] = bindings_of(WHAT, "what")


class OptionRows(SettingRows):
    """How it is made."""

    BINDINGS: ClassVar[list[BindingType]] = bindings_of(OPTIONS, "options")


def form_of(step: str) -> Form:
    """Return the form of a step."""
    match step:
        case "what":
            return Form(step, WHAT, WhatRows())
        case "where":
            return where_form()
        case _:
            return Form(step, OPTIONS, OptionRows())
