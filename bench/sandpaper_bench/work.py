# SPDX-License-Identifier: BSD-2-Clause
"""VCL work: regular-expression substitutions, as publishers' VCL does them.

How long a unit of it takes is measured at start (`_calibrate` in rig.py).  A
unit leaves its result in the request's workspace.  The compiler gives each unit
a place of its own on the worker's stack.
"""

from __future__ import annotations

from itertools import groupby

TEXT = "published-5 minutes-ago by-4 editors-in 12-cities, " * 4
UNIT = ('\t\tset req.http.X-Work = regsuball(req.http.X-Text, '
        '"([a-z]+)-([0-9a-z]+)", "\\2-\\1");')
UNIT_BYTES = 450  # that a unit leaves there
OTHERS = 32 * 1024  # bytes of workspace for all that is no work
WORKSPACE = 128 * 1024  # bytes, at least: 6.0's default is small
UNIT_STACK = 32  # bytes of the stack that a unit takes
STACK = 80 * 1024  # bytes of the stack for all that is no work: the default

DEAR = "\t\t# dear work\n"  # a line of VCL that stands for DEAR_US of work
DEAR_US = 2200


def work_vcl(units: int) -> str:
    """Return VCL statements that do `units` units of work."""
    if units == 0:
        return ""
    return f'\t\tset req.http.X-Text = "{TEXT}";\n' + f"{UNIT}\n" * units


def room(text: str) -> list[str]:
    """Return the parameters with which there is memory for this VCL's work."""
    units = [UNIT == line for line in text.splitlines()]
    most = max((len([*run]) for unit, run in groupby(units) if unit),
               default=0)
    left = max(WORKSPACE, most * UNIT_BYTES + OTHERS)
    return [f"workspace_client={left}",
            f"thread_pool_stack={STACK + sum(units) * UNIT_STACK}"]


def with_work(text: str, unit_us: float) -> str:
    """Return VCL with DEAR replaced by the work that it stands for."""
    return text.replace(DEAR, work_vcl(round(DEAR_US / unit_us)))
