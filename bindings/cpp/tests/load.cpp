// Many runs with host tools at the same time, in bounded memory; two dispatchers that serve two queues.
//
//   load [RUNS [ROUNDS]]
#include "check.hpp"

#include <atomic>
#include <fstream>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define UNDER_A_CHECKER 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define UNDER_A_CHECKER 1
#endif
#ifndef UNDER_A_CHECKER
#define UNDER_A_CHECKER 0
#endif

namespace {

using namespace std::chrono_literals;

// Resident memory in KiB; 0 where the system does not tell.
long resident() {
    std::ifstream file("/proc/self/statm");
    long total = 0, pages = 0;
    file >> total >> pages;
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

// Starts so many runs, holds all their calls open at once, answers them from another OS thread, and forgets the threads.
// Gives the resident memory at the height of it.
long round_of(const objects& o, int runs, const std::string& prefix) {
    std::vector<fawn::pending_call> open;
    open.reserve(static_cast<std::size_t>(runs));
    fawn::dispatcher host(o.runtime);
    host.tool("look", [&open](fawn::pending_call& call) {
        open.push_back(std::move(call));
        return fawn::answer::later();
    });
    std::vector<fawn::run> started;
    std::vector<fawn::thread> threads;
    for (int n = 0; n < runs; ++n) {
        threads.push_back(MUST(fawn::thread::try_open(o.runtime, R"({"thread_id":")" + prefix + std::to_string(n) + "\"}")));
        started.push_back(MUST(fawn::run::try_start(o.assembly, threads.back(), o.queue, hello)));
    }
    std::thread answers;
    long height = 0;
    int ended = 0;
    while (ended < runs) {
        const fawn::batch taken = MUST(o.queue.try_take(60s));
        CHECK(taken);
        for (const fawn::event& ev : taken) {
            MUST(host.try_dispatch(ev));
            if (ev.type() != "run_end") continue;
            ++ended;
            CHECK(ev.text("status") == "success");
        }
        if (!answers.joinable() && open.size() == static_cast<std::size_t>(runs)) {
            height = resident();
            answers = std::thread([calls = std::move(open)]() mutable {
                for (auto& call : calls) CHECK(MUST(call.try_finish("blue, says " + call.arg("at"))) == fawn::status::ok);
            });
        }
    }
    answers.join();
    for (const auto& run : started) CHECK(contains(MUST(run.try_wait()).view(), R"("steps":3)"));
    for (auto& thread : threads) CHECK(contains(MUST(thread.try_state(R"({"channels":["messages"]})")), "blue, says the"));
    threads.clear();
    for (int n = 0; n < runs; ++n) {
        MUST(o.runtime.try_submit(R"({"op":"delete_thread","thread_id":")" + prefix + std::to_string(n) + "\"}"));
    }
    return height;
}

void many_at_once(int runs, int rounds) {
    for (const auto config : configs) {
        const objects o(config, looker);
        const long before = resident();
        long first_height = 0, last_height = 0, warm = 0;
        for (int round = 0; round < rounds; ++round) {
            last_height = round_of(o, runs, "t" + std::to_string(round) + "-");
            if (round == 0) {
                first_height = last_height;
                warm = resident();
            }
        }
        const long grown = resident() - warm;
        // A checker has memory of its own, and few runs say little.
        if (UNDER_A_CHECKER || runs < 1000) continue;
        std::printf(R"({"case":"concurrent_runs","config":%s,"runs":%d,"rounds":%d,"rss_before_kib":%ld,"rss_all_open_kib":%ld,"grown_after_first_round_kib":%ld})" "\n",
                    std::string(config).c_str(), runs, rounds, before, first_height, grown);
        CHECK(first_height - before < 64L * runs);
        CHECK(last_height - first_height < 8 * 1024 && grown < 8 * 1024);
    }
}

// Two queues, two dispatchers with the same tool, two OS threads: each answers the calls of its own queue.
void two_dispatchers(std::string_view config, int runs) {
    const objects o(config, looker);
    const auto other = MUST(fawn::queue::try_create(o.runtime));
    std::atomic<int> right{0};
    const auto serve = [&](const fawn::queue& queue, const char* name) {
        fawn::dispatcher host(o.runtime);
        int calls = 0;
        host.tool("look", [&calls, name](fawn::pending_call&) {
            ++calls;
            return std::string(name) + std::to_string(calls);
        });
        std::vector<fawn::thread> threads;
        std::vector<fawn::run> started;
        for (int n = 0; n < runs; ++n) {
            threads.push_back(MUST(fawn::thread::try_open(o.runtime)));
            started.push_back(MUST(fawn::run::try_start(o.assembly, threads.back(), queue, hello)));
        }
        int ended = 0;
        for (const fawn::event& ev : queue.try_events()) {
            MUST(host.try_dispatch(ev));
            if (ev.type() == "run_end" && ++ended == runs) break;
        }
        CHECK(calls == runs);
        for (const auto& thread : threads) right += contains(MUST(thread.try_state("{}")), std::string("\"content\":\"") + name);
    };
    std::thread second([&] { serve(other, "second "); });
    serve(o.queue, "first ");
    second.join();
    CHECK(right == 2 * runs);
}

} // namespace

int main(int argc, char** argv) {
    const int runs = argc > 1 ? std::atoi(argv[1]) : 1000, rounds = argc > 2 ? std::atoi(argv[2]) : 4;
    many_at_once(runs, rounds);
    for (const auto config : configs) two_dispatchers(config, runs / 10 + 1);
    check_nothing_left();
    return 0;
}
