# SPDX-License-Identifier: BSD-2-Clause
"""Sandpaper's release policies on simulated servers: see sim/README.md."""
