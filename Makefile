# The targets that people and .ci/run use. `make check` is what has to pass
# before a change is merged.

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.6.1
FUZZTIME ?= 30s
BENCHTIME ?= 1s
BENCHCOUNT ?= 10
# Packages: all, or make test PKG=./kg/...
PKG ?= ./...

.PHONY: quick nightly image dist all build fmt lint test race fuzz bench bench-guard gen check

all: build

build:
	go build -o bin/koine ./cmd/koine

fmt:
	gofmt -w $$(git ls-files '*.go')

lint:
	test -z "$$(gofmt -l $$(git ls-files '*.go') | tee /dev/stderr)"
	go vet $(PKG)
	go run $(STATICCHECK) $(PKG)
	go mod tidy -diff
	scripts/language.sh -check

# What matters most: about 180 s of processor time with a warm build cache (CONTRIBUTING.md). Tests of more
# than half a second are smaller or skipped (testing.Short).
quick:
	test -z "$$(gofmt -l $$(git ls-files '*.go') | tee /dev/stderr)"
	scripts/language.sh -check
	go test -short $(PKG)

test:
	scripts/test.sh

race:
	scripts/test.sh -race -shuffle=on -count=1 -timeout 30m

# Each fuzz target for FUZZTIME, one after the other.
fuzz:
	scripts/fuzz.sh $(FUZZTIME)

# For comparing with benchstat: make bench > new.txt
bench:
	@go test -run '^$$' -bench . -benchtime $(BENCHTIME) -count $(BENCHCOUNT) $(PKG)

# The processor time of this tree beside that of the base build; 15 to 20 minutes.
bench-guard:
	scripts/bench-guard.sh

# What is generated is committed; CI fails when this changes anything.
gen:
	go generate ./...
	npm --prefix web run build

check: lint race

# What is released, in dist/: static binaries with checksums. The image is the Dockerfile's.
dist:
	scripts/dist.sh

# What takes longer than CI may, or needs the network: govulncheck.
nightly:
	scripts/nightly.sh

# The Dockerfile's build and root, without an engine, and the systemd unit. Needs root.
image:
	scripts/check-image.sh
