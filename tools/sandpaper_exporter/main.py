# SPDX-License-Identifier: BSD-2-Clause
"""The program: its options, and what runs together."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from prometheus_client.core import Metric
from sandpaper_ask import Parser, ToolError, varnishadm

from .metrics import Metrics, gauge
from .poll import Poller, Sink, say
from .status import Status, html
from .totals import MOST, UNMAPPED
from .usage import Usage, UsageError
from .web import Server

LISTEN = "127.0.0.1:9646"


def address(text: str) -> tuple[str, int]:
    """Return the address and port to listen on."""
    host, colon, port = text.rpartition(":")
    if not (colon and host and port.isdecimal() and int(port) < 65536):
        raise argparse.ArgumentTypeError(
            f"'{text}' is no ADDRESS:PORT such as {LISTEN}")
    return host.strip("[]"), int(port)


def number(least: int, most: int) -> Callable[[str], int]:
    """Return what reads a number within bounds."""
    def read(text: str) -> int:
        if not (text.isdecimal() and least <= int(text) <= most):
            raise argparse.ArgumentTypeError(
                f"'{text}' is no number from {least} to {most}")
        return int(text)

    return read


def parser() -> Parser:
    """Return the parser of the command line."""
    p = Parser(
        prog="sandpaper-exporter",
        description="Serve what each tenant of a running varnishd uses, for "
        "Prometheus, and keep it by hour as CSV for bills.",
        epilog="It runs until SIGTERM or Ctrl-C. The exit status is 0, 1 if "
        "it cannot start, and 2 for a wrong option.")
    p.add_varnishd()
    p.add_argument("--listen", type=address, default=address(LISTEN),
                   metavar="ADDRESS:PORT", help="where the status page and "
                   f"/metrics are (default {LISTEN}); everybody who can "
                   "connect can read it")
    p.add_argument("--interval", type=number(1, 60), default=1, metavar="S",
                   help="seconds between two looks (default 1)")
    p.add_argument("--tenants", type=number(1, 1000000), default=MOST,
                   metavar="N", help="how many tenants of the map have a "
                   "label of their own; more count for their group, or as "
                   f"{UNMAPPED} (default {MOST})")
    p.add_argument("--gauges", type=number(0, 1000000), default=500,
                   metavar="N", help="how many tenants have gauges: those "
                   "that do most now (default 500)")
    p.add_argument("--histograms", type=number(0, 1000000), default=500,
                   metavar="N", help="how many tenants have a histogram of "
                   "waits: the largest (default 500)")
    p.add_argument("--usage", type=Path, metavar="DIR", help="keep what each "
                   "tenant used in each hour in this folder, as CSV")
    p.add_argument("--keep-days", type=number(1, 36500), metavar="N",
                   help="with --usage: keep the newest 24 x N files, and "
                   "remove older ones (default: keep all)")
    return p


def usage_metrics(usage: Usage) -> Iterable[Metric]:
    """Say if accounting works."""
    return [gauge("usage_up", "1 if the files of --usage are written, 0 if "
                  "the disk is full.", usage.writing)]


def run(args: argparse.Namespace) -> None:
    """Look and serve until a signal comes."""
    metrics = Metrics(args.gauges, args.histograms, args.tenants)
    adm = varnishadm(args)
    status = Status(adm)
    sinks: list[Sink] = [metrics, status]
    if args.usage is not None:
        usage = Usage(args.usage, say, args.tenants, args.keep_days)
        sinks.append(usage)
        metrics.more.append(lambda: usage_metrics(usage))
    poller = Poller(adm, args.interval, sinks)
    index = html()
    server = Server(args.listen, {
        "/": lambda: index, "/status.json": status.page,
        "/metrics": metrics.page})
    stops = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, stops)
    poller.start()
    server.start()
    say("ready on {}:{}".format(*server.server_address[:2]))
    signal.sigwait(stops)
    poller.stop()
    server.shutdown()


def main(argv: list[str] | None = None) -> int:
    """Run the program; return the exit status."""
    p = parser()
    args = p.parse_args(argv)
    p.varnishd(args)
    try:
        run(args)
    except (ToolError, UsageError) as error:
        print(f"sandpaper-exporter: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print("sandpaper-exporter: --listen {}:{}: ".format(*args.listen)
              + (error.strerror or str(error)), file=sys.stderr)
        return 1
    return 0
