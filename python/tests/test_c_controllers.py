"""Controllers in C: the same file as in the kernel, its decisions, errors, trust and isolation."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import polars as pl
import pytest
from conftest import edit

import cwnd
from cwnd.errors import CodeError
from cwnd.running import compiling, plans
from cwnd.running.code import check_trust, sources
from cwnd.study.agreement import rerun_simulator
from cwnd.study.registry import STUDIES

if TYPE_CHECKING:
    from conftest import Cli

pytestmark = pytest.mark.usefixtures("untrusted")

#: The controllers for the kernel.
KERNEL = Path(__file__).parents[2] / "crates" / "linux" / "kernel" / "bpf"

RENO = """\
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "parts.h"

char LICENSE[] SEC("license") = "GPL";

extern u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;
extern void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked) __ksym;

const volatile u32 divisor = 2;

SEC("struct_ops")
void BPF_PROG(own_init, struct sock *sk)
{
}

SEC("struct_ops")
u32 BPF_PROG(own_ssthresh, struct sock *sk)
{
	return at_least_two(tcp_sk(sk)->snd_cwnd / divisor);
}

SEC("struct_ops")
void BPF_PROG(own_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
}

SEC("struct_ops")
u32 BPF_PROG(own_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops")
struct tcp_congestion_ops own = {
	.init = (void *)own_init,
	.ssthresh = (void *)own_ssthresh,
	.cong_avoid = (void *)own_cong_avoid,
	.undo_cwnd = (void *)own_undo_cwnd,
	.name = "own",
};
"""
PARTS = """\
#pragma once

static inline struct tcp_sock *tcp_sk(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static inline u32 at_least_two(u32 window)
{
	return window > 2 ? window : 2;
}
"""
SCENARIO = """\
schema = 2
name = "own"

[run]
duration = "10 s"

[dumbbell]
rate = "12 Mbit/s"
reverse_rate = "none"
queue = { kind = "fifo", limit = "60 packets" }

[flow.main]
rtt = "60 ms"
start = "0 s"
controller = { kind = "c", path = "own.bpf.c" }
endpoint = { preset = "linux", ecn = true }
"""
#: Linux's Reno in `crates/cc`.
RENO_OF_LINUX = (
    '{{ kind = "newreno", preset = "rfc", {rule}, base = "cwnd", rounding = "segments", '
    'abc_limit = "none", abc_limit_after_timeout = "none", grow_in_cwr = false }}'
)
#: Linux's CUBIC, with the ticks of the kernel that the simulator models.
CUBIC = '{{ kind = "cubic", preset = "linux", tick = "1 ms", {rule} }}'
#: Delay-based AIMD as the kernel's, which counts in segments.
DELAY = (
    '{ kind = "delay-aimd", preset = "thesis", threshold = "50 ms", least_window = 2, '
    'allow_delayed_acks = false, abc_limit = "none", abc_limit_after_timeout = "none" }'
)
CODEL = '{ kind = "codel" }'
SHORT = '{ kind = "fifo", limit = "60 packets" }'
DEEP = '{ kind = "fifo", limit = "400 packets" }'
#: Without RACK and its probes, the timer repairs tail losses and lost retransmissions.
NO_RACK = 'stack = { base = "linux", without = ["rack", "lost-retransmissions"] }'
#: Queue, RTT, further keys of the path and of the group: marks, drops, random losses, jitter,
#: timeouts.
PATHS = {
    "marks": (CODEL, "200 ms", "", ""),
    "drops": (SHORT, "60 ms", "", ""),
    "losses": (CODEL, "40 ms", "loss = 0.03", ""),
    "timer": (CODEL, "40 ms", "loss = 0.03", NO_RACK),
    "jitter": (CODEL, "100 ms", 'jitter = "1 ms"', ""),
}
#: Those without marks: the kernel has no cause "delay", so an echo in the window that a delay
#: reduced starts its round trip of a reduction.
WITHOUT_MARKS = {
    "drops": (SHORT, "60 ms", "", ""),
    "short": (DEEP, "40 ms", "", ""),
    "long": (DEEP, "120 ms", "", ""),
    "losses": (DEEP, "200 ms", "loss = 0.002", ""),
    "timer": (DEEP, "40 ms", "loss = 0.03", NO_RACK),
}


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A scenario with a controller of one's own."""
    (tmp_path / "own.bpf.c").write_text(RENO)
    (tmp_path / "parts.h").write_text(PARTS)
    (tmp_path / "own.toml").write_text(SCENARIO)
    return tmp_path / "own.toml"


def assert_same(one: cwnd.Run, other: cwnd.Run) -> None:
    """Compares all tables, but for names and the controller's own estimate of an RTT."""
    left_out = ("run_id", "controller", "min_rtt_us")
    for name in ("flows", "links", "series", "link_series", "qdelay", "reasons"):
        tables = [getattr(run, name).drop(left_out, strict=False) for run in (one, other)]
        assert tables[0].height > 0 or name == "reasons"
        assert tables[0].equals(tables[1]), name


def on_path(folder: Path, path: tuple[str, str, str, str], controller: str) -> cwnd.Run:
    queue, rtt, link, group = path
    text = SCENARIO.replace(SHORT, f"{queue}\n{link}").replace('"10 s"', '"60 s"')
    text = text.replace('rtt = "60 ms"', f'rtt = "{rtt}"\n{group}')
    file = folder / "path.toml"
    file.write_text(text.replace('{ kind = "c", path = "own.bpf.c" }', controller))
    return cwnd.run(file, trust=True)


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    """A folder with the controllers for the kernel."""
    for file in KERNEL.glob("*.[ch]"):
        shutil.copy(file, tmp_path)
    return tmp_path


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("name", "built_in", "variables"),
    [
        ("abe_reno", RENO_OF_LINUX.format(rule="beta_ecn = 0.8"), ""),
        ("abe_cubic", CUBIC.format(rule="beta_ecn = 0.85"), ", beta_ecn = 850000000"),
        ("adaptive_reno", RENO_OF_LINUX.format(rule="adaptive_delta = 0.8"), ""),
        ("adaptive_cubic", CUBIC.format(rule="adaptive_delta = 0.8"), ""),
    ],
    ids=["abe_reno", "abe_cubic", "adaptive_reno", "adaptive_cubic"],
)
def test_the_kernels_controllers_are_the_built_in_ones(
    kernel: Path, path: str, name: str, built_in: str, variables: str
) -> None:
    controller = f'{{ kind = "c", path = "{name}.bpf.c"{variables} }}'
    assert_same(on_path(kernel, PATHS[path], controller), on_path(kernel, PATHS[path], built_in))


@pytest.mark.parametrize(
    ("name", "program"),
    [
        ("becn_reno", "`cwnd_quench` in section `tc/ingress`"),
        ("becn_cubic", "`cwnd_quench` in section `tc/ingress`"),
        ("bmcc", "`cwnd_options` in section `sockops`"),
        ("tcpstar", "`cwnd_timeouts` in section `sockops`"),
        ("cheat_stamps", "`cwnd_cheat` in section `tc/egress`"),
    ],
)
def test_programs_besides_a_controller_are_refused(kernel: Path, name: str, program: str) -> None:
    message = f"{name}.bpf.c: {program} is no operation of a `tcp_congestion_ops`: no packets"
    with pytest.raises(CodeError, match=re.escape(message)):
        on_path(kernel, PATHS["drops"], f'{{ kind = "c", path = "{name}.bpf.c" }}')


@pytest.mark.parametrize("path", WITHOUT_MARKS)
def test_delay_based_aimd_of_the_kernel_differs_by_its_rounding(kernel: Path, path: str) -> None:
    # Its window is the whole part, which counts most for a window of a few segments.
    place = WITHOUT_MARKS[path]
    theirs = on_path(kernel, place, '{ kind = "c", path = "delay_aimd.bpf.c" }')
    ours = on_path(kernel, place, DELAY)
    goodputs = [run.flows["goodput_bit_s"][0] for run in (theirs, ours)]
    assert goodputs[0] == pytest.approx(goodputs[1], rel=0.03)


def test_variables_are_arguments_and_axes(own: Path) -> None:
    with own.open("a") as file:
        file.write(
            '\n[sweep.axis.divisor]\npath = "flow.main.controller.divisor"\nvalues = [2, 8]\n'
        )
    run = cwnd.run(own, trust=True)
    window = run.flows["goodput_bit_s"].to_list()
    assert window[0] != window[1]


CONSTANTS = """\
struct inner { int depth; };
struct settings {
	struct inner inner; struct { u8 a; } other;
	u32 first, second; s64 third;
	u32 list[2];
};
const volatile u16 one = 1, two __attribute__((section(".x"), used)), three = 3;
static volatile const struct settings settings __attribute__((section(".y"))) = { .third = -3 };
const volatile char text[16];
static inline int f(void) { static const volatile u32 hidden; return hidden; }
"""


def test_variables_may_be_declared_together_and_in_structures() -> None:
    listed = compiling._listed(CONSTANTS)
    assert re.findall(r'\{ "(\w+)"', listed) == ["one", "two", "three", "first", "second", "third"]


def test_each_run_has_its_own_variables_and_maps(own: Path) -> None:
    plain = cwnd.run(own, trust=True)
    edit(
        own.with_name("own.bpf.c"),
        "const volatile",
        "struct counts { u64 acks; };\n"
        "struct {\n\t__uint(type, BPF_MAP_TYPE_ARRAY);\n\t__uint(max_entries, 1);\n"
        '\t__type(key, u32);\n\t__type(value, struct counts);\n} counts SEC(".maps");\n'
        "struct {\n\t__uint(type, BPF_MAP_TYPE_SK_STORAGE);\n"
        "\t__uint(map_flags, BPF_F_NO_PREALLOC);\n"
        '\t__type(key, int);\n\t__type(value, struct counts);\n} of_socket SEC(".maps");\n'
        "static u64 acks;\nconst volatile",
    )
    edit(
        own.with_name("own.bpf.c"),
        "\ttcp_reno_cong_avoid(sk, ack, acked);",
        "\tu32 first = 0, none = 1;\n"
        "\tstruct counts *all = bpf_map_lookup_elem(&counts, &first);\n"
        "\tstruct counts *mine = bpf_sk_storage_get(&of_socket, sk, 0,\n"
        "\t\tBPF_SK_STORAGE_GET_F_CREATE);\n"
        "\tif (!all || !mine || bpf_map_lookup_elem(&counts, &none))\n\t\treturn;\n"
        "\tacks++;\n\tall->acks++;\n\tmine->acks++;\n"
        "\tif (acks == all->acks && acks == mine->acks && acks < 6000)\n"
        "\t\ttcp_reno_cong_avoid(sk, ack, acked);",
    )
    assert_same(cwnd.run(own, trust=True, check=True), plain)
    with own.open("a") as file:
        file.write("\n[sweep]\nrepeat = 2\n")
    # One process computes both.
    both = cwnd.run(own, threads=1).flows["goodput_bit_s"]
    second = cwnd.run(own, seed=2, set={"sweep.repeat": 1}).flows["goodput_bit_s"]
    assert both[1] == second[0]


def test_code_and_its_headers_are_refused_until_they_are_trusted(own: Path, cli: Cli) -> None:
    assert cli("check", own).code == 0
    out = own.with_name("out")
    refused = cli("run", own, "-o", out, "--no-plots")
    assert refused.code == 2
    assert "own.bpf.c" in refused.err
    assert "in own.toml itself" not in refused.err
    assert cli("run", own, "-o", out, "--trust", "--no-plots").code == 0
    edit(own.with_name("parts.h"), "2 ? window : 2", "4 ? window : 4")
    assert cli("run", own, "-o", out, "--no-plots").code == 2


def test_headers_may_include_what_lies_beside_them(own: Path) -> None:
    (own.parent / "lib").mkdir()
    own.with_name("parts.h").rename(own.parent / "lib" / "two.h")
    (own.parent / "lib" / "one.h").write_text('#include "two.h"\n')
    edit(own.with_name("own.bpf.c"), '"parts.h"', '"lib/one.h"')
    assert cwnd.run(own, trust=True).flows["goodput_bit_s"][0] > 0
    (own.parent / "lib" / "two.h").write_bytes(b"/* \xe9 */\n")
    with pytest.raises(cwnd.ScenarioError, match=r"`lib/two.h` can't be used: it is no UTF-8 text"):
        cwnd.run(own, trust=True)


def test_a_result_is_verified_without_its_files(own: Path, cli: Cli) -> None:
    out = own.with_name("out")
    cwnd.sweep(own, out, trust=True)
    own.with_name("own.bpf.c").unlink()
    own.with_name("parts.h").unlink()
    verified = cli("verify", out)
    assert verified.code == 0, verified.out
    assert "1 computed again" in verified.out


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("/ divisor)", "/ divisors)", "own.bpf.c:22:"),
        ("tcp_reno_undo_cwnd", "cubictcp_undo", "cwnd has no `cubictcp_undo`"),
        ("\ttcp_reno_cong_avoid(sk", "\tbpf_skc_lookup_tcp(sk", "cwnd has no `bpf_skc_lookup_tcp`"),
        ('"parts.h"', "<stdio.h>", "own.bpf.c:4: `stdio.h` is no header in its folder"),
        ('"parts.h"', '"/etc/passwd"', "own.bpf.c: `/etc/passwd` is no header in its folder"),
        ('#include "parts.h"', '/**/ #inc\\\nlude "/etc/passwd"', "`/etc/passwd` is no header"),
        ('name = "own"', 'name = "sixteen_chars_ab"', "has no complete `tcp_congestion_ops`"),
        ("\t.undo_cwnd =", "\t.sndbuf_expand =", "own.bpf.c has no complete `tcp_congestion_ops`"),
        ("*sk)\n{\n}", "*sk)\n{\n\ttcp_sk(sk)->srtt_us = 1;\n}",
         "read-only member"),
        ("*sk)\n{\n}", "*sk)\n{\n\t*(volatile int *)8 = 1;\n}",
         "own.bpf.c ended before its result was there (SIGSEGV)"),
        ("*sk)\n{\n}", "*sk)\n{\n\tfor (;;)\n\t\tbarrier();\n}",
         "own.bpf.c: a call into the code did not return for 5 s"),
    ],
)  # fmt: skip
def test_wrong_code_is_a_sentence(own: Path, old: str, new: str, message: str) -> None:
    edit(own.with_name("own.bpf.c"), old, new)
    with pytest.raises(CodeError, match=re.escape(message)) as raised:
        cwnd.run(own, trust=True)
    assert "Traceback" not in str(raised.value)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ('name = "other"', "own.bpf.c has no controller `other`; it has own"),
        ("gain = 2", "own.bpf.c has no `const volatile` variable `gain`"),
        ("divisor = 0.5", "own.bpf.c takes a whole number for `divisor`"),
        ("divisor = -1", "own.bpf.c has a variable `divisor`, which -1 does not fit"),
    ],
)
def test_wrong_keys_are_a_sentence(own: Path, keys: str, message: str) -> None:
    edit(own, 'path = "own.bpf.c"', f'path = "own.bpf.c", {keys}')
    with pytest.raises(CodeError, match=re.escape(message)):
        cwnd.run(own, trust=True)


