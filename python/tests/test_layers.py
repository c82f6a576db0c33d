"""Packages in Python: the layers, the names that they offer, and the package as others see it."""

from __future__ import annotations

import ast
import importlib.metadata
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import jsonschema
import pytest
from conftest import ROOT, SHORT, SWEEP

import cwnd
from cwnd import _core, lazy

PACKAGE = Path(cwnd.__file__).parent

#: Packages from the lowest layer up: each imports only those before it.
PACKAGES = (
    "_core",
    "lazy",
    "errors",
    "files",
    "machine",
    "figures",
    "models",
    "topology",
    "results",
    "store",
    "running",
    "gym",
    "lessons",
    "plots",
    "report",
    "playground",
    "infer",
    "link",
    "study",
    "studies",
    "cli",
    # What `import cwnd` and `python -m cwnd` are.
    "__init__",
    "__main__",
)
#: Packages from whose files others may import: a report draws the curves of the plots.
INSIDE = {("report", "plots")}


def parts(file: Path) -> tuple[str, ...]:
    """A file's name as a module, without the package."""
    found = file.relative_to(PACKAGE).with_suffix("").parts
    return found[:-1] if found[-1] == "__init__" and len(found) > 1 else found


FILES = {parts(file): file for file in PACKAGE.rglob("*.py")}
MODULES = {*FILES, ("_core",)}


#: Packages that offer names.
EXPORTING = sorted(
    module[0]
    for module, file in FILES.items()
    if file.name == "__init__.py" and "lazy_exports(" in file.read_text(encoding="utf-8")
)


def imports(text: str) -> Iterator[tuple[int, tuple[str, ...], str | None]]:
    """Imports of the package in a file, also those in functions or for types only.

    Yields the line, the module, and the name imported from it, unless that is a module.
    """
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            for each in node.names:
                top, *rest = each.name.split(".")
                if top == "cwnd":
                    yield node.lineno, tuple(rest) or ("__init__",), None
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are written out"
            top, *rest = (node.module or "").split(".")
            if top != "cwnd":
                continue
            for each in node.names:
                if (*rest, each.name) in MODULES:
                    yield node.lineno, (*rest, each.name), None
                else:
                    yield node.lineno, tuple(rest) or ("__init__",), each.name


def test_every_package_imports_only_those_below_it():
    wrong, found = [], 0
    for module, file in FILES.items():
        package = module[0]
        if package not in PACKAGES:
            wrong.append(f"{package} is not in the list of packages")
            continue
        for line, needed, _ in imports(file.read_text(encoding="utf-8")):
            found += needed[0] != package
            if PACKAGES.index(needed[0]) > PACKAGES.index(package):
                wrong.append(f"{file.relative_to(PACKAGE)}:{line}: {package} → {needed[0]}")
    assert not wrong, "imports that lead up:\n" + "\n".join(wrong)
    assert found > 200, f"the search found {found} imports between packages"


def test_what_is_imported_by_name_is_imported_in_few_places():
    files = {
        ".".join(module)
        for module, file in FILES.items()
        if re.search(r"import_module|__import__|runpy", file.read_text(encoding="utf-8"))
    }
    # Registered functions and offers; a study's functions; whether the extension can be loaded.
    assert files == {"lazy", "study.registry", "machine.doctor"}


def test_every_registered_function_is_there():
    asked = {
        name
        for file in FILES.values()
        for name in re.findall(r'\bregistered\("([^"]+)"\)', file.read_text(encoding="utf-8"))
    }
    assert asked == set(lazy._REGISTERED)
    for name in asked:
        assert callable(lazy.registered(name))


def test_rights_are_given_up_before_much_is_imported():
    code = "import sys, cwnd.link.rights; print(*(m for m in sys.modules if m.startswith('cwnd')))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True, cwd="/"
    )
    assert set(done.stdout.split()) == {
        *("cwnd", "cwnd.lazy", "cwnd.errors", "cwnd._core", "cwnd.link", "cwnd.link.rights"),
        *("cwnd.machine", "cwnd.machine.users"),
    }
    keeper = FILES["link", "keeper"].read_text(encoding="utf-8")
    assert not list(imports(keeper)), "it has all rights, and the package is not its own"


