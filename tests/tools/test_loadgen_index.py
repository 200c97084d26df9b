# SPDX-License-Identifier: BSD-2-Clause
"""What the load generator says of all its connections: fairness, the mean."""

from __future__ import annotations

from loadgen import ANSWER, loaded
from test_loadgen_open import TIMEOUT, Server


def test_the_index_of_jain() -> None:
    with loaded("host=a,conns=4", "-t", "2") as (peer, _, found):
        for _ in range(5):  # the others have no answer
            peer.recv(8192)
            peer.send(ANSWER)
    assert (found["jain"], found["conn_max"]) == (0.25, 5)
    seen = Server(lambda _: ANSWER).loaded("conns=1,limit=5", TIMEOUT)
    assert seen["jain"] == 1
    with loaded("host=a,conns=4", "-t", "0.1") as (_, _, found):
        pass
    assert found["jain"] == 0


def test_the_mean() -> None:
    seen = Server(lambda _: ANSWER).loaded("conns=1,limit=1", TIMEOUT)
    assert seen["mean_s"] == seen["max_s"]
    seen = Server(lambda _: ANSWER).loaded("conns=1,limit=50", TIMEOUT)
    assert 0 < seen["mean_s"] <= seen["max_s"]