def test_a_table_of_another_version_is_refused(own: Path) -> None:
    source = own.with_name("later.c")
    source.write_text(
        '#include "controller.h"\n'
        "const struct cwnd_controller *cwnd_controllers(cwnd_u32 version, cwnd_u32 *count)\n"
        '{\n\tstatic struct cwnd_controller table = { .version = 3, .name = "later" };\n'
        "\t*count = 1;\n\treturn &table;\n}\n"
    )
    made = own.with_name("later.so")
    command = ["cc", "-shared", "-fPIC", f"-I{compiling.FOLDER}", source, "-o", made]
    subprocess.run(command, check=True)
    cell = next(iter(plans.plan(own).points))
    with pytest.raises(CodeError, match=r"has tables of version 3, and this cwnd has version 2"):
        cell.run(classes=[made])


def test_no_header_is_written_outside_of_the_folder() -> None:
    for header in ("../x.h", "a/../../x.h", "/tmp/x.h"):
        with pytest.raises(CodeError, match="outside of its folder"):
            compiling.files("ctl/own.bpf.c", f'int x;\n// cwnd: file "{header}"\nint y;\n')


def test_a_scenario_may_select_one_of_several_controllers(own: Path) -> None:
    code = own.with_name("own.bpf.c")
    second = RENO[RENO.index('SEC(".struct_ops")') :].replace("ops own", "ops two")
    code.write_text(RENO + second.replace('"own"', '"two"'))
    with pytest.raises(CodeError, match="several controllers; `name` selects one of"):
        cwnd.run(own, trust=True)
    edit(own, 'path = "own.bpf.c"', 'path = "own.bpf.c", name = "two"')
    assert cwnd.run(own).flows["goodput_bit_s"][0] > 0


