# SPDX-License-Identifier: BSD-2-Clause
"""Compiles the binding: the C of this folder and of sim/packets, linked with
the archive that varnishd links.

`python -m sandpaper_sim._build OBJ`, OBJ as build/obj, puts the module
_sandpaper_glue into this Python's packages, and does nothing if what is
there is newer than all that it was made of."""

from __future__ import annotations

import sys
import sysconfig
import tempfile
from pathlib import Path

import cffi

HERE = Path(__file__).resolve().parent
TOP = HERE.parent.parent
PACKETS = HERE.parent / "packets"
MODULE = "_sandpaper_glue"
# Of the library's headers; the compiler says what they are.
CONSTANTS = (
    "REL_OPT_SETTLE", "REL_OPT_KEEP_DEBT", "REL_OPT_CAP", "REL_OPT_CLOSED",
    "REL_OPT_REJOIN", "REL_OPT_LIMITS", "REL_OPT_ALL", "REL_OPT_PAPER",
    "REL_WEIGHT_ONE", "REL_WEIGHT_MAX", "REL_SCALE_ONE", "REL_PART_ONE",
    "REL_COST_MAX", "ACC_DEAR", "REL_FLOWS", "REL_FLOWS_MAX", "NIC_BACKLOG",
    "NIC_PERCENT", "POOLMGR_EVERY",
    "NEW_WINDOW", "NEW_PROOF", "NEW_FEW", "NEW_AGE", "NEW_EVERY", "NEW_IDLE",
    "TEN_NAME_MAX")
# Calls of the library that need no glue.
CALLS = """
struct rel_tenant_stat {
    unsigned waiting, running;
    int64_t estimate[2];
    int64_t account, charged;
    ...;
};
unsigned REL_Policies(void);
const char *REL_PolicyName(unsigned);
const char *REL_PolicySummary(unsigned);
const char *REL_PolicyEstimator(unsigned, uint32_t *alpha);
int REL_PolicyByName(const char *);
int REL_SetPolicy(struct rel *, unsigned policy, int64_t now);
void REL_SetRound(struct rel *, int64_t ns);
void REL_SetFlows(struct rel *, unsigned alpha);
void REL_SetWeight(struct rel *, struct rel_tenant *, uint32_t weight);
void REL_SetLimits(struct rel *, struct rel_tenant *, uint32_t reservation,
    uint32_t limit, int64_t now);
void REL_SetGroup(struct rel *, struct rel_tenant *,
    struct rel_tenant *group, int64_t now);
void REL_TenantStat(const struct rel *, const struct rel_tenant *,
    struct rel_tenant_stat *);
int REL_Synchronised(const struct rel *);
struct ovl { ...; };
struct ovl_queue {
    int64_t now, target, standing, age;
    unsigned waiting, least;
};
unsigned OVL_Controllers(void);
const char *OVL_Name(unsigned);
int OVL_ByName(const char *);
int OVL_Admit(unsigned, struct ovl *, const struct ovl_queue *);
void OVL_Released(unsigned, struct ovl *, const struct ovl_queue *,
    int64_t wait);
struct ovl_fetches {
    unsigned waiting;
    double mean, limit;
    ...;
};
int OVL_FetchBegins(struct ovl_fetches *, int64_t target, int background,
    int64_t now);
void OVL_FetchAnswered(struct ovl_fetches *, int64_t target, int64_t took,
    int64_t now);
void OVL_FetchFailed(struct ovl_fetches *, int64_t target, int64_t took,
    int64_t now);
struct price_part { ...; };
struct price { ...; };
void PRICE_Set(struct price *, struct price_part *, const int64_t queue[2],
    const int64_t cost[2], int64_t now);
double PRICE_Congestion(const struct price *, int resource, int64_t buffer,
    int64_t now);
double PRICE_Of(const struct price *, int resource, int64_t cost,
    int64_t buffer, int64_t now);
unsigned EST_Kinds(void);
const char *EST_Name(unsigned);
struct map_tenant {
    struct map_tenant *next;
    char name[...];
    double weight, reservation, limit;
    int is_group;
    struct map_tenant *group;
    ...;
};
struct hostmap {
    struct map_tenant *first;
    ...;
};
void MAP_Init(struct hostmap *);
void MAP_Fini(struct hostmap *);
const char *MAP_Tenant(struct hostmap *, const char *name, double weight,
    unsigned queue_limit);
const char *MAP_Group(struct hostmap *, const char *name, double weight);
const char *MAP_Limits(struct hostmap *, const char *name, double reservation,
    double limit);
size_t MAP_Name(const struct hostmap *, const char *host, size_t len,
    char *name);
struct map_tenant *MAP_Each(const struct hostmap *, const char *host,
    size_t len);
typedef void file_error_f(void *priv, unsigned line, const char *why);
unsigned FILE_Read(struct hostmap *, const char *path, file_error_f *,
    void *priv);
extern "Python" void sim_file_error(void *priv, unsigned line,
    const char *why);
struct poolmgr_load {
    unsigned slots, cores, open;
    int full;
    unsigned busy;
};
unsigned POOLMGR_Open(const struct poolmgr_load *, int64_t *doubled,
    int64_t now);
int64_t COST_Net(uint64_t bytes, uint64_t rate, unsigned mtu, unsigned header);
"""
# The headers of src/tenants say releaser/..
FOLDERS = [TOP / "src" / "releaser", TOP / "src" / "perfctr",
           TOP / "src" / "tenants", TOP / "src"]
