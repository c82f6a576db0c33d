"""Mutates the reference and prints the mutants that no vector finds; `make mutants` runs it.

A mutant changes one operator, comparison, condition or constant of a module. It is found if a file
whose cases run the module changes or cannot be computed. One that is not found computes the same as
the reference, or a case for it is missing.
"""

from __future__ import annotations

import argparse
import ast
import os
import resource
import sys
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

HERE = Path(__file__).parent
#: Seconds of processor time after which a mutant counts as found: it does not end.
LIMIT_S = 10
PAIRS = [(ast.Add, ast.Sub), (ast.Mult, ast.Div), (ast.And, ast.Or), (ast.Lt, ast.LtE)]
PAIRS += [(ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot), (ast.In, ast.NotIn)]
SWAPS: dict[type, type] = dict(PAIRS) | {b: a for a, b in PAIRS}
SWAPS |= {ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult}


def mutants(node: Any) -> Any:
    """Generates the changes of a node: each in words, and the node that replaces it."""
    if isinstance(node, ast.BinOp | ast.AugAssign | ast.BoolOp) and type(node.op) in SWAPS:
        op = SWAPS[type(node.op)]()
        yield f"{ast.dump(node.op)} to {ast.dump(op)}", changed(node, op=op)
    elif isinstance(node, ast.Compare):
        for n, old in enumerate(node.ops):
            op = SWAPS[type(old)]()
            ops = [*node.ops[:n], op, *node.ops[n + 1 :]]
            yield f"{ast.dump(old)} to {ast.dump(op)}", changed(node, ops=ops)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
        yield f"no {ast.dump(node.op)}", node.operand
    elif isinstance(node, ast.If | ast.IfExp):
        for value in (True, False):
            yield f"condition {value}", changed(node, test=ast.Constant(value))
    elif isinstance(node, ast.Name) and node.id in {"min", "max"}:
        other = "max" if node.id == "min" else "min"
        yield f"{node.id} to {other}", changed(node, id=other)
    elif isinstance(node, ast.Constant):
        for value in others(node.value):
            yield f"{node.value!r} to {value!r}", changed(node, value=value)


def changed(node: ast.AST, **fields: Any) -> ast.AST:
    """Returns a copy of a node with other fields."""
    return ast.copy_location(type(node)(**dict(ast.iter_fields(node)) | fields), node)


def others(value: Any) -> list[Any]:
    """Returns the constants that replace one."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1] if abs(value) > 1 else [value + 1]
    if isinstance(value, float):
        return [value * 1.1 + 0.001]
    is_number = isinstance(value, str) and value.replace(".", "", 1).isdigit()
    return [str(float(value) * 1.1 + 0.001)] if is_number else []


class Mutator:
    """Makes the change numbered `chosen`, and lists all changes as a line and words."""

    def __init__(self, chosen: int = -1) -> None:
        self.chosen = chosen
        self.changes: list[tuple[int, str]] = []

    def visit(self, node: Any) -> Any:
        """Visits a node after its parts, without annotations, texts and assertions."""
        if isinstance(node, list):
            return [self.visit(part) for part in node]
        text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if text or not isinstance(node, ast.AST) or isinstance(node, ast.Assert | ast.Raise):
            return node
        for name, value in ast.iter_fields(node):
            if name not in {"annotation", "returns", "decorator_list"}:
                setattr(node, name, self.visit(value))
        for change, mutant in list(mutants(node)):
            self.changes.append((node.lineno, change))
            if len(self.changes) == self.chosen + 1:
                node = mutant
        return node


def modules_of(cases: Any) -> set[str]:
    """Returns the modules whose functions `cases` calls."""
    called: set[str] = set()

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        folder, _, file = frame.f_code.co_filename.rpartition("/")
        if event == "call" and folder == str(HERE):
            called.add(file.removesuffix(".py"))

    sys.setprofile(note)
    cases()
    sys.setprofile(None)
    return called


def is_found(module: str, tree: ast.Module, files: list[str]) -> bool:
    """Computes files by a mutated module in a process of its own; returns True if one differs."""
    sys.stdout.flush()
    if child := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0
    os.close(2)
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_S, LIMIT_S))
    mutant = ModuleType(module)
    mutant.__file__ = str(HERE / f"{module}.py")
    for path in HERE.glob("*.py"):
        sys.modules.pop(path.stem, None)
    sys.modules[module] = mutant
    code = compile(ast.fix_missing_locations(tree), mutant.__file__, "exec")
    exec(code, mutant.__dict__)
    import generate

    os._exit(any(generate.is_stale(name) for name in files))


def main() -> None:
    """Runs the command."""
    import generate

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="a module, without .py")
    parser.add_argument("--each", type=int, default=1, metavar="N", help="only each Nth mutant")
    arguments = parser.parse_args()
    called = {n: modules_of(file[2]) for n, file in generate.FILES.items() if n != "distributions"}
    modules = {m for m in set().union(*called.values()) if not m.startswith(("cases_", "generate"))}
    for module in arguments.modules or sorted(modules):
        files = [name for name, names in called.items() if module in names]
        source = (HERE / f"{module}.py").read_text(encoding="utf-8")
        whole, lost = Mutator(), 0
        whole.visit(ast.parse(source))
        numbers = range(0, len(whole.changes), arguments.each)
        for number in numbers:
            line, change = whole.changes[number]
            if not is_found(module, Mutator(number).visit(ast.parse(source)), files):
                lost += 1
                sys.stdout.write(f"{module}.py:{line}: {change}\n")
        sys.stdout.write(f"{module}: {len(numbers)} mutants, {lost} not found\n")


if __name__ == "__main__":
    main()