def test_other_files_are_refused(own: Path) -> None:
    (own.parent / "own.txt").write_text("SECRET")
    with pytest.raises(cwnd.ScenarioError) as raised:
        cwnd.run(own, set={"flow.main.controller.path": "own.txt"})
    assert "whose name ends in .py or .c" in str(raised.value)
    assert "SECRET" not in str(raised.value)


#: Rows of runs in the kernel.
ROWS = Path(__file__).parent / "data" / "linux"
#: What cwnd lacks of those that it refuses.
REFUSED = {
    "bpf_cc_cubic": "`cubictcp_init`",
    "bpf_dctcp_release": "no complete `tcp_congestion_ops`",
    "tcp_ca_kfunc": "`bbr_init`",
}


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize(
    "name",
    [
        *("bpf_cubic", "bpf_dctcp", "bpf_cc_cubic", "bpf_dctcp_release"),
        *("tcp_ca_kfunc", "tcp_ca_update", "tcp_ca_write_sk_pacing"),
    ],
)
def test_the_kernels_selftests_compile_unchanged(selftests: Path, name: str, compiler: str) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is missing")
    headers = [f"-I{compiling.FOLDER}", f"-I{compiling.FOLDER / 'host'}"]
    command = [compiler, *compiling.OPTIONS, *headers, "-c", f"{name}.c", "-o", "made.o"]
    done = subprocess.run(command, cwd=selftests, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


@pytest.mark.parametrize("name", ["tcp_ca_update", "tcp_ca_write_sk_pacing", *REFUSED])
def test_other_selftests_run_or_are_refused_by_name(selftests: Path, name: str) -> None:
    wanted = ', name = "tcp_ca_update"' if name == "tcp_ca_update" else ""
    controller = f'{{ kind = "c", path = "{name}.c"{wanted} }}'
    if name in REFUSED:
        with pytest.raises(CodeError, match=re.escape(REFUSED[name])):
            on_path(selftests, PATHS["drops"], controller)
    else:
        assert on_path(selftests, PATHS["drops"], controller).flows["goodput_bit_s"][0] > 0


def test_the_kernels_cubic_is_as_fast_as_in_recorded_rows(selftests: Path) -> None:
    folder = STUDIES / "worlds" / "kernel"
    scenario, _ = (folder / "10mbit.toml").read_text().split("# The testbed loads ABE")
    (selftests / "rows.toml").write_text(
        f"{scenario}[sweep.axis.arm]\npath = 'flow.main.controller'\n"
        "values = [{ kind = 'c', path = 'bpf_cubic.c' }]\nlabels = ['CUBIC']\n"
    )
    found = cwnd.run(selftests / "rows.toml", trust=True).summary()
    rows = pl.read_csv(folder / "10mbit.csv", infer_schema_length=None)
    recorded = rows.filter(pl.col("arm") == "CUBIC", pl.col("metric") == "Goodput")
    # Of the rows that were repeated 30 times, the first have three runs.
    both = found.join(recorded.unique(["queue", "rtt"], keep="last"), on=["queue", "rtt"])
    assert both.height == 12
    apart = (both["goodput_bit_s"] / both["linux"] / 1e6 - 1).abs()
    assert apart.max() < 0.1
    assert apart.median() < 0.02


def test_the_kernels_dctcp_is_as_in_recorded_rows(selftests: Path) -> None:
    # Of three runs in Linux 6.18 at each point, with their 95 % intervals.
    shutil.copy(ROWS / "dctcp.toml", selftests)
    check_trust(sources(plans.plan(selftests / "dctcp.toml").points), "dctcp.toml", trust=True)
    found = rerun_simulator(selftests / "dctcp.toml", ROWS / "dctcp.csv", selftests / "runs").rows
    assert len(found) == 2 * 12
    beyond: dict[str, list[float]] = {}
    for row in found:
        assert row.relative is not None
        assert row.linux.half_width is not None
        width = row.linux.half_width / row.linux.mean
        beyond.setdefault(row.metric, []).append(max(0.0, abs(row.relative) - width))
    # The windows of real hosts are not always full, which matters most over CoDel at 100 Mbit/s.
    assert max(beyond["goodput_bit_s"]) < 0.003
    assert max(beyond["qdelay_mean_us"]) < 0.2
    assert median(beyond["qdelay_mean_us"]) < 0.02


def test_the_kernels_dctcp_is_as_fast_as_the_built_in_one(selftests: Path) -> None:
    meter = 'meter = { kind = "step", threshold = "40 packets" }'
    queue = f'{{ kind = "fifo", limit = "500 packets" }}\n{meter}'
    text = SCENARIO.replace("12 Mbit/s", "100 Mbit/s").replace(SHORT, queue)
    text = text.replace('rtt = "60 ms"', 'rtt = "10 ms"')
    text = text.replace("ecn = true", 'ecn = true, echo = "changes"')
    found = []
    for controller in ('{ kind = "c", path = "bpf_dctcp.c" }', '"dctcp"'):
        file = selftests / "dctcp.toml"
        file.write_text(text.replace('{ kind = "c", path = "own.bpf.c" }', controller))
        run = cwnd.run(file, trust=True)
        assert run.flows["cwnd_reductions_ecn"][0] > 50
        found.append((run.flows["goodput_bit_s"][0], run.links["qdelay_mean_us"][0]))
    assert found[0][0] == pytest.approx(found[1][0], rel=0.01)
    assert found[0][1] == pytest.approx(found[1][1], rel=0.1)
