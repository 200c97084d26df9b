# SPDX-License-Identifier: BSD-2-Clause
"""The releaser of src/releaser, the same object code as in varnishd.

Times and costs are integers, ns. Tenants and requests are numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from _sandpaper_glue import ffi, lib

from .parameters import default

CPU, NET = 0, 1                 # enum rel_resource
EMPTY, NO_SLOT, NOT_YET = lib.SIM_EMPTY, lib.SIM_NO_SLOT, lib.SIM_NOT_YET
NEVER = 2**63 - 1               # ns

SETTLE, KEEP_DEBT, CAP = (
    lib.REL_OPT_SETTLE, lib.REL_OPT_KEEP_DEBT, lib.REL_OPT_CAP)
CLOSED, REJOIN, LIMITS = (
    lib.REL_OPT_CLOSED, lib.REL_OPT_REJOIN, lib.REL_OPT_LIMITS)
ALL, PAPER = lib.REL_OPT_ALL, lib.REL_OPT_PAPER  # Sandpaper's Figure 8 as it is

WEIGHT_ONE, WEIGHT_MAX = lib.REL_WEIGHT_ONE, lib.REL_WEIGHT_MAX
SCALE_ONE, PART_ONE = lib.REL_SCALE_ONE, lib.REL_PART_ONE
COST_MAX = lib.REL_COST_MAX     # ns, of one request
DEAR = lib.ACC_DEAR             # times its charge: always measured
ROUND = round(default("sandpaper_round") * 1e9)         # ns
FLOWS, FLOWS_MAX = lib.REL_FLOWS, lib.REL_FLOWS_MAX     # of mr3-vf
WINDOW, PROOF, FEW, AGE, EVERY, IDLE = (        # of newhosts.h; s, FEW: Hosts
    lib.NEW_WINDOW, lib.NEW_PROOF, lib.NEW_FEW, lib.NEW_AGE, lib.NEW_EVERY,
    lib.NEW_IDLE)
HOLD = lib.NIC_BACKLOG          # ns of link that are let through

RECORD = np.dtype([("arrival", "i8"), ("start", "i8"), ("end", "i8"),
                   ("cpu", "i8"), ("net", "i8"),
                   ("tenant", "i4"), ("slot", "i4")])
Records = np.ndarray[Any, np.dtype[np.void]]


@dataclass(frozen=True)
class Estimator:
    """What a request will cost: a row of src/perfctr/cost.c and its alpha.

    alpha, 0 to 1, is of the newest sample for `ewma` and of the old maximum
    for `decaying-max`; `last` and `oracle` have none."""

    name: str
    alpha: float = 0.0

    def __post_init__(self) -> None:
        if self.name not in estimators():
            raise ValueError(f"estimator '{self.name}' is not known: use one "
                             f"of {', '.join(estimators())}")
        if not 0 <= self.alpha <= 1:
            raise ValueError(f"alpha {self.alpha} is not allowed: use 0 to 1")


@dataclass(frozen=True)
class Policy:
    """A row of the table in src/releaser/policies.c."""

    name: str
    summary: str
    estimator: Estimator | None     # its own, if it has one


def _text(c: Any) -> str:  # noqa: ANN401
    return ffi.string(c).decode()


def estimators() -> list[str]:
    """The names of all."""
    return [_text(lib.EST_Name(n)) for n in range(lib.EST_Kinds())]


def policies() -> dict[str, Policy]:
    """All, by name."""
    alpha = ffi.new("uint32_t *")
    found: dict[str, Policy] = {}
    for n in range(lib.REL_Policies()):
        own = lib.REL_PolicyEstimator(n, alpha)
        p = Policy(_text(lib.REL_PolicyName(n)),
                   _text(lib.REL_PolicySummary(n)),
                   Estimator(_text(own), alpha[0] / 65536)
                   if own != ffi.NULL else None)
        found[p.name] = p
    return found


def policy(name: str) -> Policy:
    """One of them; ValueError lists them."""
    known = policies()
    if name not in known:
        raise ValueError(f"policy '{name}' is not known: use one of "
                         f"{', '.join(known)}")
    return known[name]


KNOWN = Estimator("oracle")
SANDPAPER = Estimator("ewma", default("sandpaper_alpha"))
MOVING = Estimator("ewma", 0.01)        # 2DFQ, section 6.2: alpha = 0.99
PESSIMISTIC = Estimator("decaying-max", 0.99)   # 2DFQ, section 5


class Releaser:
    """Tenants' requests wait here; a policy says which goes next.

    estimator: None for the policy's own, or Sandpaper's. keep: requests
    that are done are recorded. Costs, estimates and rounds are those of
    varnishd. paper: a request is charged its own larger cost (Sandpaper,
    Figure 8, line 10), and rounds have no minimum."""

    def __init__(self, name: str, slots: int, *, options: int = ALL,
                 estimator: Estimator | None = None,
                 keep: bool = True, paper: bool = False) -> None:
        found = policy(name)
        if not 1 <= slots <= 65535:
            raise ValueError(f"slots {slots} is not allowed: use 1 to 65535")
        self.policy = name
        self.slots = slots
        self.estimator = estimator or found.estimator or SANDPAPER
        sim = lib.sim_new(
            name.encode(), slots, options, self.estimator.name.encode(),
            round(self.estimator.alpha * 65536), keep)
        if sim == ffi.NULL:
            raise MemoryError
        self.sim = ffi.gc(sim, lib.sim_free)
        self._rel = lib.sim_rel(sim)
        if paper:
            lib.sim_by_request(sim)
        else:
            self.set_round(ROUND)
        self.answer = lib.sim_answer(sim)
        self.tenants = 0

    def tenant(self, weight: float = 1.0) -> int:
        """A new one."""
        w = round(weight * WEIGHT_ONE)
        if not 1 <= w <= WEIGHT_MAX:
            raise ValueError(f"weight {weight} is not allowed: use 1/1024 to "
                             "1024")
        self.tenants += 1
        return _number(lib.sim_tenant(self.sim, w))

    def _tenant(self, tenant: int) -> Any:  # noqa: ANN401
        """The library's."""
        return lib.sim_rel_tenant(self.sim, tenant)

    def enqueue(self, tenant: int, cpu: int, net: int, now: int) -> int:
        """The request's number. cpu, net: what it will cost, ns."""
        return _number(lib.sim_enqueue(self.sim, tenant, cpu, net, now))

    def dequeue(self, slot: int, now: int, closed: int = 0) -> int:
        """A request's number, EMPTY, NO_SLOT or NOT_YET.

        `answer` has its tenant, cpu and net then, or `when`, ns."""
        return lib.sim_dequeue(self.sim, slot, closed, now)

    def progress(self, request: int, resource: int, now: int) -> None:
        """It began service on a resource."""
        lib.sim_progress(self.sim, request, resource, now)

    def refresh(self, request: int, cost: int, now: int) -> None:
        """It has used so much CPU time so far, ns."""
        lib.sim_refresh(self.sim, request, cost, now)

    def complete(self, request: int, now: int, scale: int = SCALE_ONE) -> None:
        """It is done; scale 0: its CPU time was not measured."""
        lib.sim_complete(self.sim, request, scale, now)

    def cancel(self, request: int, now: int) -> None:
        """It goes away before its release."""
        lib.sim_cancel(self.sim, request, now)

    def charge(self, tenant: int, cost: int, now: int) -> None:
        """CPU time outside of any request, ns."""
        lib.sim_charge(self.sim, tenant, cost, now)

    def set_policy(self, name: str, now: int) -> None:
        """Another one from now on."""
        policy(name)
        lib.REL_SetPolicy(self._rel, lib.REL_PolicyByName(name.encode()), now)
        self.policy = name

    def set_weight(self, tenant: int, weight: float) -> None:
        """Another one from now on."""
        lib.REL_SetWeight(self._rel, self._tenant(tenant),
                          round(weight * WEIGHT_ONE))

    def set_limits(self, tenant: int, reservation: float, limit: float,
                   now: int) -> None:
        """REL_SetLimits(): parts, 0 to 1, of its dominant resource.

        A reservation of 0 is none, a limit of 0 or of 1 is none.

        From now on. dequeue() may answer NOT_YET with a time, then."""
        for part in (reservation, limit):
            if not 0 <= part <= 1:
                raise ValueError(f"part {part} is not allowed: use 0 to 1")
        lib.REL_SetLimits(self._rel, self._tenant(tenant),
                          round(reservation * PART_ONE),
                          round((limit if limit < 1 else 0) * PART_ONE), now)

    def set_group(self, tenant: int, group: int, now: int) -> None:
        """REL_SetGroup(): the tenant is a member of the group; -1: of none.

        A group is a tenant that never asks for anything itself."""
        lib.REL_SetGroup(self._rel, self._tenant(tenant), ffi.NULL
                         if group < 0 else self._tenant(group), now)

    def adopt(self, group: int, now: int) -> None:
        """Hosts that no map names begin as members of this group."""
        lib.sim_new_hosts(self.sim, group, now)

    def host(self, tenant: int, status: int, now: int) -> None:
        """The tenant is a Host that no map names, with answers of a status."""
        lib.sim_host(self.sim, tenant, is_good(status), now)

    def another_host(self, tenant: int, status: int, now: int) -> bool:
        """The tenant's record is another Host's; False: it is in use."""
        return bool(lib.sim_another_host(
            self.sim, tenant, is_good(status), now))

    def changes(self, now: int) -> list[int]:
        """Hosts that are proven now, or new again: call it every 100 ms."""
        found = []
        while (t := lib.sim_new_next(self.sim, now)) >= 0:
            found.append(t)
        return found

    def is_new(self, tenant: int) -> bool:
        """It is a member of (new)."""
        return bool(lib.sim_new_is(self.sim, tenant))

    def set_round(self, ns: int) -> None:
        """REL_SetRound(): how much service a round of mr3-rs gives."""
        lib.REL_SetRound(self._rel, ns)

    def set_flows(self, alpha: int) -> None:
        """REL_SetFlows(): how many virtual flows a tenant of mr3-vf has."""
        if not 1 <= alpha <= FLOWS_MAX:
            raise ValueError(f"alpha {alpha} is not allowed: use 1 to "
                             f"{FLOWS_MAX} virtual flows")
        lib.REL_SetFlows(self._rel, alpha)

    def into(self, tenant: int, st: Any) -> Any:  # noqa: ANN401
        """REL_TenantStat(): fill and return a `struct rel_tenant_stat *`."""
        lib.REL_TenantStat(self._rel, self._tenant(tenant), st)
        return st

    def stat(self, tenant: int) -> dict[str, int]:
        """Its counts, estimates and account, ns."""
        st = self.into(tenant, ffi.new("struct rel_tenant_stat *"))
        return {"waiting": st.waiting, "running": st.running,
                "estimate_cpu": st.estimate[CPU],
                "estimate_net": st.estimate[NET],
                "account": st.account, "charged": st.charged}

    @property
    def synchronised(self) -> bool:
        """The policy has end-to-end synchronisation."""
        return bool(lib.REL_Synchronised(self._rel))

    def records(self) -> Records:
        """A copy of the requests that are done, in order of completion."""
        n = ffi.new("int64_t *")
        rows = lib.sim_records(self.sim, n)
        if n[0] == 0:
            return np.empty(0, RECORD)
        return np.frombuffer(
            ffi.buffer(rows, n[0] * RECORD.itemsize), RECORD).copy()

    def open(self) -> Records:
        """Those that wait or run, in no order; what is to come is -1."""
        n = lib.sim_open(self.sim, ffi.NULL, 0)
        rows = ffi.new("struct sim_record[]", n)
        lib.sim_open(self.sim, rows, n)
        if n == 0:
            return np.empty(0, RECORD)
        return np.frombuffer(
            ffi.buffer(rows, n * RECORD.itemsize), RECORD).copy()


def is_good(status: int) -> bool:
    """NEW_Good(): is such an answer evidence?"""
    return 200 <= status < 400


def _number(n: int) -> int:
    if n < 0:
        raise MemoryError
    return n


