# Recipes for contributors; `just --list` shows them. CONTRIBUTING.md explains what they run.

# Debug build of the binary.
build:
    cargo build

# A first real duel.
quickstart:
    cargo run --release -- quickstart

# Format and lints, as the gate has them.
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets --locked -- -D warnings

# Documentation, as the gate has it.
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --document-private-items

# All tests, or those of one crate: `just test dbduel-stats`.
test crate="":
    cargo test --locked {{ if crate == "" { "--workspace" } else { "-p " + crate } }}

# Tests of the program, with real servers, whose path contains a text: `just suite small_contests::`.
suite filter="":
    cargo test --locked -p dbduel --test main {{ filter }}

# The lab tier: real time and statistics, alone and repeated, with rates of passes: `just lab faults:: 20`.
lab filter="" repeats="1":
    cargo test --locked -p dbduel --test main -- --lab --repeats {{ repeats }} {{ filter }}

# Contests in a simulated world with drawn faults, from a release build: `just simulate 100000`, or from another seed on.
simulate seeds="10000" from="0":
    DBDUEL_SIMULATE={{ seeds }} DBDUEL_SIMULATE_FROM={{ from }} cargo test --release --locked -p dbduel -p dbduel-fleet --lib simulation:: -- --nocapture

# The tests of the lab tier that last minutes on purpose, which `just lab` leaves out.
soak filter="" repeats="1":
    cargo test --locked -p dbduel --test main -- --lab --soak --repeats {{ repeats }} {{ filter }}

# The binary's unit tests whose path contains a text: `just unit simulation::`.
unit filter="":
    cargo test --locked -p dbduel --lib {{ filter }}

# CPU per query beside sysbench, on a running server: `just cost unix:/run/mysqld/mysqld.sock`.
cost server:
    cargo bench -p dbduel-load --bench client_cost -- --server {{ server }}

# Short turns beside long runs on real servers, half an hour a pair: `just short-and-long`, `just short-and-long stalls`, or pairs by name.
short-and-long *pairs:
    cargo build --release
    DBDUEL=target/release/dbduel RESULTS="${RESULTS:-target/short-and-long}" benches/short_and_long.sh {{ pairs }}

# How often background threads wake per second of load, alone and beside other contenders: eight minutes for each of three products.
background-work *products:
    cargo build --release
    DBDUEL=target/release/dbduel RESULTS="${RESULTS:-target/background-work}" benches/background_work.sh {{ products }}

# The gate of every commit.
gate:
    .ci/run

# All packages into target/packages, each installed where nothing else is and used.
packages:
    packaging/all.sh

# What every package holds: the binary, man pages, completions, licences.
stage:
    packaging/stage.sh

# A tar.xz with its SHA-256, of what `just stage` made.
tarball:
    packaging/tarball.sh

# A Debian package of what `just stage` made.
deb:
    packaging/deb.sh

# A Python wheel that carries the binary.
wheel:
    packaging/wheel.sh

# The documentation as a site, in target/book.
book:
    cargo build
    docs/site/build.sh target/debug/dbduel

# Regenerate the JSON schema of reports after a change of its types.
schema:
    DBDUEL_WRITE_SCHEMA=1 cargo test --locked -p dbduel-report published_schema
