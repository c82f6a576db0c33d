# What there is to do with cwnd; `make` alone shows it.

SCENARIO ?= scenarios/abe-codel-pie.toml
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
UV := scripts/uv
export UV_PROJECT_ENVIRONMENT := $(VENV)
# Compiled at once, so that the first run starts as fast as the second.
SYNC := --quiet --frozen --inexact --no-install-project --compile-bytecode

# The extension is built again when one of these is newer than the last build.
SOURCES := $(shell find crates -path crates/linux/kernel -prune -o \
		\( -name '*.rs' -o -name '*.toml' -o -name '*.c' -o -name '*.h' \) -print) \
	Cargo.toml Cargo.lock pyproject.toml
# An extension that was deleted is built again, too.
EXTENSION := $(wildcard python/cwnd/_core.*so)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: check-targets test-windows help run build dev play fuzz fuzz-check fuzz-page kernel \
	kernel-rows kernels test test-rust test-long test-python test-testbed test-instructions \
	test-memory test-readers test-kernel packetdrill probes selftests selftest-rows lint lint-rust \
	lint-python format measure fresh docs site studies vectors bench bench-accept \
	bench-connections bench-growth bench-infer bench-gym bench-own bench-peers bench-play \
	bench-recovery bench-router bench-start wheel clean

help: ## Show this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "Another scenario: make run SCENARIO=my.toml ARGS='--seed 7'"

run: build ## Simulate a scenario: table, plots and Parquet files in out/
	@$(BIN)/cwnd run $(SCENARIO) $(ARGS)

build: $(VENV)/built ## Build the extension and the environment in .venv
	@$(BIN)/python -m compileall -q python/cwnd

dev: $(VENV)/dev build ## The same with the tools that the tests need

PLAYGROUND := python/cwnd/playground/playground.html
play: $(PLAYGROUND) ## Build the playground: one page with the simulator as WebAssembly

