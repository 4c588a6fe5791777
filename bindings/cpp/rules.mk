# make demo-cpp, test-cpp, bench-cpp: the C++ binding. FAWN_LIB_DIR is the folder of the library; without it the release build
# is taken, or else the debug build, which is made if there is none.
.PHONY: demo-cpp test-cpp bench-cpp cpp-tools

CPP_BUILD := $(BUILD)/cpp
CPP_LIB = $(or $(FAWN_LIB_DIR),$(if $(wildcard target/release/libfawn.so),target/release,$(DEBUG_LIB)))
CPP_INCLUDE = $(or $(FAWN_INCLUDE_DIR),include)
CPP_COMPILE = $(CXX) -std=c++17 -Wall -Wextra -Wpedantic -pthread -Ibindings/cpp -I$(CPP_INCLUDE)
CPP_LINK = -L$(CPP_LIB) -lfawn -Wl,-rpath,$(abspath $(CPP_LIB))

cpp-tools:
	@command -v $(CXX) >/dev/null || { echo "missing: a compiler for C++17 ($(CXX)); on Debian: apt-get install g++"; exit 1; }
	@[ -e $(CPP_LIB)/libfawn.so ] || $(CARGO) build
	@[ -e $(CPP_LIB)/libfawn.so.0 ] || ln -sf libfawn.so $(CPP_LIB)/libfawn.so.0
	@mkdir -p $(CPP_BUILD)

demo-cpp: cpp-tools
	$(CPP_COMPILE) -O1 examples/cpp/quickstart.cpp -o $(CPP_BUILD)/quickstart $(CPP_LINK)
	@rm -rf $(CPP_BUILD)/demo && mkdir -p $(CPP_BUILD)/demo
	@echo; echo "--- first start: the agent calls get_weather(), a function of the C++ program"
	@$(CPP_BUILD)/quickstart $(CPP_BUILD)/demo "What is the weather in Paris?"
	@echo; echo "--- second start: a new process, the same thread"
	@$(CPP_BUILD)/quickstart $(CPP_BUILD)/demo "And in Oslo?"

test-cpp: cpp-tools
	FAWN_LIB_DIR=$(CPP_LIB) FAWN_INCLUDE_DIR=$(abspath $(CPP_INCLUDE)) FAWN_CPP_BUILD=$(abspath $(CPP_BUILD)) CXX=$(CXX) \
	  sh bindings/cpp/tests/run.sh

bench-cpp: cpp-tools
	$(CPP_COMPILE) -O2 bindings/cpp/bench/bench.cpp -o $(CPP_BUILD)/bench $(CPP_LINK)
	$(CPP_BUILD)/bench
