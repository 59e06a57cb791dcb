# gbatch. `make help` says what there is to make.

SHELL := /bin/bash
.DEFAULT_GOAL := help

ifndef VERSION
VERSION := $(shell scripts/version)
endif
export VERSION
STAMP   := $(foreach p,ctld noded cli,-X gbatch/internal/$(p).Version=$(VERSION))
BUILD   := go build -ldflags "-s -w $(STAMP)"

# gnoded needs C: the code that enters a container's namespaces, and seccomp.
# It carries the program of its shims inside. Everything else is one static file.
PLAIN := $(filter-out ./cmd/gnoded,$(patsubst %/main.go,./%,$(wildcard cmd/*/main.go)))
NODE  := $(filter ./cmd/gnoded,$(patsubst %/main.go,./%,$(wildcard cmd/*/main.go)))

# The commands that print their man pages in section 1.
SUITE := $(filter-out gctld gnoded gslurm,$(patsubst cmd/%/main.go,%,$(wildcard cmd/*/main.go)))

# The same flags everywhere, so that building, vetting and testing share what
# is compiled. The version comes by -X: a build needs no git.
export GOFLAGS := -trimpath -buildvcs=false

# The driver's header has a thousand deprecated functions, which nobody calls.
export CGO_CFLAGS := -O2 -g -Wno-deprecated-declarations

# What is compiled with C for tests has the store's compression in Go, as gctld has, which is without
# C: the one in C takes longer to compile than all the rest.
TAGS := -tags seccomp,pebblegozstd

# Containers are tested for real, so the tests need root. One that fails is run once
# more when the others are through, as on a busy machine a deadline may pass: it is told
# as failed, and fails the run if it fails again, if more than a few did, or after a data
# race or a panic. With the race detector a program sleeps for a second at its end, if not told otherwise.
# make lint has vetted them, each by what is compiled to test it. What vet looks at in calls
# of C it reads where they were compiled first, which may be a copy of the repository that is
# gone: the two packages with C hand it numbers and strings.
TEST := GORACE=atexit_sleep_ms=0 go tool -modfile=scripts/gotestsum/go.mod gotestsum --format=standard-quiet --rerun-fails=1 --rerun-fails-max-failures=6 --rerun-fails-run-root-test --rerun-fails-abort-on-data-race
RACE := -race $(TAGS) -timeout 45m -vet=off

# What takes longest is started first: it mostly waits, for containers and for deadlines.
LONG := ./internal/noded ./internal/vmtest ./oci ./oci/image ./internal/ctld ./internal/store

# What is pure has no goroutines, by the rules of the root's tests, nor has the simulator, nor what makes the web page:
# the race detector would see nothing in it, and make it five times as slow, as it makes the
# store's random histories and faults: of these it sees some, and all are had without it. What
# importers allocate is counted there. And tests that kill daemons, damage their files, run
# hostile containers or read hostile job files look at what comes of it: with the detector each
# of their many programs takes a second to start, and what reads large files and long lists is slow. All without it run beside the others, compiled as the programs are.
KILLED := '^Test(Killed|DamagedRecords|Hostile(Images|Jobs|Files|Registry)|NoImageIsTheNodesFault|Damage$$|GoesOnWithDamage|ListsEnd)'
PURE   := ^gbatch($$|/(accounting|sched|internal/(control|job|sim|slurmsite|web/bundle))(/|$$))
RACED  = $(LONG) $$(go list ./... | grep -vE '$(PURE)|/internal/(e2e|chaos|lab)$$' | tr '\n' ' ')
PLAIN_TESTS = CGO_ENABLED=0 go test -vet=off -timeout 40m ./internal/store $$(go list ./... | grep -E '$(PURE)') && \
	CGO_ENABLED=0 go test -vet=off -timeout 40m ./internal/chaos && \
	CGO_ENABLED=0 go test -vet=off -timeout 10m ./internal/lab && \
	CGO_ENABLED=0 go test -vet=off -timeout 40m -run $(KILLED) ./internal/ctld ./internal/transfer && \
	go test $(TAGS) -vet=off -timeout 40m -run $(KILLED) ./internal/noded ./oci/image
UNIT = { $(PLAIN_TESTS); } & plain=$$!; ok=0; GBATCH_VMTEST_REQUIRED=1 $(TEST) --packages="$(RACED)" -- $(RACE) -skip $(KILLED) -p 3 || ok=$$?; wait $$plain && [ $$ok = 0 ]

# The end-to-end tests come after the others: they start whole clusters, of the programs that
# users have, and share themselves among processes, in each of which two run at once.
E2E = GBATCH_BIN=$(CURDIR)/bin GBATCH_E2E_REQUIRED=1 CGO_ENABLED=0 $(TEST) --packages=./internal/e2e -- -timeout 45m -vet=off -parallel 2

.NOTPARALLEL:
.PHONY: help deps toolchain build compile packages arm64 cross-compile test beside unit fuzz e2e drill upgrade crash powerloss chaos lab planted lint man completion demo pictures clients bench bench-node bench-slurm bench-steps bench-reuse bench-fleet runsc test-gpu gpu-bundle clean

help: ## this list
	@grep -hE '^[a-z0-9]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9]+):.*## (.*)/  make \1\t\2/' | expand -t 16

deps: ## install the Debian packages that are missing
	@scripts/deps

toolchain:
	@scripts/deps build

build: toolchain compile ## build all programs into bin/

# EMBED is a folder for the programs that gnoded carries, if not their places here.
BIN := bin
compile:
	@mkdir -p $(BIN)
	@scripts/build-web
	CGO_ENABLED=0 $(BUILD) -tags embedweb -o $(BIN)/ $(PLAIN)
	@scripts/build-shim $(EMBED)
	$(if $(NODE),CGO_ENABLED=1 $(BUILD) $(if $(EMBED),-overlay $(EMBED)/overlay.json) -tags 'seccomp embedshim' -o $(BIN)/ $(NODE))

# As a variable, so that make -n does not take the line for one of its own, which
# it runs: scripts/cross installs a compiler.
COMPILE = $(MAKE) --no-print-directory compile

packages: build ## make .deb and .rpm in build/packages/ (ARCH=arm64: for arm64)
	@$(MAKE) --no-print-directory man completion
	@$(if $(ARCH),scripts/cross $(ARCH) $(COMPILE) BIN=build/$(ARCH)/bin EMBED=build/$(ARCH)/embed)
	@scripts/packages

arm64: deps cross-compile ## build for arm64 and test that emulated (SHORT=--short: without unit tests)
	@scripts/cross arm64 scripts/emulated $(SHORT)

cross-compile:
	@scripts/cross arm64 $(COMPILE) BIN=build/arm64/bin EMBED=build/arm64/embed

test: build lint beside ## build, check and run all tests (as root)

# The fuzzers are, to the kernel, the work of an idle machine: they run beside the unit tests and a
# little longer (on a busy machine those that have had no turn by then would take longer than the tests;
# end-to-end tests took a quarter more beside them). What end-to-end tests use is made beside the unit
# tests, and is no work of an idle machine, as they would wait for it. Beside them is built, as such, what
# is for another architecture, and tested.
HURRY = mkdir -p build/fuzz && touch build/fuzz/hurry
BEFORE = scripts/providers && $(MAKE) --no-print-directory packages
OTHER = nice -n 19 $(MAKE) --no-print-directory cross-compile && scripts/cross arm64 scripts/emulated --short
beside: deps
	@FUZZTIME=30s chrt --idle 0 scripts/fuzz & fuzz=$$!; { $(BEFORE); } & before=$$!; other=; \
	ok=0; { { $(UNIT); } && { $(HURRY); wait $$before && { { $(OTHER); } & other=$$!; $(E2E); }; }; } || ok=$$?; \
	$(HURRY); for p in $$before $$other $$fuzz; do wait $$p || ok=1; done; exit $$ok

unit: deps ## run the unit tests
	$(UNIT)

fuzz: deps ## run each fuzzer for a minute (FUZZTIME=10s: for less)
	@scripts/fuzz

e2e: deps ## run the end-to-end tests alone (after make build)
	@scripts/providers
	$(E2E)

# What a run found is written down in docs/reliability.md.
MINUTES := 20
DRILL ?= TestFaultDrill
drill: deps ## do faults to a site at random (MINUTES=20 GBATCH_E2E_SEED=1)
	@scripts/build-drill build/drill
	GBATCH_BIN=$(CURDIR)/build/drill/bin GBATCH_E2E_REQUIRED=1 GBATCH_DRILL_MINUTES=$(MINUTES) CGO_ENABLED=0 go test -count=1 -v -timeout $$(( $(MINUTES) + 20 ))m -run $(DRILL) ./internal/e2e

# What a run found is written down in docs/reliability.md.
upgrade: deps compile ## exchange the programs of a site that is used for newer ones, and back (OLDER=COMMIT)
	@scripts/build-older '$(or $(OLDER),$(error name the commit or tag to upgrade from: make upgrade OLDER=COMMIT))' build/older
	GBATCH_BIN=$(CURDIR)/bin GBATCH_OLDER=$(CURDIR)/build/older/bin GBATCH_E2E_REQUIRED=1 CGO_ENABLED=0 go test -count=1 -v -timeout 30m -run '^TestUpgradeDrill$$' ./internal/e2e

# What a run found is written down in docs/reliability.md.
POINTS := 1000
crash: deps ## kill daemons as they make system calls (POINTS=1000 of each: all; after make build)
	GBATCH_BIN=$(CURDIR)/bin GBATCH_E2E_REQUIRED=1 GBATCH_CRASH_POINTS=$(POINTS) CGO_ENABLED=0 go test -count=1 -v -timeout 3h -run '^Test(Guests)?KilledAtCalls$$' ./internal/e2e

# What a run found is written down in docs/reliability.md.
CUTS := 40
powerloss: deps ## cut the power of a site at writes of its disk (CUTS=40 FROM=1 CONTROLLERS=1, or 3; after make build)
	GBATCH_VMTEST_REQUIRED=1 go test $(TAGS) -count=1 -v -timeout 3h -run '^TestPowerLoss$$' ./internal/vmtest -power.cuts=$(CUTS) -power.seed=$(FROM) -power.controllers=$(CONTROLLERS)

SEEDS := 100
HOURS := 1
FROM := 1
CONTROLLERS := 1
FAULTS_EVERY := 40s
SMALL := 4s
LIVES := 1
chaos: ## simulate a site with faults (SEEDS=100 HOURS=1 FROM=1 CONTROLLERS=1 NODES=4 FAULTS_EVERY=40s SMALL=4s LIVES=1)
	TMPDIR=/dev/shm CGO_ENABLED=0 go test -count=1 -v -timeout 24h -run '^TestChaos$$' ./internal/chaos -chaos.seeds=$(SEEDS) -chaos.hours=$(HOURS) -chaos.from=$(FROM) -chaos.controllers=$(CONTROLLERS) -chaos.nodes=$(or $(NODES),4) -chaos.every=$(FAULTS_EVERY) -chaos.small=$(SMALL) -chaos.lives=$(LIVES)

# What a run found is written down in docs/reliability.md. Its files are in memory: a disk would be waited for.
DAYS := 14
SEED := 1
lab: ## live through days of a lab with its commands (DAYS=14 SEED=1)
	TMPDIR=/dev/shm CGO_ENABLED=0 go test -count=1 -v -timeout 24h -run '^TestLab$$' ./internal/lab -lab.days=$(DAYS) -lab.seed=$(SEED)

planted: ## put bugs into the simulated site, and look whether each is found
	TMPDIR=/dev/shm CGO_ENABLED=0 go test -count=1 -v -timeout 2h -run '^TestPlantedBugs$$' ./internal/chaos -chaos.planted

lint: deps ## check format and go vet
	@bad=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go' | xargs -r ls -d 2>/dev/null)); \
	if [ -n "$$bad" ]; then echo "not formatted by gofmt:" $$bad >&2; exit 1; fi
	go vet -race $(TAGS) -cgocall=false $(RACED)
	CGO_ENABLED=0 go vet ./oci/sysfilter ./internal/store ./internal/e2e ./internal/chaos ./internal/lab $$(go list ./... | grep -E '$(PURE)')
	internal/web/node_modules/.bin/tsc -p internal/web

man: ## write man pages into build/man (after make build)
	@rm -rf build/man && mkdir -p build/man
	@for p in $(SUITE); do bin/$$p --man >build/man/$$p.1 || exit 1; done
	@for p in gctld gnoded; do bin/$$p --man >build/man/$$p.8 || exit 1; done
	@for p in gctld.yaml gnoded.yaml client.yaml gbatch-job; do bin/gadm help $$p --roff >build/man/$$p.5 || exit 1; done

completion: ## write completions for bash, zsh and fish into build/completion (after make build)
	@mkdir -p build/completion
	@for s in bash zsh fish; do bin/gadm completion $$s >build/completion/gbatch.$$s || exit 1; done

demo: build ## run a job from start to end on this machine (as root)
	@scripts/demo/run

pictures: deps ## make the pictures of the web page again, in docs/pictures (after make build, as root)
	GBATCH_PICTURES=$(CURDIR)/docs/pictures GBATCH_BIN=$(CURDIR)/bin GBATCH_E2E_REQUIRED=1 CGO_ENABLED=0 go test -count=1 -run '^TestPictures$$' ./internal/e2e

clients: ## make clients out of the description of the API, try them, and lint it (needs npm, java and python3)
	scripts/generators build/generators
	GBATCH_GENERATORS=$(CURDIR)/build/generators go test -count=1 -v -run 'Generated|Linted' ./internal/ctld

bench: deps ## run the benchmarks
	go test $(TAGS) -run '^$$' -bench . -benchmem ./...

bench-node: deps ## jobs per second of one node against libcontainer and runc (as root)
	@scripts/bench-node

bench-slurm: deps ## the same work by gbatch and by Debian's Slurm, in turns (as root; JOBS=1000 a line)
	@JOBS=$(JOBS) scripts/bench-slurm

bench-steps: deps ## how soon tasks of srun start, by gbatch and by Debian's Slurm, in turns (as root)
	@scripts/bench-steps

TASKS := 1000
bench-reuse: compile ## what a task costs that shares a container, in processor time (as root; TASKS=1000)
	@GBATCH_BENCH_REUSE=$(TASKS) GBATCH_E2E_REQUIRED=1 GBATCH_BIN=$(abspath $(BIN)) CGO_ENABLED=0 go test -count=1 -timeout 90m -v -run '^TestReuseCost$$' ./internal/e2e

bench-tasks: compile ## what a short job costs that has a container of its own, and how soon the next one begins (as root; TASKS=1000)
	@GBATCH_BENCH_TASKS=$(TASKS) GBATCH_E2E_REQUIRED=1 GBATCH_BIN=$(abspath $(BIN)) CGO_ENABLED=0 go test -count=1 -timeout 90m -v -run '^TestTaskCost$$' ./internal/e2e

RATE := 12
bench-day: MINUTES := 60
bench-day: compile ## jobs in containers at the rate of a million in a day, and what the daemons are like meanwhile (as root; MINUTES=60 RATE=12)
	@GBATCH_BENCH_DAY=$(MINUTES) GBATCH_BENCH_RATE=$(RATE) GBATCH_E2E_REQUIRED=1 GBATCH_BIN=$(abspath $(BIN)) CGO_ENABLED=0 go test -count=1 -timeout 25h -v -run '^TestDay$$' ./internal/e2e

bench-fleet: deps ## the controller beside many nodes without containers (NODES=20 GPUS=8 JOBS=200 RUN_MS=100)
	@NODES=$(NODES) GPUS=$(GPUS) JOBS=$(JOBS) RUN_MS=$(RUN_MS) scripts/bench-fleet

runsc: ## gVisor's runsc from its Go module, for tests: PATH=$$PWD/build/runsc:$$PATH go test -run 'Foreign|Runtime' ./oci ./internal/noded
	@mkdir -p build/runsc
	CGO_ENABLED=0 go build -modfile=scripts/runsc/go.mod -o build/runsc/runsc gvisor.dev/gvisor/runsc

test-gpu: deps ## run containers on this machine's GPU (as root); skipped loudly without one
	@scripts/gpu/test

gpu-bundle: deps ## all that test-gpu needs in one folder, for a GPU machine without Go or network
	@scripts/gpu/bundle build/gpu-bundle

clean: ## remove what was built
	rm -rf bin build oci/shim.bin internal/web/dist internal/web/node_modules
