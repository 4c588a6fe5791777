// What reading a state and taking events cost through fawn.hpp. Prints one JSON object a line; the same loads in C are in
// benches/peers/bindings/bench.c, and each figure is the best of several rounds.
//
// state_small:        thread::state of a thread with four short messages, as a buffer that C++ owns.
// state_small_string: the same, copied into a std::string.
// events:             1,000 runs, 64 at a time, driven by one worker of the library, while this OS thread takes all there is,
//                     reads the type of each event and counts run_end. A run has 107 events of some 270 bytes, most of
//                     them deltas that do not merge.
// events_one_by_one:  the same by way of `for (const fawn::event& ev : queue.events())`, which takes one at a time.
#include <fawn.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

namespace {

constexpr int rounds = 7, runs = 1000, window = 64, calls = 100;
// As many reads as in C, in shorter rounds, since a round that the machine interrupts does not count.
constexpr int reads = 1000, read_rounds = 140;

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The best time of `work`, in nanoseconds.
template <class Work>
double best_ns(Work work) {
    double best = 1e9;
    for (int round = 0; round < read_rounds; ++round) {
        const double begin = now();
        for (int n = 0; n < reads; ++n) work();
        best = std::min(best, (now() - begin) / reads);
    }
    return best * 1e9;
}

std::size_t seen = 0; // so that nothing is optimised away

void state_small() {
    const auto runtime = fawn::runtime::create(R"({"workers":0})");
    const auto thread = fawn::thread::open(runtime);
    thread.update(R"({"values":{"messages":[{"role":"user","content":"What is the weather in Paris?"},)"
                  R"({"role":"ai","content":"It is clear, with 18 degrees."},)"
                  R"({"role":"user","content":"And in Oslo?"},{"role":"ai","content":"The same."}]}})");
    const double owned = best_ns([&] {
        const fawn::buffer state = thread.state();
        seen += state.size();
    });
    std::printf(R"({"lang":"cpp","case":"state_small","ns":%.1f})" "\n", owned);
    const double copied = best_ns([&] {
        const std::string state = thread.state().str();
        seen += state.size();
    });
    std::printf(R"({"lang":"cpp","case":"state_small_string","ns":%.1f})" "\n", copied);
}

struct load {
    fawn::runtime runtime = fawn::runtime::create(R"({"workers":1})");
    fawn::assembly agent = fawn::assembly::create(runtime, model());
    fawn::queue queue = fawn::queue::create(runtime);
    int started = 0, ended = 0, taken = 0;

    // A reply with so many tool calls whose arguments are cut off: each is a delta of its own, and none is carried out.
    static std::string model() {
        std::string json = R"({"model":{"provider":"scripted","replies":[{"content":"Done.","invalid_tool_calls":[)";
        for (int n = 0; n < calls; ++n) json += std::string(n > 0 ? "," : "") + R"({"name":"get_weather","args":"{"})";
        return json + "]}]}}";
    }

    // Keeps so many runs going until all were started.
    void start_runs() {
        for (; started < runs && started - ended < window; ++started) {
            const auto thread = fawn::thread::open(runtime);
            (void)fawn::run::start(agent, thread, queue, R"({"input":{"messages":[{"role":"user","content":"Weather?"}]}})");
        }
    }
    void see(const fawn::event& ev) {
        ++taken;
        if (ev.type() == "run_end") ++ended;
    }
};

template <class Take>
void events(const char* name, Take take) {
    double best = 0;
    load work;
    for (int round = 0; round < rounds; ++round) {
        work.started = work.ended = work.taken = 0;
        const double begin = now();
        take(work);
        best = std::max(best, work.taken / (now() - begin));
    }
    std::printf(R"({"lang":"cpp","case":"%s","per_s":%.0f})" "\n", name, best);
}

} // namespace

int main() {
    state_small();
    events("events", [](load& work) {
        while (work.ended < runs) {
            work.start_runs();
            for (const fawn::event& ev : work.queue.take()) work.see(ev);
        }
    });
    events("events_one_by_one", [](load& work) {
        work.start_runs();
        for (const fawn::event& ev : work.queue.events()) {
            work.see(ev);
            if (work.ended == runs) break;
            if (work.started - work.ended <= window / 2) work.start_runs();
        }
    });
    return seen > 0 ? 0 : 1;
}
