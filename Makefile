# Candor's commands. `make` alone names them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# One cache for all clones of a user; see hack/setup.sh.
export CANDOR_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/candor
# A kubectl that setup fetched is used where the machine has none of its own.
export PATH := $(PATH):$(CANDOR_CACHE)/bin

.PHONY: help
help: ## what there is
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

.PHONY: run
run: ## a Kubernetes on this machine with the sample in it, until Ctrl-C (KIND=redkey: a RedkeyCluster)
	@KIND="$(KIND)" hack/run.sh

.PHONY: apply-rkcl
apply-rkcl: ## the sample RedkeyCluster into the running sandbox, or into the cluster of KUBECONFIG
	@hack/rkcl.sh apply

.PHONY: delete-rkcl
delete-rkcl: ## removes that sample again
	@hack/rkcl.sh delete

.PHONY: demo
demo: ## a tour with real output: create, write, kill, scale, roll, delete; ends by itself
	@hack/demo.sh

.PHONY: example
example: ## the example operator on a sandbox: what its status says while things fail and recover
	@hack/example.sh

.PHONY: test
test: setup ## every test, everything it needs set up by itself
	@[ "$$(id -u)" = 0 ] || echo "not root: the tests that say 'as root' in their names only prove that they refuse"
	@# Most tests wait for servers, so that more of them fit beside each other than there are cores.
	RUST_TEST_THREADS=$${RUST_TEST_THREADS:-$$(($$(nproc) * 2))} cargo test --workspace --all-features --locked --no-fail-fast
	hack/live.sh

.PHONY: test-kube
test-kube: ## the end-to-end suite on a real cluster: the one in KUBECONFIG, run on its node as root
	@[ -n "$${KUBECONFIG:-}" ] || { echo "set KUBECONFIG to the cluster; 'make kube' starts one" >&2; exit 1; }
	@# Robin runs in a pod: its program is built with the scenarios and becomes an image on the node.
	cargo build -p candor-tests --locked --bin robin
	CANDOR_IMAGE=docker.io/library/candor:tests hack/kube/images.sh "$${CARGO_TARGET_DIR:-target}/debug/robin"
	CANDOR_TEST_KUBECONFIG="$$KUBECONFIG" cargo test -p candor-tests --locked --no-fail-fast -- --nocapture

.PHONY: faults
faults: ## simulated members: the operator killed after every write, every refusal of every third write, stale and lost reads
	CANDOR_FAULTS=all cargo test -p candor-operator --locked --test faults

.PHONY: soak
soak: setup ## real servers under load while operator and Robin are killed, refused and lied to (SECONDS=120 SEED=... KIND=redkey)
	@hack/soak.sh "$(or $(SECONDS),120)" "$(SEED)" "$(KIND)"

.PHONY: setup
setup: ## servers, kubectl, tmux and a browser into the cache, where missing
	@hack/setup.sh servers older kubectl tmux browser nftables

.PHONY: lint
lint: ## formatting, clippy and docs, warnings as errors; licences and bans
	cargo fmt --all --check
	cargo clippy --workspace --all-features --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --all-features --no-deps --locked
	hack/msrv.sh
	hack/dependencies.sh

.PHONY: mutants
mutants: ## changes the pure parts one expression at a time and lists what no test notices (ARGS="--re engine/src/slots.rs" for one file)
	@hack/mutants.sh $(ARGS)

.PHONY: generate
generate: ## rewrites what is generated (CRDs, manifests)
	@hack/generate.sh

.PHONY: drift
drift: ## fails when a generated file is not what its source says
	@hack/generate.sh --check

.PHONY: chart
chart: ## the Helm chart: linted, and the same objects as candor install renders
	@hack/chart.sh

.PHONY: install-ways
install-ways: ## installed on a sandbox by kubectl, by candor install and by Helm; used; uninstalled without a trace
	@hack/install-three-ways.sh

.PHONY: image
image: ## the image by podman (or CANDOR_ENGINE=docker), held to its size, its user and its read-only root
	@hack/image.sh

.PHONY: clients
clients: setup ## six client libraries against a cluster that rolls, scales and fails over; errors and slowest calls
	@hack/clients.sh

.PHONY: docs
docs: setup ## the commands of the pages, typed into a sandbox; what they print held against what the pages show
	cargo build --locked -p candor
	@hack/docs.py "$${CARGO_TARGET_DIR:-target}/debug/candor" $(PAGES)

.PHONY: monitoring
monitoring: ## the alerts' own tests
	@hack/monitoring.sh

.PHONY: bench
bench: setup ## figures, beside a real kube-apiserver when `make kube` has built one
	@hack/bench.sh

.PHONY: conformance
conformance: ## the same requests to ours and to the real thing, answers compared
	@for script in conformance/*.sh; do "$$script"; done

.PHONY: kube
kube: setup ## builds and starts a real Kubernetes on this machine; as root with a node that runs pods
	@hack/kube/build.sh
	@hack/kube/up.sh

.PHONY: kube-down
kube-down: ## ends what `make kube` started
	@hack/kube/down.sh

.PHONY: kube-inside
kube-inside: ## the operator inside that Kubernetes, from deploy/install.yaml and an image made here
	@hack/kube/inside.sh

.PHONY: kube-bench
kube-bench: ## on that Kubernetes: what an idle member costs; create 3x1, the operator beside kubectl and valkey-cli
	@hack/kube/bench.sh

.PHONY: ci
ci: ## all that must hold before a change lands
	@.ci/run
