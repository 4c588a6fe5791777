# fawn: build, demo and tests. `make help` lists the targets.
CARGO ?= cargo
CC ?= cc
BUILD := build
DEBUG_LIB := target/debug
RELEASE_LIB := target/release
CFLAGS_C := -std=c99 -D_POSIX_C_SOURCE=200809L -O1 -Wall -Wextra -Wpedantic -Iinclude

# Languages with a binding, each with the tool that it cannot do without.
BINDINGS := cpp:$(CXX) go:go node:node

.PHONY: help demo lib test test-bindings demo-bindings tools test-all test-real yardstick asan tsan soak bench fmt lint docs ci clean install

help:
	@echo "make demo      build, and run the C quickstart twice: an agent calls a C function, on a durable thread"
	@echo "make demo-cpp, make demo-go, make demo-node: the same from C++, Go and Node"
	@echo "make lib       release build: target/release/libfawn.so, .a"
	@echo "make test      set up and run all tests; test-cpp, test-go and test-node are those of one binding"
	@echo "make test-real runs with a real model (fetches about 600 MB)"
	@echo "make yardstick the vendors' SDKs and fawn against the same faults"
	@echo "make test-all  also sanitizers, a soak and long random runs"
	@echo "make asan, make tsan, make soak: address sanitizer, thread sanitizer (installs clang on Debian), 50000 runs in one process"
	@echo "make bench     benchmarks, and peers in the same go"
	@echo "make install   PREFIX=/usr/local: library, headers for C and C++, pkg-config file"
	@echo "make ci        what CI runs"

# What a build needs, told plainly.
.PHONY: need-build
need-build:
	@command -v $(CARGO) >/dev/null || { echo "missing: cargo (Rust 1.95 or newer, from rustup)"; exit 1; }
	@command -v $(CC) >/dev/null || { echo "missing: a C compiler ($(CC)); on Debian: apt-get install gcc"; exit 1; }

$(DEBUG_LIB)/libfawn.so.0: need-build
	$(CARGO) build
	@ln -sf libfawn.so $@

lib: need-build
	$(CARGO) build --release
	@ln -sf libfawn.so $(RELEASE_LIB)/libfawn.so.0
	@ls -l $(RELEASE_LIB)/libfawn.so $(RELEASE_LIB)/libfawn.a

$(BUILD)/%: examples/c/%.c include/fawn.h $(DEBUG_LIB)/libfawn.so.0
	@mkdir -p $(BUILD)
	$(CC) $(CFLAGS_C) $< -o $@ -L$(DEBUG_LIB) -lfawn -Wl,-rpath,$(abspath $(DEBUG_LIB))

demo: $(BUILD)/quickstart $(BUILD)/delegate $(BUILD)/reducers $(BUILD)/two_runs
	@rm -rf $(BUILD)/demo && mkdir -p $(BUILD)/demo
	@echo; echo "--- first start: the agent calls get_weather(), a function of the C program"
	@$(BUILD)/quickstart $(BUILD)/demo "What is the weather in Paris?"
	@echo; echo "--- second start: a new process, the same thread"
	@$(BUILD)/quickstart $(BUILD)/demo "And in Oslo?"
	@echo; echo "--- another agent: three subagents at once, a line for each step"
	@$(BUILD)/delegate
	@echo; echo "examples/c/quickstart.c is that program; $(BUILD)/reducers and $(BUILD)/two_runs are built too."

# Servers and packages that the tests need; what cannot be had is said, and its tests are skipped.
tools:
	@sh tests/aimock/setup.sh || echo "skipping the tests against aimock"
	@sh tests/llmock/setup.sh >/dev/null || echo "skipping the tests against llmock"
	@sh tests/differential/setup.sh >/dev/null || echo "skipping the comparison with LangGraph"

# The sanitizer that needs no special build runs the C programs when it is installed.
VALGRIND := $(shell command -v valgrind >/dev/null && echo 1 || echo 0)

test: need-build tools
	@[ $(VALGRIND) = 1 ] || echo "valgrind is not installed: the C programs run without it"
	FAWN_VALGRIND=$(VALGRIND) $(CARGO) test --features test-panics
	@if python=$$(sh tests/differential/setup.sh 2>/dev/null); then \
	  $$python tests/differential/run.py $(DEBUG_LIB)/deps/libfawn.so --cases $(or $(CASES),20000); \
	fi
	@$(MAKE) --no-print-directory test-bindings