HEADERS = [*FOLDERS, TOP / "src" / "overload", TOP / "src" / "poolmgr",
           TOP / "src" / "price", TOP / "src" / "varnishd" / "tbl", PACKETS]


def declarations(header: Path) -> str:
    """A header without its preprocessor's lines."""
    return "".join(
        line for line in header.read_text().splitlines(keepends=True)
        if not line.startswith("#"))


def is_fresh(module: Path, sources: list[Path]) -> bool:
    """Was the module made after all of its sources were?"""
    return module.exists() and all(
        s.stat().st_mtime < module.stat().st_mtime for s in sources)


def build(archive: Path, into: Path) -> Path:
    """The module's file; compiles it if it is not fresh."""
    module = into / (MODULE + sysconfig.get_config_var("EXT_SUFFIX"))
    sources = [archive, Path(__file__), *HERE.glob("*.[ch]"),
               *PACKETS.glob("*.c"),
               *(h for d in HEADERS for h in d.glob("*.h"))]
    if is_fresh(module, sources):
        return module
    ffi = cffi.FFI()
    ffi.cdef(declarations(HERE / "glue.h") +
             declarations(PACKETS / "packets.h") + CALLS +
             "".join(f"#define {name} ...\n" for name in CONSTANTS))
    ffi.set_source(
        MODULE, '#include "account.h"\n#include "glue.h"\n'
        '#include "hostmap.h"\n#include "newhosts.h"\n#include "nic.h"\n'
        '#include "overload/fetches.h"\n#include "overload/overload.h"\n'
        '#include "packets.h"\n'
        '#include "policy.h"\n#include "poolmgr/poolmgr.h"\n'
        '#include "price/price.h"\n#include "tenants/file.h"\n',
        sources=[str(c) for folder in (HERE, PACKETS)
                 for c in sorted(folder.glob("*.c"))],
        include_dirs=[str(d) for d in (HERE, PACKETS, *FOLDERS)],
        extra_objects=[str(archive)],
        # Python's own flags have -DNDEBUG. A product and a sum that are one
        # instruction would give other results on other machines.
        extra_compile_args=["-std=gnu11", "-O2", "-UNDEBUG",
                            "-ffp-contract=off"],
        # The archive's objects are made for a program.
        extra_link_args=["-Wl,-Bsymbolic"], py_limited_api=False)
    with tempfile.TemporaryDirectory() as folder:
        built = Path(ffi.compile(tmpdir=folder))
        fresh = module.with_suffix(".new")
        fresh.write_bytes(built.read_bytes())
        fresh.replace(module)
    return module


def main() -> None:
    """The command."""
    if len(sys.argv) != 2:
        sys.exit("usage: python -m sandpaper_sim._build OBJ")
    archive = Path(sys.argv[1]) / ".libs" / "libsandpaper.a"
    if not archive.exists():
        sys.exit(f"{archive}: no such file: run make lib")
    build(archive.resolve(), Path(sysconfig.get_path("platlib")))


if __name__ == "__main__":
    main()
