// Queues: batches and ranges of events, how they end, and the function that is called when there is something to take.
#include "check.hpp"

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;

void batches(std::string_view config) {
    const objects o(config);
    CHECK(MUST(o.queue.try_take(0s)).status() == fawn::status::timeout);
    const auto run = o.start();
    CHECK(MUST(run.try_wait()));
    const fawn::batch first = MUST(o.queue.try_take(0s, 1));
    CHECK(first && first.status() == fawn::status::ok);
    int count = 0;
    for (const fawn::event& ev : first) count += ev.type() == "run_start" && ev.seq() == 1;
    CHECK(count == 1);
    std::uint64_t seq = 1;
    std::string last, thread_id;
    while (last != "run_end") { // which comes a moment after the result is there
        fawn::batch taken = MUST(o.queue.try_take());
        const fawn::batch rest = std::move(taken);
        CHECK(rest.begin() != rest.end() && rest.begin()->seq() == seq + 1); // going over it does not use it up
        for (const fawn::event& ev : rest) {
            CHECK(ev.seq() == seq + 1 && ev.is_of(ev.run_id()) && ev.raw().front() == '{' && ev.raw().back() == '}');
            CHECK(ev.data().front() == '{' && contains(rest.raw(), ev.raw()) && ev.at().size() == 27);
            seq = ev.seq();
            last = ev.type();
            thread_id = ev.thread_id();
        }
    }
    CHECK(thread_id.size() == 36);
    const fawn::batch none = MUST(o.queue.try_take(0s));
    CHECK(!none && none.status() == fawn::status::timeout && none.begin() == none.end());
}

// A loop that is left takes nothing with it: whoever comes next has the rest.
void ranges_take_what_they_show(std::string_view config) {
    const objects o(config);
    const auto run = o.start();
    CHECK(MUST(run.try_wait()));
    std::uint64_t seq = 0;
    for (const fawn::event& ev : o.queue.try_events()) {
        seq = ev.seq();
        break;
    }
    CHECK(seq == 1);
    auto range = o.queue.try_events(200ms, 3); // three at a time, of which the first two are looked at before a break
    int shown = 0;
    for (const fawn::event& ev : range) {
        CHECK(ev.seq() == ++seq);
        if (++shown == 2) break;
    }
    CHECK(range.status() == fawn::status::ok);
    auto later = std::move(range);
    std::string last;
    for (const fawn::event& ev : later) {
        CHECK(ev.seq() == ++seq);
        last = ev.type();
    }
    CHECK(last == "run_end" && later.status() == fawn::status::timeout && !later.error());
}

void one_run_after_the_other(std::string_view config) {
    const objects o(config);
    for (int n = 0; n < 3; ++n) {
        const auto run = o.start();
        auto range = o.queue.try_run_events(run);
        std::string types;
        for (const fawn::event& ev : range) types.append(ev.type()).append(" ");
        CHECK(types.find("run_start ") == 0 && types.find("run_end ") == types.size() - 8);
        CHECK(range.status() == fawn::status::ok && range.begin() == range.end());
    }
}

// What an earlier loop left behind is not taken for the next run, and a warning of no run is shown.
void leftovers(std::string_view config) {
    const objects o(config);
    const auto first = o.start();
    for (const fawn::event& ev : o.queue.try_run_events(first)) {
        if (ev.type() == "message_delta") break;
    }
    CHECK(MUST(first.try_wait()));
    const auto second = o.start();
    const std::string id = MUST(second.try_id());
    CHECK(id.size() == 36 && id != MUST(first.try_id()));
    std::uint64_t seq = 0;
    auto range = o.queue.try_run_events(second);
    std::string last;
    for (const fawn::event& ev : range) {
        CHECK(ev.is_of(id) && ev.seq() == ++seq);
        last = ev.type();
    }
    CHECK(last == "run_end" && range.status() == fawn::status::ok && range.begin() == range.end());
    CHECK(contains(MUST(second.try_wait()).view(), id));

    auto over = o.queue.try_run_events(second, 20ms); // its end was taken above
    for (const fawn::event& ev : over) fail(__FILE__, __LINE__, ev.raw());
    CHECK(over.status() == fawn::status::timeout && !over.error());
    auto none = o.queue.try_run_events(fawn::run());
    for (const fawn::event& ev : none) fail(__FILE__, __LINE__, ev.raw());
    CHECK(none.status() == fawn::status::err_handle && none.error());
#if FAWN_HPP_EXCEPTIONS
    bool thrown = false;
    try {
        for (const fawn::event& ev : o.queue.run_events(fawn::run())) fail(__FILE__, __LINE__, ev.raw());
    } catch (const fawn::error& e) {
        thrown = e.status() == fawn::status::err_handle;
    }
    CHECK(thrown);
#endif
}

void interrupted(std::string_view config) {
    const objects o(config);
    MUST(o.queue.try_interrupt());
    CHECK(MUST(o.queue.try_take(fawn::forever)).status() == fawn::status::interrupted);
    std::thread other([&] {
        std::this_thread::sleep_for(20ms);
        MUST(o.queue.try_interrupt());
    });
    auto range = o.queue.try_events();
    for (const fawn::event& ev : range) fail(__FILE__, __LINE__, ev.raw());
    other.join();
    CHECK(range.status() == fawn::status::interrupted);
    // After an interruption the range goes on.
    const auto run = o.start();
    int ends = 0;
    for (const fawn::event& ev : range) {
        ends += ev.type() == "run_end";
        if (ends > 0) break;
    }
    CHECK(ends == 1);
}

