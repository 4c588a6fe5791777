# The Node.js binding; included by the Makefile.
.PHONY: need-node demo-node test-node bench-node

NODE ?= node
NODE_BINDING := bindings/node
# Where the examples find the package.
NODE_LINK := examples/node/node_modules/fawn

need-node: need-build
	@command -v $(NODE) >/dev/null || { echo "missing: Node.js 20 or newer (node); on Debian: apt-get install nodejs"; exit 1; }
	@$(NODE) -e 'process.exit(process.versions.node.split(".")[0] < 20 ? 1 : 0)' || { echo "too old: $(NODE) is $$($(NODE) --version), fawn needs Node.js 20 or newer"; exit 1; }

demo-node: need-node $(DEBUG_LIB)/libfawn.so.0
	@FAWN_LIB_DIR="$${FAWN_LIB_DIR:-$(DEBUG_LIB)}" $(NODE) $(NODE_BINDING)/build.mjs
	@mkdir -p $(dir $(NODE_LINK)) && ln -sfn ../../../$(NODE_BINDING) $(NODE_LINK)
	@rm -rf $(BUILD)/demo-node && mkdir -p $(BUILD)/demo-node
	@echo; echo "--- first start: the agent calls getWeather(), a function of the JavaScript program"
	@$(NODE) examples/node/quickstart.mjs $(BUILD)/demo-node "What is the weather in Paris?"
	@echo; echo "--- second start: a new process, the same thread"
	@$(NODE) examples/node/quickstart.mjs $(BUILD)/demo-node "And in Oslo?"
	@echo; echo "examples/node/quickstart.mjs is that program"

# FAWN_EXITS=40 FAWN_SOAK=10000 make test-node is the long form.
test-node: need-node $(DEBUG_LIB)/libfawn.so.0
	@FAWN_LIB_DIR="$${FAWN_LIB_DIR:-$(DEBUG_LIB)}" $(NODE) $(NODE_BINDING)/build.mjs
	@$(NODE) $(NODE_BINDING)/test/setup.mjs
	$(NODE) --test $(NODE_BINDING)/test/*.test.mjs

bench-node: need-node lib
	@FAWN_LIB_DIR="$${FAWN_LIB_DIR:-$(RELEASE_LIB)}" $(NODE) $(NODE_BINDING)/build.mjs
	@$(NODE) $(NODE_BINDING)/bench/bench.mjs