# Without Rust's target or npm it prints what is missing and builds nothing.
$(PLAYGROUND): $(VENV)/installed $(SOURCES) scripts/playground.py \
		$(wildcard python/cwnd/playground/assets/*) $(wildcard scenarios/*.toml)
	@PYTHONPATH=python $(BIN)/python scripts/playground.py

# Apart from everything else, which needs neither clang nor libelf.
KERNEL := --manifest-path crates/linux/kernel/Cargo.toml --target-dir target/kernel
HAS_HEADER = printf '\#include <$(1)>\n' | cc -E -o /dev/null - 2>/dev/null
# Debian packages that its build needs and this machine lacks. Debian may name llvm-strip after its
# version only.
KERNEL_LACKS = $(strip $(shell clang=$${CLANG:-clang}; \
	command -v "$$clang" >/dev/null || echo clang; \
	command -v "$${LLVM_STRIP:-llvm-strip}" >/dev/null || \
		command -v "llvm-strip-$$("$$clang" -dumpversion 2>/dev/null | cut -d. -f1)" >/dev/null || \
		echo llvm; \
	$(call HAS_HEADER,bpf/bpf_helpers.h) || echo libbpf-dev; \
	$(call HAS_HEADER,libelf.h) || echo libelf-dev; \
	$(call HAS_HEADER,zlib.h) || echo zlib1g-dev))
KERNEL_SKIPPED = echo "skipped: $@: cwnd-kernel cannot be built; apt install $(KERNEL_LACKS)" >&2

kernel: kernel-needs $(VENV)/installed ## Build .venv/bin/cwnd-kernel: loads controllers into Linux
	cargo build --release --quiet $(KERNEL)
	install -m 755 target/kernel/release/cwnd-kernel $(BIN)/cwnd-kernel

.PHONY: kernel-needs
kernels: kernel-needs
kernel-needs:
	@$(if $(KERNEL_LACKS),echo "error: cwnd-kernel cannot be built; \
		apt install $(KERNEL_LACKS)" >&2; exit 3)

$(VENV)/installed: pyproject.toml uv.lock
	@command -v cargo >/dev/null || { \
		echo "error: Rust is missing; install it from https://rustup.rs" >&2; exit 3; }
	$(UV) sync $(SYNC) --group build
	@touch $@

$(VENV)/built: $(VENV)/installed $(SOURCES) $(if $(EXTENSION),,missing-extension)
	rm -f python/cwnd/_core.cpython-*
	PATH="$(CURDIR)/target/uv/bin:$$PATH" $(BIN)/maturin develop --quiet --release --uv
	@touch $@

.PHONY: missing-extension
missing-extension:

$(VENV)/dev: $(VENV)/installed
	$(UV) sync $(SYNC) --group dev
	@# It lists the fonts of the machine once, and warns if that takes long.
	$(BIN)/python -c "import matplotlib.font_manager"
	@touch $@

# LONG=1 adds the long mode. What one core is enough for, or waits, goes beside the rest, as long as
# no test measures how long something takes.
test: ## Run all tests and all linters
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target \
		test-instructions lint test-rust fuzz-check check-targets
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target \
		test-testbed test-memory test-readers test-windows
	@$(MAKE) --no-print-directory test-python test-kernel $(if $(LONG),test-long)

.PHONY: test-build
test-build: ## Build the Rust tests, which the other targets then run
	env -u MAKEFLAGS -u MFLAGS cargo test --workspace --quiet --no-run
	@$(if $(KERNEL_LACKS),$(KERNEL_SKIPPED),env -u MAKEFLAGS -u MFLAGS \
		cargo test --release --quiet $(KERNEL) --no-run)

# Random cases are the same each time; `cargo test` alone draws others.
test-rust: ## Run the Rust tests
	env -u MAKEFLAGS -u MFLAGS PROPTEST_RNG_SEED=1 cargo test --workspace --quiet

test-long: dev fuzz-tools ## Check properties on 10,000 random scenarios each; fuzz for minutes
	cargo test --quiet -p cwnd-sim --no-default-features --test prefetch
	LONG=1 cargo test --quiet -p cwnd-tests -- conservation storms idle_keys links
	LONG=1 $(BIN)/pytest -m hypothesis
	LONG=1 $(BIN)/pytest -m real_time python/tests/test_interrupt.py
	LONG=1 $(BIN)/pytest python/tests/studies/test_peers.py \
		python/tests/test_studies.py -k "they_are_recorded or closed_forms"
	$(FUZZ) --seconds 60

TARGET ?=
SECONDS ?= 60
FUZZ := $(BIN)/python scripts/fuzz.py
CARGO_FUZZ := target/tools/bin/cargo-fuzz

fuzz: fuzz-tools ## Fuzz one target, or all (TARGET=queue SECONDS=60)
	@$(FUZZ) $(TARGET) --seconds $(SECONDS) $(ARGS)

fuzz-page: fuzz-tools ## Fuzz all targets for a minute each and write docs/fuzzing.md
	@$(FUZZ) --page --keep

# Stable Rust takes the flags of a nightly one where it is told to.
fuzz-check: ## Check that all fuzz targets compile, with their lock as it is
	RUSTC_BOOTSTRAP=1 RUSTFLAGS="--cfg fuzzing" cargo check --quiet --locked --bins \
		--manifest-path fuzz/Cargo.toml --target-dir target/fuzz-check

.PHONY: fuzz-tools
fuzz-tools: build $(CARGO_FUZZ)
	@test -d target/tools/python || \
		$(UV) pip install --quiet --target target/tools/python atheris==3.0.0 || \
		echo "atheris cannot be installed here: the targets in Python are left out" >&2

$(CARGO_FUZZ):
	cargo install cargo-fuzz --version 0.13.2 --locked --quiet --root target/tools

SHARED := --dist loadgroup --no-loadscope-reorder

test-python: dev play ## Run the Python tests, but for those of test-testbed
	$(BIN)/pytest --numprocesses auto $(SHARED) -m "not real_time and not testbed"
	$(BIN)/pytest -m real_time

test-testbed: dev ## Run Python tests that send real packets; some need root, cwnd-kernel
	$(BIN)/pytest --numprocesses 3 $(SHARED) -m "testbed and not real_time"

# With the features of the extension, whose crates are then shared.
.PHONY: programs
programs: build
	cargo build --release --quiet --bins --package cwnd-python --package cwnd-benches

test-instructions: programs ## Check that no packet takes more instructions than were accepted
	@$(BIN)/python benches/instructions.py $(ARGS)

test-readers: programs ## Check that hostile files take time in proportion to their length
	@$(BIN)/python benches/readers.py $(ARGS)

measure: ## Print the measures of the tree beside their limits, and those of the code (ARGS=--build)
	@cargo run --quiet --package cwnd-tests --example measure
	@python3 scripts/measure.py $(ARGS)

test-memory: programs ## Check that no flow takes more memory than was accepted
	@$(BIN)/python benches/memory.py $(ARGS)

test-kernel: ## Test the controllers in this machine's kernel; as root, a minute of real time
	@$(if $(KERNEL_LACKS),$(KERNEL_SKIPPED),cargo test --release --quiet $(KERNEL))

DIR ?=
packetdrill: ## Play the packetdrill scripts below a directory (DIR=../packetdrill/gtests)
	@test -d "$(DIR)" || { \
		echo "error: DIR=$(DIR) is no directory; make packetdrill DIR=path/to/scripts" >&2; \
		exit 2; }
	@CWND_PACKETDRILL="$(abspath $(DIR))" cargo test --quiet -p cwnd-tcp --test suite -- \
		--exact packetdrill::scripts_of_a_directory_are_played --nocapture

probes: ## Record again what this kernel's TCP does about probes of its sender; as root, a minute
	@python3 scripts/record_probes.py \
		crates/tcp/tests/probes/linux-$(shell uname -r | cut -d. -f1,2).txt

SELFTESTS := bpf_cubic.c bpf_dctcp.c bpf_cc_cubic.c bpf_dctcp_release.c tcp_ca_kfunc.c \
	tcp_ca_update.c tcp_ca_write_sk_pacing.c bpf_tracing_net.h
selftests: ## Unpack the kernel's own BPF controllers (apt: linux-source) for the tests; 160 MB
	@mkdir -p target/selftests/package && cd target/selftests/package && \
	name=$$(apt-cache pkgnames linux-source- | sort -V | tail -n 1) && \
	apt-get download --quiet $$name && \
	dpkg-deb --fsys-tarfile $$(ls -t $${name}_*.deb | head -n 1) | \
	tar -xO --wildcards './usr/src/linux-source-*.tar.xz' | \
	tar -xJ -C .. --strip-components=6 --wildcards \
		$(foreach file,$(SELFTESTS),'*/tools/testing/selftests/bpf/progs/$(file)')

selftest-rows: selftests ## Record runs of the kernel's own bpf_dctcp in this Linux, as root
	@cp python/tests/data/linux/dctcp.toml target/selftests && \
	$(BIN)/cwnd agree target/selftests/dctcp.toml --trust --output target/selftests/dctcp && \
	grep -E '^path,|,Goodput,|"Queueing delay, mean"' target/selftests/dctcp/agreement.csv \
		>python/tests/data/linux/dctcp.csv

kernels: ## Test the controllers in other kernels by QEMU; minutes each (ARGS='6.1 7.3', --list)
	@python3 crates/linux/kernel/tests/kernels/run.py $(ARGS)

kernel-rows: ## Record Linux's own Vegas and H-TCP in QEMU; long without virtualization
	@python3 crates/linux/kernel/tests/kernels/record.py 6.12 \
		python/cwnd/studies/questions/kernel_rows/vegas.toml --module tcp_vegas
	@python3 crates/linux/kernel/tests/kernels/record.py 6.12 \
		python/cwnd/studies/questions/kernel_rows/htcp.toml --module tcp_htcp

TARGETS := x86_64-pc-windows-gnu aarch64-apple-darwin
# Without std; the second has 32 bits.
BARE_TARGETS := x86_64-unknown-none thumbv7em-none-eabihf

check-targets: ## Check extension (Windows, macOS), playground (wasm), cc and aqm (without std)
	@for target in $(TARGETS) $(BARE_TARGETS) wasm32-unknown-unknown; do \
		case $$target in \
			wasm*) packages="-p cwnd-play" ;; \
			*-none*) packages="-p cwnd-cc -p cwnd-aqm" ;; \
			*) packages="-p cwnd-python" ;; \
		esac; \
		if rustup target add $$target >/dev/null 2>&1; then \
			env -u MAKEFLAGS -u MFLAGS cargo clippy --quiet $$packages \
				--target $$target -- -D warnings || exit; \
		else echo "skipped: $@: rustup cannot get $$target" >&2; fi; \
	done

