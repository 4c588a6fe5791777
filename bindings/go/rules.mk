# Go: demo, tests and benchmarks of bindings/go. Included by the Makefile.
GO ?= go

.PHONY: need-go demo-go test-go bench-go
need-go:
	@command -v $(GO) >/dev/null || { echo "missing: go (1.24 or newer); see go.dev/dl, or on Debian: apt-get install golang"; exit 1; }
	@command -v $(CC) >/dev/null || { echo "missing: a C compiler ($(CC)), which cgo needs; on Debian: apt-get install gcc"; exit 1; }

# The folder with the library: FAWN_LIB_DIR if that is set.
GO_LIB_DEBUG = $(abspath $(or $(FAWN_LIB_DIR),$(DEBUG_LIB)))
GO_LIB_RELEASE = $(abspath $(or $(FAWN_LIB_DIR),$(RELEASE_LIB)))
go-env = CGO_ENABLED=1 FAWN_LIB_DIR=$(1) CGO_CFLAGS="-I$(abspath $(or $(FAWN_INCLUDE_DIR),include)) -O2 -g" \
  CGO_LDFLAGS="-L$(1) -Wl,-rpath,$(1)"

demo-go: need-go $(if $(FAWN_LIB_DIR),,$(DEBUG_LIB)/libfawn.so.0)
	@mkdir -p $(BUILD)
	@cd examples/go && $(call go-env,$(GO_LIB_DEBUG)) $(GO) build -o $(abspath $(BUILD))/quickstart-go ./quickstart
	@rm -rf $(BUILD)/demo-go && mkdir -p $(BUILD)/demo-go
	@echo; echo "--- first start: the agent calls getWeather(), a function of the Go program"
	@$(BUILD)/quickstart-go $(BUILD)/demo-go "What is the weather in Paris?"
	@echo; echo "--- second start: a new process, the same thread"
	@$(BUILD)/quickstart-go $(BUILD)/demo-go "And in Oslo?"
	@echo; echo "examples/go/quickstart/main.go is that program."

test-go: need-go $(if $(FAWN_LIB_DIR),,$(DEBUG_LIB)/libfawn.so.0)
	@test -z "$$(gofmt -l bindings/go examples/go)" || { echo "gofmt wants changes in:"; gofmt -l bindings/go examples/go; exit 1; }
	cd bindings/go && $(call go-env,$(GO_LIB_DEBUG)) $(GO) vet ./... && $(call go-env,$(GO_LIB_DEBUG)) $(GO) test -count=1 ./...
	cd examples/go && $(call go-env,$(GO_LIB_DEBUG)) $(GO) vet ./...
	cd bindings/go && $(call go-env,$(GO_LIB_DEBUG)) nice $(GO) test -count=1 -race .

bench-go: need-go $(if $(FAWN_LIB_DIR),,lib)
	@cd bindings/go && $(call go-env,$(GO_LIB_RELEASE)) $(GO) run ./cmd/bench
