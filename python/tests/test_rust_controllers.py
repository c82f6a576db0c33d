"""Controllers in Rust, of installed packages: the template, decisions, errors and isolation."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import crates
import polars as pl
import pytest
from conftest import ROOT, Cli, edit

import cwnd
from cwnd.errors import CodeError
from cwnd.running import plans

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="libraries are built for Linux"),
    # Tests that build crates use one folder of cargo's.
    pytest.mark.xdist_group("crates"),
]

#: Controllers of the crate of these tests, beside that of the template.
LIB = """
use cwnd_cc::newreno::{NewReno, Params as Reno};
use cwnd_cc::{AckSample, Controller, Path, RateSample, Request, Signal, Start, Window};
use cwnd_extension::Kind;
use cwnd_quantity::{Duration, Rate};
use cwnd_schema::{Choice, Invalid, RegistryEntry, Schema};

/// The project's NewReno, through the tables.
#[derive(Clone, Debug, Schema)]
pub struct Twin {
    /// NewReno's.
    #[flatten(Reno::default())]
    pub reno: Reno,
}

impl Kind for Twin {
    const ENTRY: RegistryEntry = RegistryEntry::new("twin", "NewReno.");
    type Controller = NewReno;
    fn start(&self, start: &Start) -> NewReno {
        NewReno::new(&self.reno, start)
    }
}

/// Moment of a panic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Moment {
    /// At a start.
    #[name("start")]
    Start,
    /// At the first ACK after a time.
    #[name("ack")]
    Ack,
    /// At a copy after a time.
    #[name("copy")]
    Copy,
    /// A check that does not return.
    #[name("check")]
    Check,
    /// Never.
    #[name("never")]
    Never,
}

/// A controller that panics.
#[derive(Clone, Debug, Schema)]
#[schema(check = Self::consistent)]
pub struct Fragile {
    /// Moment of the panic.
    #[default(Moment::Never, "none")]
    pub at: Moment,
    /// Time before it.
    #[default(Duration::from_secs(1), "none")]
    #[bounds(above Duration::ZERO; "a test has to begin")]
    pub after: Duration,
    /// `true` if it wants delivery rates.
    #[default(false, "none")]
    pub by_rate: bool,
    /// Pacing rate.
    #[default(None, "none")]
    pub pacing: Option<Rate>,
    /// Segments of the window.
    #[required("none")]
    pub window: u32,
}

impl Fragile {
    fn consistent(&self) -> Result<(), Invalid> {
        while self.at == Moment::Check {
            std::hint::spin_loop();
        }
        if self.at == Moment::Start && self.window == 1 {
            return Err(Invalid { key: "window", message: "one is too few for a start".into() });
        }
        Ok(())
    }
}

impl Kind for Fragile {
    const ENTRY: RegistryEntry = RegistryEntry::new("fragile", "Panics.");
    type Controller = Panics;
    fn start(&self, start: &Start) -> Panics {
        assert!(self.at != Moment::Start, "no start");
        let window = u64::from(self.window * start.mss);
        Panics { params: self.clone(), window, acks: 0, rates: 0 }
    }
}

cwnd_extension::controllers!(Twin, Fragile);

pub struct Panics {
    params: Fragile,
    window: u64,
    acks: u64,
    rates: u64,
}

impl Clone for Panics {
    fn clone(&self) -> Self {
        assert!(self.params.at != Moment::Copy || self.acks == 0, "no copy");
        Self { params: self.params.clone(), ..*self }
    }
}

