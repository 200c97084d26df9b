# SPDX-License-Identifier: BSD-2-Clause
"""The testbed and the experiments of Sandpaper."""
