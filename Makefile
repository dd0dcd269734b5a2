# The few verbs of the project. `make help` lists them.
.PHONY: help test check

help: ## list the verbs
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

check: ## formatting and lints
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings

test: check ## every test
	cargo nextest run --workspace --locked
