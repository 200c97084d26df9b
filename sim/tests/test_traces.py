# SPDX-License-Identifier: BSD-2-Clause
"""Traces in CSV, and logs: what is read, and what is said of a bad one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sandpaper_sim.files import Wrong
from sandpaper_sim.trace import REQUEST, Trace, read_csv, write_csv
from sandpaper_sim.varnishlog import read_log
from sandpaper_sim.workload import generator

HEAD = "arrival_s,tenant,cpu_s,link_s\n"


def test_written_and_read_is_the_same(tmp_path: Path) -> None:
    rng = generator(1, "trace")
    rows = np.full(1000, -1, REQUEST)
    # Since 1970, to the ns.
    rows["arrival"] = 1_795_352_626 * 10**9 + np.cumsum(
        rng.integers(0, 10**12, 1000))
    for cost in ("cpu", "net", "fetch"):
        rows[cost] = np.exp(rng.uniform(0, 29, 1000)).astype(int)
    rows["tenant"] = np.arange(1000) % 3
    trace = Trace(["shop", 'a "b", c', "\u00e9t\u00e9.example"], rows)
    file = tmp_path / "t.csv"
    write_csv(trace, file)
    again = read_csv(file)
    assert again.tenants == trace.tenants
    assert again.rows.tolist() == rows.tolist()
    write_csv(again, tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_bytes() == file.read_bytes()


@pytest.mark.parametrize(("text", "says"), [
    ("arrival_s,tenant,cpu_s\n", ":1: link_s: is missing: use the columns"),
    ("arrival_s,tenant,cpu_s,link_s,link_s\n", ":1: link_s: is there twice"),
    (HEAD.replace("\n", ",size\n"), ":1: size: is not known: use the columns"),
    (HEAD + "0,a,1,0\n1,a,-2,0\n", ":3: cpu_s: '-2' is not allowed: use a"),
    (HEAD + "0,a,1,0\n1,a,5000,0\n", ":3: cpu_s: '5000' is not allowed: use"),
    (HEAD + "0,a,1,x\n", ":2: link_s: 'x' is not allowed"),
    (HEAD + "nan,a,1,1\n", ":2: arrival_s: 'nan' is not allowed"),
    (HEAD + "0,a,inf,1\n", ":2: cpu_s: 'inf' is not allowed"),
    (HEAD + "0,,1,1\n", ":2: tenant: is empty"),
    (HEAD + "0,a,1\n", ":2: has 3 fields: use 4, as line 1"),
    (HEAD + "1,a,1,1\n\n0.5,a,1,1\n",
     ":4: arrival_s: 0.5 is earlier than the request before: use 1 or"),
    (HEAD, "t.csv: has no request"), ("", ":1: arrival_s: is missing")])
def test_bad_traces(text: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text(text)
    with pytest.raises(Wrong) as e:
        read_csv(file)
    assert str(e.value).startswith(str(file))
    assert says in str(e.value)


LOG = """\
         2 Begin          c sess 0 HTTP/1
         3 Begin          c req 2 rxreq
         3 Timestamp      c Start: 1763800000.000000 0.000000 0.000000
         3 Timestamp      c Enqueue: 1763800000.000100 0.000100 0.000100
         5 Begin          c req 4 rxreq
         5 Timestamp      c Enqueue: 1763800000.000050 0.000100 0.000100
         5 Timestamp      c Release: 1763800000.000060 0.000110 0.000010
         5 Timestamp      c Fetch: 1763800000.000260 0.000310 0.000200
         5 Timestamp      c Resp: 1763800000.000280 0.000330 0.000020
         5 Sandpaper      c b.example 0.000010 0.000200 0.000300 0.000100 9 m
         3 Timestamp      c Release: 1763800000.000200 0.000200 0.000100
         8 Begin          c req 3 esi 1
         8 Timestamp      c Start: 1763800000.000210 0.000000 0.000000
         3 Sandpaper      c a.example 0.000100 0.000040 0.000020 0.000040 1 e
         7 Timestamp      c Enqueue: 1763800000.000400 0.000100 0.000100
         9 Sandpaper      c a.example 0.000100 0.000040 0.000020 0.000040 1 e
"""


def test_log(tmp_path: Path) -> None:
    file = tmp_path / "day.log"
    file.write_text(LOG)
    trace = read_log(file)
    t = 1763800000 * 10**9
    assert trace.tenants == ["b.example", "a.example"]
    assert trace.left_out == 1
    assert trace.rows.tolist() == [
        (t + 50_000, t + 60_000, t + 280_000, 200_000, 300_000, 200_000,
         0, 0, 9),
        (t + 100_000, t + 200_000, t + 200_000, 40_000, 20_000, 0, 1, 1,
         1)]


def test_a_restart_is_the_same_request(tmp_path: Path) -> None:
    file = tmp_path / "day.log"
    file.write_text("""\
3 Begin c req 2 rxreq
3 Timestamp c Enqueue: 10.000000 0.000100 0.000100
3 Timestamp c Restart: 10.000500 0.000100 0.000100
4 Begin c req 3 restart
4 Timestamp c Resp: 10.000900 0.000100 0.000100
4 Sandpaper c a 0.000100 0.000040 0.000020 0.000040 1 e
""")
    row, = read_log(file).rows
    assert (row["arrival"], row["end"]) == (10 * 10**9, 10 * 10**9 + 900_000)


def test_streams_have_connections_of_their_own(tmp_path: Path) -> None:
    """One connection: 0 to 2 and 1 to 3 ms; the next follow the last one
    that had ended."""
    lines = []
    for vxid, begin, end in ((3, 0, 2), (5, 1, 3), (7, 4, 6), (9, 5, 7)):
        lines += [f"{vxid} Begin c req 2 rxreq",
                  f"{vxid} Timestamp c Enqueue: 9.00{begin} 0.0 0.0",
                  f"{vxid} Timestamp c Resp: 9.00{end} 0.0 0.0",
                  f"{vxid} Sandpaper c a 0.0 0.001 0.0 0.001 1 m"]
    file = tmp_path / "day.log"
    file.write_text("\n".join(lines))
    assert read_log(file).rows["connection"].tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize(("old", "new", "says"), [
    (" 9 m", "", ":10: Sandpaper: has 5 fields, not 7"),
    ("0.000200 0.000300", "-0.000200 0.000300",
     ":10: Sandpaper: CPU cost: '-0.000200' is not allowed: use"),
    ("Enqueue: 1763800000.000050", "Enqueue: soon",
     ":6: Timestamp Enqueue:: 'soon' is not allowed"),
    ("c sess 0 HTTP/1", "c req 0", ":1: Begin: has 2 fields, not 3"),
    (LOG, "* << Request >> 3\n- Sandpaper a 0 0 0 0 1 m\n",
     "day.log: has no request: record the log with `varnishlog")])
def test_bad_logs(old: str, new: str, says: str, tmp_path: Path) -> None:
    assert old in LOG
    file = tmp_path / "day.log"
    file.write_text(LOG.replace(old, new))
    with pytest.raises(Wrong) as e:
        read_log(file)
    assert says in str(e.value)


def test_what_is_not_there(tmp_path: Path) -> None:
    for read in (read_csv, read_log):
        with pytest.raises(Wrong, match="No such file"):
            read(tmp_path / "no")