def test_no_files_need_each_other_in_a_circle():
    needs = {
        module: {needed for _, needed, _ in imports(file.read_text(encoding="utf-8"))} - {module}
        for module, file in FILES.items()
    }
    left = dict(needs)
    while True:
        free = [module for module, needed in left.items() if not needed & left.keys()]
        if not free:
            break
        for module in free:
            del left[module]
    assert not left, "in circles, or above one: " + ", ".join(map(".".join, left))


def test_names_are_imported_from_the_package_that_offers_them():
    wrong = []
    for module, file in FILES.items():
        for line, needed, name in imports(file.read_text(encoding="utf-8")):
            inside = needed[0] != module[0] and len(needed) > 1 and name is not None
            # A package inside a package offers names itself.
            inside = inside and FILES[needed].name != "__init__.py"
            if inside and (module[0], needed[0]) not in INSIDE:
                wrong.append(f"{file.relative_to(PACKAGE)}:{line}: {'.'.join(needed)}.{name}")
    assert not wrong, "imported from inside a package:\n" + "\n".join(wrong)


@pytest.mark.parametrize("package", EXPORTING)
def test_what_a_package_offers_is_there(package: str):
    place = () if package == "__init__" else (package,)
    module = import_module(".".join(("cwnd", *place)))
    assert sorted(module.__all__) == sorted(dir(module))
    for name in module.__all__:
        assert getattr(module, name) is not None
        # A module that is imported would take the place of what is offered under its name.
        assert (*place, name) not in MODULES


def test_the_table_of_packages_is_in_their_order():
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    told = re.findall(r"^\| `python/cwnd/(\w+)", text, flags=re.MULTILINE)
    untold = ("_core", "lazy", "__init__", "__main__")
    assert told == [package for package in PACKAGES if package not in untold]


SHIPPED = sorted([*ROOT.glob("scenarios/*.toml"), *ROOT.glob("benches/scenarios/*.toml")])


def test_the_version_is_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
    assert cwnd.__version__ == _core.__version__ == project["version"] == cargo["version"]
    assert importlib.metadata.version("cwnd") == cwnd.__version__


def test_all_public_names_are_there():
    for name in cwnd.__all__:
        assert getattr(cwnd, name) is not None
    assert set(cwnd.__all__) <= set(dir(cwnd))
    with pytest.raises(AttributeError):
        _ = cwnd.nonsense  # type: ignore[attr-defined]


def test_help_does_not_wait_for_polars():
    code = (
        "import sys, cwnd.cli\n"
        "try: cwnd.cli.main(['--help'])\n"
        "except SystemExit: pass\n"
        "assert not {'polars', 'vl_convert', 'numpy'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, text=True)
    assert done.returncode == 0, done.stderr


def schema() -> dict[str, object]:
    generated: dict[str, object] = json.loads(cwnd.json_schema())
    return generated


def test_the_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(schema())


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_shipped_scenarios_conform_to_the_schema(path: Path):
    jsonschema.validate(tomllib.loads(path.read_text()), schema())


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_shipped_scenarios_are_valid_and_raise_no_warning(path: Path):
    assert cwnd.check(path) == []


def test_scenarios_of_these_tests_conform_to_the_schema():
    for text in (SHORT, SWEEP):
        jsonschema.validate(tomllib.loads(text), schema())


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("rtt =", "rrt ="),
        ('"2 s"', "2"),
        ("ecn = true", 'ecn = "yes"'),
        ('"codel"', '"coddle"'),
    ],
)
def test_the_schema_refuses_what_the_reader_refuses(right: str, wrong: str):
    text = SHORT.replace(right, wrong)
    assert text != SHORT
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(tomllib.loads(text), schema())
    with pytest.raises(cwnd.ScenarioError):
        _core.parse(text, name="wrong.toml")


def test_the_reference_names_every_key_of_the_schema():
    reference = cwnd.reference_markdown()
    properties = schema()["properties"]
    assert isinstance(properties, dict)
    for key in properties:
        assert key in reference
