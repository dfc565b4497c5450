# SPDX-License-Identifier: BSD-2-Clause
#
# Shortcuts for common tasks; Meson does the build (meson.build). Each target works on a machine with
# only git and make installed (Debian 12): it installs what it needs, builds, and runs.
#
#   make demo      two processes on one host, then on two, every byte verified, tables of latencies
#   make check     the whole test suite
#   make check-rdma  the suite on software RDMA devices, in a virtual machine
#   make bench     compares with UCX, libfabric and the machine's limits; a soak test of connections
#   make bench-rdma  compares with perftest on software RDMA devices, in a virtual machine
#   make sweep     every allocation and system call of a scenario fails once; a few minutes
#   make stops     kills and stops a peer at every step of a scenario; some ten minutes
#   make models    searches all executions of models of the lock-free protocols (models/)
#   make docs      the manual pages as HTML, with an index
#   make coverage  which lines of src/core and src/soft the suite executes (HTML)
#   make install   install under PREFIX (default /usr/local; DESTDIR is honoured)
#   make uninstall  removes what the last `make install` has installed
BUILD   ?= build
PREFIX  ?= /usr/local
export BUILD PREFIX

.PHONY: all demo check check-rdma bench bench-rdma install uninstall format sweep stops models \
	docs coverage clean
all:
	@scripts/install-deps build
	@scripts/build $(BUILD)-release --buildtype=release -Db_lto=true --prefix=$(PREFIX) -Dtests=false

demo:
	@scripts/install-deps build
	@NINJA_QUIET=1 scripts/build $(BUILD)-release --buildtype=release -Db_lto=true -Dtests=false
	@scripts/demo $(BUILD)-release

check:
	@scripts/install-deps check
	@scripts/build $(BUILD)
	@scripts/check $(BUILD)

check-rdma:
	@scripts/install-deps rdma
	@scripts/build $(BUILD)
	@scripts/check-rdma $(BUILD)

bench:
	@scripts/install-deps bench
	@NINJA_QUIET=1 scripts/build $(BUILD)-release --buildtype=release -Db_lto=true -Dtests=false
	@scripts/bench $(BUILD)-release

bench-rdma:
	@scripts/install-deps bench
	@NINJA_QUIET=1 scripts/build $(BUILD)-release --buildtype=release -Db_lto=true -Dtests=false
	@bench/compare-rdma $(BUILD)-release

# no install-deps: an installation does not change the packages of the system
install:
	@scripts/build $(BUILD)-release --buildtype=release -Db_lto=true --prefix=$(PREFIX) -Dtests=false
	meson install -C $(BUILD)-release --no-rebuild
	@if [ -z "$(DESTDIR)" ] && [ "$$(id -u)" = 0 ]; then ldconfig; fi
	@if [ -z "$(DESTDIR)" ]; then scripts/install-hints $(PREFIX); fi

uninstall:
	@ninja -C $(BUILD)-release uninstall

format:
	git ls-files -z '*.c' '*.h' | xargs -0 clang-format -i

sweep:
	@scripts/install-deps check
	@scripts/build $(BUILD)
	@tests/clean-env env LD_LIBRARY_PATH=$(BUILD)/src/registry:$(BUILD)/src/soft $(BUILD)/tests/sweep/sweep

stops:
	@scripts/install-deps check
	@scripts/build $(BUILD)
	@tests/clean-env env LD_LIBRARY_PATH=$(BUILD)/src/registry:$(BUILD)/src/soft $(BUILD)/tests/stops/stops

models:
	@scripts/install-deps models
	@models/run

docs:
	@scripts/install-deps docs
	@scripts/build $(BUILD)-release --buildtype=release -Db_lto=true -Dtests=false
	@ninja -C $(BUILD)-release --quiet man-html

coverage:
	@scripts/install-deps ci
	@scripts/coverage $(BUILD)-coverage

clean:
	rm -rf $(BUILD) $(BUILD)-release $(BUILD)-coverage build-mutants
