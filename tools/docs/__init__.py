# SPDX-License-Identifier: BSD-2-Clause
"""The checks of README.md and doc/: prose, links, commands, reference pages."""