void closed(std::string_view config) {
    objects o(config);
    // By shutting down the runtime: what is there is given first.
    const auto run = o.start();
    CHECK(MUST(run.try_wait()));
    std::thread other([&] {
        std::this_thread::sleep_for(20ms);
        CHECK(MUST(o.runtime.try_shutdown()));
    });
    auto range = o.queue.try_events();
    int ends = 0;
    for (const fawn::event& ev : range) ends += ev.type() == "run_end";
    other.join();
    CHECK(ends == 1 && range.status() == fawn::status::closed);

    // By freeing the queue while another OS thread is in the loop, which then ends.
    objects p(config);
    auto waiting = p.queue.try_events();
    std::thread frees([&] {
        std::this_thread::sleep_for(20ms);
        p.queue.reset();
    });
    for (const fawn::event& ev : waiting) fail(__FILE__, __LINE__, ev.raw());
    frees.join();
    CHECK(waiting.status() == fawn::status::closed);
    for (const fawn::event& ev : waiting) fail(__FILE__, __LINE__, ev.raw());
    CHECK(waiting.status() == fawn::status::err_handle && waiting.error()->code() == "handle");
}

// An event loop of the host's own: asleep until the wake-up function says that there is something.
struct event_loop {
    std::mutex lock;
    std::condition_variable woken;
    bool signalled = false;
    std::atomic<int> calls{0};

    void wake() {
        ++calls;
        { const std::lock_guard<std::mutex> held(lock); signalled = true; }
        woken.notify_one();
    }
    void sleep() {
        std::unique_lock<std::mutex> held(lock);
        woken.wait(held, [this] { return signalled; });
        signalled = false;
    }
};

void wakeups() {
    objects o;
    event_loop loop;
    MUST(o.queue.try_set_wakeup([&loop] { loop.wake(); }));
    const auto run = o.start();
    int ends = 0, events = 0;
    while (ends == 0) {
        loop.sleep();
        for (;;) {
            const fawn::batch taken = MUST(o.queue.try_take(0s));
            if (!taken) break;
            for (const fawn::event& ev : taken) {
                ++events;
                ends += ev.type() == "run_end";
            }
        }
    }
    CHECK(events >= 5 && loop.calls >= 1);
    // What is there already is told at once; the function that was registered before is not called any more.
    CHECK(MUST(o.start().try_wait()));
    const int calls = loop.calls;
    event_loop second;
    MUST(o.queue.try_set_wakeup([&second] { second.wake(); }));
    CHECK(second.calls >= 1 && loop.calls == calls);
    // Closing wakes too.
    CHECK(MUST(o.runtime.try_shutdown()));
    CHECK(second.calls >= 2);
}

// The function lives as long as its registration, whatever ends that.
void lifetime_of_a_wakeup_function() {
    const auto make = [](std::weak_ptr<int>& seen) {
        auto token = std::make_shared<int>(1);
        seen = token;
        return [token] { CHECK(*token == 1); };
    };
    std::weak_ptr<int> replaced, cleared, freed, with_runtime, refused, moved;
    objects o;
    MUST(o.queue.try_set_wakeup(make(replaced)));
    CHECK(!replaced.expired());
    CHECK(MUST(o.start().try_wait()));
    MUST(o.queue.try_set_wakeup(make(cleared)));
    CHECK(replaced.expired() && !cleared.expired());
    MUST(o.queue.try_set_wakeup({}));
    CHECK(cleared.expired());
    MUST(o.queue.try_set_wakeup(nullptr));
    MUST(o.queue.try_set_wakeup(make(freed)));
    fawn::queue other = std::move(o.queue);
    CHECK(!freed.expired());
    const auto number = other.get();
    other.reset();
    CHECK(freed.expired());
    CHECK_ERROR(err_handle, fawn::queue(number).try_set_wakeup(make(refused)));
    CHECK(refused.expired());
    o.queue = MUST(fawn::queue::try_create(o.runtime));
    MUST(o.queue.try_set_wakeup(make(with_runtime)));
    o.runtime.reset();
    CHECK(with_runtime.expired());
}

// A function that keeps an owner alive, and frees it with itself.
void wakeup_function_that_owns_a_runtime() {
    auto other = std::make_shared<fawn::runtime>(MUST(fawn::runtime::try_create()));
    objects o;
    MUST(o.queue.try_set_wakeup([other] { CHECK(*other); }));
    other.reset();
    CHECK(MUST(o.start().try_wait()));
    o.queue.reset();
}

void many_replace_and_fire() {
    objects o;
    std::atomic<int> alive{0};
    struct counted {
        explicit counted(std::atomic<int>& count) : alive(&count) { ++*alive; }
        counted(const counted& other) : alive(other.alive) { ++*alive; }
        counted& operator=(const counted&) = delete;
        ~counted() { --*alive; }
        std::atomic<int>* alive;
    };
    std::vector<std::thread> workers;
    for (int n = 0; n < 2; ++n) {
        workers.emplace_back([&] {
            for (int round = 0; round < 50; ++round) {
                MUST(o.queue.try_set_wakeup([held = counted(alive)] { CHECK(*held.alive > 0); }));
            }
        });
    }
    for (int round = 0; round < 20; ++round) {
        CHECK(MUST(o.start().try_wait()));
        CHECK(MUST(o.queue.try_take(0s)));
    }
    for (auto& worker : workers) worker.join();
    CHECK(alive >= 1);
    MUST(o.queue.try_set_wakeup({}));
    CHECK(alive == 0);
}

} // namespace

int main() {
    for (const auto config : configs) {
        batches(config);
        ranges_take_what_they_show(config);
        one_run_after_the_other(config);
        leftovers(config);
        interrupted(config);
        closed(config);
    }
    wakeups();
    lifetime_of_a_wakeup_function();
    wakeup_function_that_owns_a_runtime();
    many_replace_and_fire();
    check_nothing_left();
    return 0;
}