# Each binding's own tests and demo, where its tool is there; each has rules of its own in bindings/LANGUAGE/rules.mk.
test-bindings demo-bindings: $(DEBUG_LIB)/libfawn.so.0
	@for pair in $(BINDINGS); do \
	  language=$${pair%%:*}; tool=$${pair#*:}; \
	  [ -f bindings/$$language/rules.mk ] || { echo "there is no bindings/$$language/rules.mk"; continue; }; \
	  if command -v $$tool >/dev/null; then \
	    $(MAKE) --no-print-directory $(@:bindings=)$$language FAWN_LIB_DIR=$(abspath $(DEBUG_LIB)) || exit 1; \
	  else \
	    echo "$$tool is not installed: skipping $(@:bindings=)$$language"; \
	  fi; \
	done

# The vendors' own SDKs and fawn against the same faults; rewrites the tables in tests/yardstick/README.md.
yardstick: need-build
	$(CARGO) build
	@python=$$(sh tests/yardstick/setup.sh) && $$python tests/yardstick/run.py $(DEBUG_LIB)/libfawn.so tests/yardstick/README.md

# Whole runs with a real model behind llama.cpp's server: about 35 MB of packages and 590 MB of weights the first time.
test-real: need-build
	@folder=$$(sh tests/real/setup.sh) || exit 0; \
	  FAWN_REAL=$$folder $(CARGO) test --test real -- --nocapture --test-threads=1

test-all: test asan tsan soak
	FAWN_CANCELS=$(or $(CANCELS),10000) $(CARGO) test --test harness cancelled_at_random
	FAWN_CUTS=$(or $(CUTS),10000) $(CARGO) test --test models no_cut
	FAWN_HISTORIES=$(or $(HISTORIES),2000000) $(CARGO) test --release --test parity generated

# Address sanitizer on both sides of the C boundary, leaks included; works on the stable toolchain and with gcc.
TARGET := $(shell rustc -vV 2>/dev/null | sed -n 's/^host: //p')
asan: need-build
	RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address FAWN_CFLAGS=-fsanitize=address \
	  $(CARGO) test --target $(TARGET) --target-dir target/asan --features test-panics --test abi

# Thread sanitizer on both sides. std is built with it too: half of a lock or a channel is code of std, and where the
# sanitizer does not see that half it reports races that are none. So there is nothing to suppress. The forking program is
# left out, since the sanitizer does not vouch for what a child of a process with several OS threads does.
# The path is for a clang that would look for a symbolizer of its own version only.
SYMBOLIZER := $(shell command -v llvm-symbolizer)
tsan: need-build
	@clang=$$(sh tests/abi/tsan_setup.sh) && set -x && \
	TSAN_OPTIONS="$$TSAN_OPTIONS $(SYMBOLIZER:%=external_symbolizer_path=%)" \
	RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=thread FAWN_CFLAGS=-fsanitize=thread FAWN_CC=$$clang \
	  $(CARGO) test -Zbuild-std --target $(TARGET) --target-dir target/tsan --features test-panics --test abi -- --skip fork

# Memory, open files and OS threads of one process stay where they are over so many runs.
soak: need-build
	FAWN_SOAK=$(or $(RUNS),50000) $(CARGO) test --release --test abi -- --exact soak

bench: lib
	$(CARGO) bench --bench fold --bench run --bench store --bench sse --bench assemble --bench chain --bench delegation
	sh benches/peers/fold.sh
	FAWN_RUN_BENCH="$$(ls -t target/release/deps/run-* | grep -v '\.d$$' | head -n 1)" sh benches/peers/run.sh
	FAWN_ASSEMBLE_BENCH="$$(ls -t target/release/deps/assemble-* | grep -v '\.d$$' | head -n 1)" sh benches/peers/assemble.sh
	FAWN_CHAIN_BENCH="$$(ls -t target/release/deps/chain-* | grep -v '\.d$$' | head -n 1)" sh benches/peers/chain.sh
	sh benches/peers/stream.sh
	sh benches/peers/bindings.sh

PREFIX ?= /usr/local
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
install: lib
	install -d $(DESTDIR)$(PREFIX)/include $(DESTDIR)$(PREFIX)/lib/pkgconfig
	install -m 644 include/fawn.h bindings/cpp/fawn.hpp $(DESTDIR)$(PREFIX)/include/
	install -d $(DESTDIR)$(PREFIX)/share/fawn/schema
	install -m 644 include/schema/*.schema.json $(DESTDIR)$(PREFIX)/share/fawn/schema/
	install -m 644 $(RELEASE_LIB)/libfawn.a $(DESTDIR)$(PREFIX)/lib/
	install -m 755 $(RELEASE_LIB)/libfawn.so $(DESTDIR)$(PREFIX)/lib/libfawn.so.$(VERSION)
	ln -sf libfawn.so.$(VERSION) $(DESTDIR)$(PREFIX)/lib/libfawn.so.0
	ln -sf libfawn.so.0 $(DESTDIR)$(PREFIX)/lib/libfawn.so
	printf 'prefix=%s\nlibdir=$${prefix}/lib\nincludedir=$${prefix}/include\n\nName: fawn\nDescription: An agent harness that you link\nVersion: %s\nLibs: -L$${libdir} -lfawn\nLibs.private: -lpthread -lm -ldl\nCflags: -I$${includedir}\n' \
	  "$(PREFIX)" "$(VERSION)" > $(DESTDIR)$(PREFIX)/lib/pkgconfig/fawn.pc

fmt:
	$(CARGO) fmt

lint:
	$(CARGO) fmt --check
	$(CARGO) clippy --all-targets --features test-panics -- -D warnings

docs:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --no-deps --document-private-items

ci:
	bash .ci/run

clean:
	rm -rf $(BUILD) target

-include $(wildcard bindings/*/rules.mk)
