# `make help` lists the targets. Everything needs only Go and what .ci/run
# installs; nothing is fetched but Go modules.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build

export GOTOOLCHAIN := local
# Versions come from `git describe` below: reading the repository at each build
# is slow, and fails where it belongs to another user.
export GOFLAGS := -mod=readonly -buildvcs=false

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X vogt/internal/version.stamp=$(VERSION)

# Packages in which goroutines meet are tested under the race detector. Those
# that do not exist are left out.
RACE := internal/audit internal/authority internal/authoritytest internal/catalog internal/client internal/config \
	internal/control internal/ddisa internal/egress internal/elevated internal/execution internal/fetch internal/flow internal/hook \
	internal/httpapi internal/mcpgate internal/notify internal/pages internal/peer internal/push internal/quickstart \
	internal/shell internal/supervise internal/terminal internal/store cmd/vogt cmd/vogtd

# Of these, packages whose tests start the test program again thousands of times,
# which is slow under the detector and shows it nothing; RACED names their tests
# that are run under it all the same.
NORACE := internal/execution/confine
RACED := TestPlaceholders|TestEnding|TestRefuses|TestConcurrent

# How many lines `make differential` generates.
LINES := 100000

# How long each fuzz target runs.
FUZZTIME := 2s

STATICCHECK := go tool -modfile=.ci/tools.mod staticcheck

.PHONY: build
build: ## build all binaries into bin/
	@mkdir -p bin
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/...

.PHONY: up
up: build ## build, then start Vogt for this user on this machine (ARGS='…' for more switches)
	bin/vogt up $(ARGS)

.PHONY: test
test: compile lint gotest fuzz cross ## everything that must hold before a change lands

.PHONY: compile
compile: ## compile every package
	CGO_ENABLED=0 go build ./...

.PHONY: lint
lint: ## gofmt, go vet, staticcheck and the rules of rules_test.go
	@unformatted=$$(gofmt -l *.go .ci bench cmd internal); \
	if [ -n "$$unformatted" ]; then echo "gofmt would change:"; echo "$$unformatted"; exit 1; fi
	go vet ./... ./.ci/gotest
	$(STATICCHECK) ./... ./.ci/gotest
	go test -count=1 .

.PHONY: gotest
gotest: ## all Go tests but those rules, with a list of what was skipped
	RACE='$(RACE)' NORACE='$(NORACE)' RACED='$(RACED)' .ci/test

.PHONY: fuzz
fuzz: ## each fuzz target for FUZZTIME (make fuzz FUZZTIME=10m for a real search)
	FUZZTIME='$(FUZZTIME)' .ci/fuzz

.PHONY: cross
cross: ## build for macOS and Windows
	@for target in darwin/amd64 darwin/arm64 windows/amd64 windows/arm64; do \
		echo "build $$target"; \
		CGO_ENABLED=0 GOOS=$${target%/*} GOARCH=$${target#*/} go build ./cmd/...; \
	done

.PHONY: differential
differential: ## compare the reader with real bash on many generated lines (LINES=100000)
	VOGT_DIFFERENTIAL='$(LINES)' go test -count=1 -timeout=6h -run TestGenerated -v ./internal/reading/differential

.PHONY: bench
bench: build ## measure the built binaries and a real authority, as a Markdown report
	go run ./bench

.PHONY: help
help: ## this list
	@awk -F ':[^#]*## ' '/^[a-z]+:[^#]*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