impl Controller for Panics {
    fn on_ack(&mut self, path: &Path, _: &AckSample) -> Request {
        self.acks += 1;
        let late = path.now.0 > self.params.after.0;
        assert!(!(late && self.params.at == Moment::Ack), "no more than {} ACKs", self.acks);
        Request::Nothing
    }
    fn on_signal(&mut self, _: &Path, _: Signal) {}
    fn window(&self) -> Window {
        Window { cwnd: self.window, ssthresh: u64::MAX }
    }
    fn pacing(&self) -> Option<Rate> {
        self.params.pacing
    }
    fn count(&self, each: &mut dyn FnMut(&'static str, u64)) {
        each("acks", self.acks);
        each("rates", self.rates);
    }
    fn is_rate_based(&self) -> bool {
        self.params.by_rate
    }
    fn on_rate(&mut self, _: &RateSample) {
        self.rates += 1;
    }
}
"""
SCENARIO = """\
schema = 2
name = "own"

[run]
duration = "60 s"
sample = "50 ms"

[dumbbell]
rate = "10 Mbit/s"
queue = { kind = "codel", ecn = true }
loss = 0.01

[flow.main]
count = 2
rtt = "40 ms"
controller = CONTROLLER
endpoint.ecn = true

[flow.other]
rtt = "30 ms"
count = 3
workload = { kind = "on-off", size = "20 kB", off = "200 ms" }
controller = CONTROLLER
"""


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the template and the crate of these tests are installed."""
    folder = tmp_path_factory.mktemp("crates")
    cli = Cli(folder)
    mine = crates.template("mine", folder, cli)
    tests = crates.template("tests", folder, cli)
    (tests / "src" / "lib.rs").write_text(LIB)
    edit(tests / "pyproject.toml", 'tests = "tests"', 'twin = "tests"\nfragile = "tests"')
    for crate in (mine, tests):
        crates.install(crates.build(crate), folder / "site")
    return folder


@pytest.fixture
def site(packages: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of installed packages, in use."""
    crates.use(packages / "site", monkeypatch)
    return packages / "site"


def scenario(tmp_path: Path, controller: str, text: str = SCENARIO) -> Path:
    file = tmp_path / "own.toml"
    file.write_text(text.replace("CONTROLLER", controller))
    return file


def error_of(file: Path) -> str:
    with pytest.raises(cwnd.ScenarioError) as refused:
        cwnd.check(file)
    return str(refused.value)


@pytest.mark.usefixtures("site")
def test_the_template_runs_and_passes_its_test(packages: Path, cli: Cli, tmp_path: Path):
    mine = packages / "mine"
    answer = cli("run", mine / "mine.toml", "-o", tmp_path / "out", "--set", "run.duration=10 s")
    assert answer.code == 0, answer.err
    assert "mine" in answer.out
    test = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", mine / "test_mine.py"]
    done = subprocess.run(test, cwd=mine, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    manifest = cwnd.load(tmp_path / "out").manifest
    assert manifest.installed is not None
    (installed,) = manifest.installed
    assert re.fullmatch(r"mine 0\.1\.0 \(sha256 [0-9a-f]{64}\)", installed)


def test_a_wheel_of_cwnd_has_all_sources_that_the_template_needs(packages: Path):
    maturin = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["maturin"]
    folder, sources = "python/cwnd/rust/", ROOT / "python" / "cwnd" / "rust"
    copy = packages / "copy"
    patterns = [each["path"] for each in maturin["include"] if each["path"].startswith(folder)]
    for pattern in patterns:
        for file in sources.glob(pattern.removeprefix(folder)):
            if file.is_file():
                to = copy / file.relative_to(sources)
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, to)
    moved = packages / "moved"
    shutil.copytree(packages / "mine", moved, ignore=shutil.ignore_patterns("dist"))
    manifest = moved / "Cargo.toml"
    manifest.write_text(manifest.read_text().replace(str(ROOT), str(copy)))
    with zipfile.ZipFile(crates.build(moved)) as wheel:
        assert any(name.endswith(".so") for name in wheel.namelist())


@pytest.mark.usefixtures("site")
@pytest.mark.parametrize("keys", ["", ", beta = 0.7, beta_ecn = 0.85"])
@pytest.mark.parametrize("stack", ["rfc", "linux"])
def test_newreno_through_the_tables_gives_the_tables_of_the_built_in(
    tmp_path: Path, stack: str, keys: str
):
    def tables(kind: str, preset: str) -> dict[str, pl.DataFrame]:
        file = scenario(tmp_path, f'{{ kind = "{kind}"{preset}{keys} }}\nstack = "{stack}"')
        run = cwnd.run(file)
        for action in ("timeouts", "loss_reductions", "ecn_reductions"):
            assert run.manifest.activity[action] > 0 or (action == "timeouts" and stack == "rfc")
        named = {"flows": run.flows, "links": run.links}
        named |= {name: frame.collect() for name, frame in run.samples.items()}
        return {
            name: table.drop("controller", "run_id", strict=False) for name, table in named.items()
        }

    built_in, twin = tables("newreno", ', preset = "rfc"'), tables("twin", "")
    assert {"flows", "links", "series", "link_series", "requests"} <= built_in.keys()
    for name, table in built_in.items():
        assert twin[name].equals(table), name


@pytest.mark.usefixtures("site")
def test_parameters_have_types_bounds_and_names(tmp_path: Path):
    for controller, words in {
        '"fragile"': "lacks the key `window`",
        '{ kind = "fragile", window = 4, aftr = "1 s" }': "did you mean `after`?",
        '{ kind = "fragile", window = 4, after = 1.0 }': "expected a time with its unit",
        '{ kind = "fragile", window = 4, after = "0 s" }': "above 0 ns; a test has to begin",
        '{ kind = "fragile", window = 4, pacing = "5 ms" }': "`ms`",
        '{ kind = "fragile", window = 4, at = "end" }': 'expected one of "start", "ack", "copy"',
        '{ kind = "fragile", window = -1 }': "is out of range",
        '{ kind = "fragil", window = 4 }': "unknown controller `fragil`, did you mean `fragile`?",
    }.items():
        error = error_of(scenario(tmp_path, controller))
        assert words in error
        assert "own.toml:16:" in error
    run = cwnd.run(
        scenario(tmp_path, '{ kind = "fragile", window = 4, pacing = "1 Mbit/s" }'),
        set={"run.duration": "2 s"},
    )
    assert run.flows["goodput_bit_s"].max() < 1e6
    assert run.manifest.activity["own_acks"] > 10
    # Properties of the controller are those of its parameters.
    for by_rate in ("true", "false"):
        controller = f'{{ kind = "fragile", window = 4, by_rate = {by_rate} }}'
        run = cwnd.run(scenario(tmp_path, controller), set={"run.duration": "2 s"})
        asked = run.manifest.activity.get("own_rates", 0) > 10
        assert asked == (by_rate == "true")


@pytest.mark.usefixtures("site")
def test_schema_and_reference_have_the_parameters(cli: Cli):
    reference = cli("reference").out
    assert "### `fragile`\n\nPanics." in reference
    assert '| `after` | a time such as "100 ms", above 0 ns | `"1 s"` |' in reference
    assert '"a test has to begin"' not in cli("schema").out
    assert '"Segments of the window. (Required.)"' in cli("schema").out


@pytest.mark.usefixtures("site")
def test_a_panic_ends_the_run_with_controller_and_time(tmp_path: Path, capfd):
    for controller, words in {
        '{ kind = "fragile", window = 4, at = "ack", after = "2 s" }': (
            r"the controller `fragile` failed at 2\.0\d+ s of simulated time: "
            r"src/lib\.rs:\d+:\d+: no more than \d+ ACKs"
        ),
        '{ kind = "fragile", window = 4, at = "copy" }': (
            r"the controller `fragile` failed at \d+\.\d+ s of simulated time: "
            r"src/lib\.rs:\d+:\d+: no copy"
        ),
        '{ kind = "fragile", window = 4, at = "start" }': (
            r"the controller `fragile` failed at the start of a connection: "
            r"src/lib\.rs:\d+:\d+: no start"
        ),
        '{ kind = "fragile", window = 1, at = "start" }': (
            "fragile refuses `window`: one is too few for a start"
        ),
    }.items():
        for check in (False, True):
            with pytest.raises(CodeError) as failed:
                cwnd.run(scenario(tmp_path, controller), check=check)
            assert re.fullmatch(words, str(failed.value))
    assert "panicked" not in capfd.readouterr().err


@pytest.mark.usefixtures("site")
def test_a_check_of_parameters_without_end_ends_the_run(tmp_path: Path):
    with pytest.raises(CodeError, match="fragile: a call into the code did not return for 5 s"):
        cwnd.run(scenario(tmp_path, '{ kind = "fragile", window = 4, at = "check" }'))


def test_a_package_that_is_gone_or_another_one_is_named(
    packages: Path, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    site = tmp_path / "site"
    shutil.copytree(packages / "site", site)
    file = scenario(tmp_path, '"twin"')
    with monkeypatch.context() as patch:
        crates.use(site, patch)
        assert cli("run", file, "-o", tmp_path / "out", "--no-plots").code == 0
        assert cli("verify", tmp_path / "out").code == 0
        resolved = next(plans.plan(file).points).resolved
        (library,) = site.glob("tests/*.so")
        library.write_bytes(library.read_bytes() + b"\0")
        answer = cli("verify", tmp_path / "out")
        assert answer.code != 0
        assert "tests 0.1.0 is installed, which is another build" in answer.out + answer.err
    assert "unknown controller `twin`" in error_of(file)
    answer = cli("verify", tmp_path / "out")
    assert "no installed package has the controller `twin`: install tests 0.1.0" in (
        answer.out + answer.err
    )
    assert cli("status", tmp_path / "out").code == 0
    (tmp_path / "cell.toml").write_text(resolved)
    assert cwnd.check(tmp_path / "cell.toml") == []


def test_another_version_of_the_tables_is_refused(tmp_path: Path, monkeypatch):
    (tmp_path / "old.c").write_text(
        "static const unsigned int table[64] = { 1 };\n"
        "const void *cwnd_controllers(unsigned int version, unsigned int *count)\n"
        "{ *count = 1; return table; }\n"
    )
    library = tmp_path / "old.so"
    subprocess.run(["cc", "-shared", "-fPIC", tmp_path / "old.c", "-o", library], check=True)
    crates.install_library(library, "old", tmp_path / "site")
    (tmp_path / "crash.c").write_text(
        "__attribute__((constructor)) void f(void) { __builtin_trap(); }"
    )
    library = tmp_path / "crash.so"
    subprocess.run(["cc", "-shared", "-fPIC", tmp_path / "crash.c", "-o", library], check=True)
    crates.install_library(library, "crash", tmp_path / "site")
    crates.use(tmp_path / "site", monkeypatch)
    error = error_of(scenario(tmp_path, '"old"'))
    assert "old 1.0 has tables of version 1, and this cwnd has version 2: build it again" in error
    assert "own.toml:16:14" in error
    assert "crash 1.0 cannot be described: its process crashed" in error_of(
        scenario(tmp_path, '"crash"')
    )


@pytest.mark.usefixtures("site")
def test_linux_has_no_such_controller(tmp_path: Path):
    from cwnd.running import Linux

    plan = plans.plan(scenario(tmp_path, '"twin"'))
    with pytest.raises(cwnd.ScenarioError, match="Linux has no controller `twin`"):
        Linux().check(plan.scenario)


def test_names_of_a_crate(cli: Cli, tmp_path: Path):
    assert cli("new", "controller", tmp_path / "my-own", "--rust").code == 0
    manifest = tomllib.loads((tmp_path / "my-own" / "pyproject.toml").read_text())
    assert manifest["project"]["entry-points"]["cwnd.controllers"] == {"my-own": "my_own"}
    for name, words in {
        "my-own": "exists",
        "cubic": "'cubic' is a controller of cwnd's",
        "x.py": "the folder is NAME",
        "cwnd": "'cwnd' is installed",
        "polars": "'polars' is installed",
        "json": "'json' is installed",
        **dict.fromkeys(("self", "mine-", "C_", "cwnd-cc"), "a crate cannot have the name"),
    }.items():
        answer = cli("new", "controller", tmp_path / name, "--rust")
        assert words in answer.err
