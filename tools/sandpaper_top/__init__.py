# SPDX-License-Identifier: BSD-2-Clause
"""sandpaper-top: what each tenant uses now, in a terminal.

From the bottom: terminal (lines and glyphs), rates (figures of an interval),
table and page (screens), view (what keys do), poller (asks varnishd), program.
The demo shows the same table.
"""

from sandpaper_ask import NotRunning, ToolError, Varnishadm

from .poller import Poller
from .rates import Rates, Row, Sample
from .table import Choices, duration, picture
from .terminal import (
    ASCII,
    UNICODE,
    Live,
    glyphs,
    is_utf8,
    need_urwid,
    plain,
    too_small,
    why_no_terminal,
)

__all__ = [
    "ASCII", "UNICODE", "Choices", "Live", "NotRunning", "Poller", "Rates",
    "Row", "Sample", "ToolError", "Varnishadm", "duration", "glyphs",
    "is_utf8", "need_urwid", "picture", "plain", "too_small",
    "why_no_terminal"]
