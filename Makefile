# The few verbs of the project. `make` lists them.
.PHONY: help up console test check soak skew bench screenshots dist docs

help: ## list the verbs
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

up: ## build and start the server and a runner on this machine
	@deploy/up

console: ## build the web console with Node, where its sources have changed
	@deploy/console

test: check ## every test, after the lints
	@tests/run

check: ## formatting and lints; licences, sources and advisories where cargo-deny is installed
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	@tests/deny

soak: ## many seeds of the router's simulation and the fuzzers (SEEDS=100000, from FIRST=1000 on), EXECS=10000 commands, STORMS=50 of kills, ROUNDS=40 of failures around three servers, schemathesis' random requests, a file of 2 GiB
	GANTRY_SIMULATION_SEEDS=$${SEEDS:-100000} GANTRY_SIMULATION_FIRST=$${FIRST:-1000} \
		cargo test --locked -p server-router --lib --config profile.dev.package.server-router.opt-level=1 simulation::whatever -- --nocapture
	export GANTRY_FUZZ_SEEDS=$${SEEDS:-100000} GANTRY_FUZZ_FIRST=$${FIRST:-1000}; \
		cargo test --locked -p shared-link -p runner-supervisor --test fuzz && cargo test --locked -p runner journal::tests::fuzz
	GANTRY_STORMS=$${STORMS:-50} cargo test --locked -p runner-supervisor --test supervisor sweeps
	cargo build --workspace --bins --locked
	GANTRY_FUZZ_SEEDS=$${SEEDS:-100000} GANTRY_FUZZ_FIRST=$${FIRST:-1000} GANTRY_LARGE_MIB=2048 \
		GANTRY_SCHEMATHESIS=$$(ls target/peers/schemathesis-*/bin/schemathesis | tail -n 1) \
		GANTRY_EXECS=$${EXECS:-10000} GANTRY_STORMS=$${STORMS:-50} \
		GANTRY_CHAOS_SEED=$${FIRST:-1000} GANTRY_CHAOS_ROUNDS=$${ROUNDS:-40} GANTRY_CHAOS_RUNNERS=20 cargo test --locked -p tests --test scenarios -- \
		--nocapture --test-threads=1 many_execs storm_of_killed whatever_fails_around whatever_strangers_send schemathesis a_large_file

skew: ## server and runner of different versions together: this commit's and the last tag's (REF=COMMIT: another's)
	@tests/skew $(REF)

bench: ## figures against real peers, as ratios
	@tests/bench

screenshots: ## a picture of every page of the web console in target/screenshots, and what Lighthouse says (LANG=zh: in Chinese)
	@tests/screenshots

dist: ## the archives of a release in dist/, with checksums, licences and a bill of materials
	@deploy/dist

docs: ## the site of docs/ in target/site/html; deploy/reference renews the pages that are made from the code
	@deploy/site/build