test-windows: ## Compare a digest of the simulator for Windows with Linux's, where there is Wine
	@env -u MAKEFLAGS -u MFLAGS scripts/test_windows.sh

lint: lint-rust lint-python fresh ## Run all linters; change nothing

# By file: modules that a macro declares are not seen by `cargo fmt`.
RUSTFMT := find benches crates tests fuzz -name target -prune -o -name '*.rs' -print0 | \
	xargs -0 rustfmt --edition 2024

# `cargo publish --workspace` takes these crates; the others are not for publication.
PUBLISHED := quantity memory packet derive schema cc aqm

lint-rust:
	$(RUSTFMT) --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	cargo package $(PUBLISHED:%=--package cwnd-%) --no-verify --no-metadata --allow-dirty \
		--offline --quiet
	@$(if $(KERNEL_LACKS),$(KERNEL_SKIPPED),cargo clippy --release $(KERNEL) \
		--all-targets --quiet -- -D warnings)

lint-python: dev build
	$(BIN)/ruff check --quiet
	$(BIN)/ruff format --check --quiet
	$(BIN)/mypy
	$(BIN)/mypy $(wildcard benches/*.py examples/*.py)
	$(BIN)/python -m mypy.stubtest cwnd._core --mypy-config-file pyproject.toml
	$(BIN)/python scripts/language.py
	$(BIN)/zizmor --offline --quiet --persona pedantic .github

format: dev ## Format all code
	$(RUSTFMT)
	$(BIN)/ruff check --quiet --fix
	$(BIN)/ruff format --quiet

fresh: build ## Check that the generated files are what the code generates
	@$(BIN)/cwnd reference | cmp - docs/reference/scenario.md || { \
		echo "error: docs/reference/scenario.md is stale; run make docs" >&2; exit 1; }

PALETTE := $(BIN)/python -m cwnd.study.images

docs: build ## Write the generated files and figures again, and the API documentation of the crates
	$(BIN)/cwnd reference > $(VENV)/generated && mv $(VENV)/generated docs/reference/scenario.md
	$(BIN)/cwnd run scenarios/abe-codel-pie.toml --quiet -o $(VENV)/docs/abe-codel-pie
	$(BIN)/cwnd plot $(VENV)/docs/abe-codel-pie > $(VENV)/generated
	$(PALETTE) $(VENV)/docs/abe-codel-pie/plots/sweep.png docs/images/abe-codel-pie.png
	$(BIN)/cwnd run scenarios/delay-aimd.toml --quiet -o $(VENV)/docs/delay-aimd
	$(BIN)/cwnd plot $(VENV)/docs/delay-aimd --kind timeseries > $(VENV)/generated
	$(PALETTE) $(VENV)/docs/delay-aimd/plots/timeseries.png docs/images/delay-aimd.png
	cargo doc --workspace --no-deps --quiet

$(VENV)/site: $(VENV)/installed
	$(UV) sync $(SYNC) --group site
	@touch $@

site: build play $(VENV)/site ## Build the manual as a site in target/site; broken links fail
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo target/site/index.html

STUDY ?=
studies: build ## Run all studies, or one (STUDY=abe), and write their pages; hours for all
	for name in $(or $(STUDY),$$($(BIN)/cwnd study | cut -d: -f1)); do \
		$(BIN)/cwnd study page $$name || exit; done

# SciPy, of the development tools, is needed for those of the distributions only.
NEEDS_SCIPY := $(if $(ARGS),$(filter distributions,$(ARGS)),all)
vectors: $(VENV)/$(if $(NEEDS_SCIPY),dev,installed) ## Compute vectors again (ARGS='red pie')
	$(BIN)/python tests/reference/generate.py $(ARGS)

mutants: $(VENV)/installed ## Print mutants of the reference that no vector finds (ARGS=delays)
	@$(BIN)/python tests/reference/mutate.py $(ARGS)

bench: build ## Measure packets per CPU second and peak memory
	@$(BIN)/python benches/run.py $(ARGS)

bench-infer: build ## Measure cwnd infer: packets a second and memory, on a capture that it makes
	@$(BIN)/python benches/infer.py $(ARGS)

bench-accept: programs ## Accept the instructions that a packet takes now, and the bytes of a flow
	@$(BIN)/python benches/instructions.py --accept
	@$(BIN)/python benches/memory.py --accept

bench-peers: build ## Install ns-3 and ns-2 and measure them beside ours
	@benches/peers/install.sh
	@$(BIN)/python benches/peers.py $(ARGS)

bench-router: $(VENV)/installed ## Measure how late the router is, and what it takes; needs root
	cargo build --release --quiet --package cwnd-router --example blast
	@$(BIN)/python benches/router.py $(ARGS)

bench-start: build ## Measure what a user waits for: the start, sweeps, short runs
	@$(BIN)/python benches/user_latency.py $(ARGS)

bench-own: build ## Measure controllers of one's own in Python, C and Rust, in one and two processes
	@$(BIN)/python benches/own_code.py $(ARGS)

bench-gym: $(VENV)/dev build ## Measure steps a second of cwnd.gym, in one and two threads
	@$(BIN)/python benches/gym.py $(ARGS)

# Arguments are those of growth.py; recovery.py runs without them only.
bench-growth: build ## Measure how cost grows with flows, links, hops, queues, recovery; minutes
	@$(BIN)/python benches/growth.py --million --figure docs/images/growth.png $(ARGS)
	@$(if $(ARGS),,$(BIN)/python benches/recovery.py)

bench-recovery: build ## Measure the cost of recovery by the packets of the path; two minutes
	@$(BIN)/python benches/recovery.py $(ARGS)

bench-play: dev play ## Measure the playground in Chromium: 50 moves of a slider
	@$(BIN)/python benches/play.py $(ARGS)

bench-connections: build ## Measure a million connections that clients open: time and memory
	@$(BIN)/python benches/connections.py $(ARGS)

# Zig links against the C library of old systems, and of other machines.
wheel: $(VENV)/installed play ## Build a wheel for this machine, or ARGS='--target …', in dist/
	$(UV) run --quiet --no-project --with 'maturin[zig]>=1.16,<2' \
		maturin build --release --zig --out dist $(ARGS)

clean: ## Remove everything that was built; results in out/ stay
	rm -rf $(VENV) target dist python/cwnd/_core.*so $(PLAYGROUND)
	find python -name __pycache__ -type d -prune -exec rm -rf {} +
	rm -rf .mypy_cache .pytest_cache .ruff_cache .hypothesis
