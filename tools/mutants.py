# SPDX-License-Identifier: BSD-2-Clause
"""The mutants of a C file: small faults, by a fixed list of operators."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from clang.cindex import Cursor, CursorKind, Index, TranslationUnit, TypeKind

# What replaces a binary operator
BINARY = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==",
    "+": "-", "-": "+", "*": "/", "/": "*", "<<": ">>", ">>": "<<",
    "+=": "-=", "-=": "+=", "*=": "/=", "/=": "*=", "<<=": ">>=",
    ">>=": "<<=", "&&": "||", "||": "&&",
}
CONDITION = {CursorKind.IF_STMT: 0, CursorKind.WHILE_STMT: 0,
             CursorKind.DO_STMT: 1, CursorKind.CONDITIONAL_OPERATOR: 0}
BINARY_KINDS = {CursorKind.BINARY_OPERATOR,
                CursorKind.COMPOUND_ASSIGNMENT_OPERATOR}
BODIES = {CursorKind.COMPOUND_STMT, CursorKind.IF_STMT, CursorKind.FOR_STMT,
          CursorKind.WHILE_STMT, CursorKind.DO_STMT, CursorKind.CASE_STMT,
          CursorKind.DEFAULT_STMT, CursorKind.LABEL_STMT}
DELETED = {*BINARY_KINDS, CursorKind.CALL_EXPR, CursorKind.UNARY_OPERATOR,
           CursorKind.CSTYLE_CAST_EXPR, CursorKind.PAREN_EXPR}
ASSERTS = re.compile(
    r"assert|AN|AZ|CHECK_OBJ|CAST_OBJ|Lck_Assert|SPD_LOCKED|WRONG")
LITERAL = re.compile(r"(0[xX][0-9a-fA-F]+|\d+)([uUlL]*)")


@dataclass(frozen=True)
class Mutant:
    """One edit: text[start:end] becomes new. start and end are in bytes."""

    file: str
    function: str
    line: int
    first: int                  # line of the function
    text: str                   # of the line, in which the edit is
    operator: str
    ordinal: int                # among mutants that are the same so far
    start: int
    end: int
    new: str
    body: str                   # hash of the function

    @property
    def id(self) -> str:
        return "\t".join((f"{self.file}:{self.function}", self.operator,
                          str(self.ordinal), self.text))

    def apply(self, source: bytes) -> bytes:
        # The lines stay where they are: __LINE__ is in the object code.
        lines = source[self.start:self.end].count(b"\n")
        return (source[:self.start] + self.new.encode() + b"\n" *
                (lines - self.new.count("\n")) + source[self.end:])


class Finder:
    """The edits in one file."""

    def __init__(self, tu: TranslationUnit, path: Path) -> None:
        self.path = path
        self.src = path.read_bytes()
        self.cursor = tu.cursor
        self.macros = [
            (c.extent.start.offset, c.extent.end.offset, c.spelling)
            for c in tu.cursor.get_children()
            if c.kind == CursorKind.MACRO_INSTANTIATION and self.here(c)]
        self.checks: set[str] = set()   # functions that only assert
        self.find_checks()

    def here(self, c: Cursor) -> bool:
        f = c.location.file
        return f is not None and Path(f.name).resolve() == self.path

    def in_macro(self, start: int, end: int) -> bool:
        return any(s < end and start < e for s, e, _ in self.macros)

    def text(self, start: int, end: int) -> str:
        return self.src[start:end].decode()

    def functions(self) -> Iterator[Cursor]:
        for c in self.cursor.get_children():
            if (c.kind == CursorKind.FUNCTION_DECL and c.is_definition() and
                    self.here(c)):
                yield c

    def is_assert(self, c: Cursor) -> bool:
        """An assertion, or a call of a function that has nothing else."""
        start = c.extent.start.offset
        return any(s <= start < e and ASSERTS.match(name)
                   for s, e, name in self.macros) or (
            c.kind == CursorKind.CALL_EXPR and c.spelling in self.checks)

    def find_checks(self) -> None:
        for f in self.functions():
            bodies = [k for k in f.get_children()
                      if k.kind == CursorKind.COMPOUND_STMT]
            if bodies and all(map(self.is_assert, bodies[0].get_children())):
                self.checks.add(f.spelling)

    def edits(self, c: Cursor) -> Iterator[tuple[int, int, str, str]]:
        """start, end, new text and the operator's name, of c and below."""
        kids = list(c.get_children())
        yield from self.operators(c, kids)
        yield from self.conditions(c, kids)
        if c.kind in BODIES:
            yield from self.statements(kids)
        for k in kids:
            if (c.kind == CursorKind.VAR_DECL and c.type.kind in (
                    TypeKind.CONSTANTARRAY, TypeKind.VARIABLEARRAY) and
                    k.kind != CursorKind.INIT_LIST_EXPR):
                continue            # the array's size
            yield from self.edits(k)

    def operators(self, c: Cursor, kids: Sequence[Cursor],
                  ) -> Iterator[tuple[int, int, str, str]]:
        start, end = c.extent.start.offset, c.extent.end.offset
        if c.kind in BINARY_KINDS and len(kids) == 2:
            left, right = kids[0].extent.end.offset, kids[1].extent.start.offset
            op = self.text(left, right).strip()
            if op in BINARY and not self.in_macro(left, right):
                at = left + self.src[left:right].index(op.encode())
                yield at, at + len(op), BINARY[op], f"{op} to {BINARY[op]}"
        elif c.kind == CursorKind.UNARY_OPERATOR:
            for at in (start, end - 2):
                op = self.text(at, at + 2)
                if op in ("++", "--") and not self.in_macro(at, at + 2):
                    new = "--" if op == "++" else "++"
                    yield at, at + 2, new, f"{op} to {new}"
                    break
        elif c.kind == CursorKind.INTEGER_LITERAL:
            m = LITERAL.fullmatch(self.text(start, end))
            if m and not self.in_macro(start, end):
                n = int(m[1], 8 if re.fullmatch("0[0-7]+", m[1]) else 0)
                new = str(0 if n == 1 else n + 1) + m[2]
                yield start, end, new, f"{m[0]} to {new}"

    def conditions(self, c: Cursor, kids: Sequence[Cursor],
                   ) -> Iterator[tuple[int, int, str, str]]:
        if c.kind not in CONDITION or len(kids) < 2:
            return
        cond = kids[CONDITION[c.kind]]
        inside = list(cond.get_children())
        start, end = cond.extent.start.offset, cond.extent.end.offset
        if cond.kind == CursorKind.BINARY_OPERATOR and self.text(
                inside[0].extent.end.offset,
                inside[1].extent.start.offset).strip() in ("==", "!="):
            return                  # the operator's own mutant is the same
        after = self.src[end:].lstrip()[:1]
        want = b"?" if c.kind == CursorKind.CONDITIONAL_OPERATOR else b")"
        if after == want and not any(s < start < e for s, e, _ in self.macros):
            yield start, end, f"!({self.text(start, end)})", "negate"

    def statements(self, kids: Sequence[Cursor],
                   ) -> Iterator[tuple[int, int, str, str]]:
        for k in kids:
            start, end = k.extent.start.offset, k.extent.end.offset
            if (k.kind not in DELETED or self.is_assert(k) or
                    self.src[end:].lstrip()[:1] != b";" or
                    any(s < start < e for s, e, _ in self.macros)):
                continue
            yield start, end, "", "delete"


def find(path: Path, name: str, unit: Path, args: Sequence[str],
         ) -> list[Mutant]:
    """The mutants of path, which is unit (.c) or a header that unit has."""
    tu = Index.create().parse(
        str(unit), args=list(args),
        options=TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD)
    bad = [str(d) for d in tu.diagnostics if d.severity >= 3]
    if bad:
        raise SystemExit("mutate: clang: " + bad[0])
    finder = Finder(tu, path.resolve())
    lines = finder.src.decode().split("\n")
    seen: Counter[tuple[str, ...]] = Counter()
    found = []
    for f in finder.functions():
        body = hashlib.sha256(finder.src[
            f.extent.start.offset:f.extent.end.offset]).hexdigest()[:16]
        for start, end, new, op in sorted(set(finder.edits(f))):
            line = finder.src[:start].count(b"\n") + 1
            text = " ".join(lines[line - 1].split())
            key = (f.spelling, op, text)
            found.append(Mutant(name, f.spelling, line,
                                f.extent.start.line, text, op, seen[key],
                                start, end, new, body))
            seen[key] += 1
    return found
