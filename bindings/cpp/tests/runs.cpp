// Runs: waited for, cancelled while they talk, let go, failed, and asked to stop by a std::stop_token.
#include "check.hpp"

#include <thread>
#include <vector>
#if defined(__cpp_lib_jthread)
#include <stop_token>
#endif

namespace {

using namespace std::chrono_literals;

constexpr std::string_view slow = R"({"model":{"provider":"scripted","repeat":true,"replies":[
    {"content":"one two three four five six seven eight nine ten","chunks":10,"chunk_delay_ms":200}]}})";

void cancelled_while_it_talks(std::string_view config) {
    const objects o(config, slow);
    const auto run = o.start();
    CHECK(MUST(run.try_wait(0s)).status() == fawn::status::timeout);
    CHECK(MUST(run.try_wait(1ms)).view().empty());
    std::string heard;
    for (const fawn::event& ev : o.queue.try_run_events(run)) {
        if (ev.type() != "message_delta") continue;
        if (heard.empty()) MUST(run.try_cancel("heard \"enough\""));
        heard += ev.text("text");
    }
    const auto result = MUST(run.try_wait());
    CHECK(fawn::json::text(fawn::json::find(result.view(), "status")) == "interrupted");
    CHECK(fawn::json::text(fawn::json::find(result.view(), "cancel_reason")) == "heard \"enough\"");
    CHECK(heard.find("one") == 0 && !contains(heard, "ten"));
    CHECK(contains(o.messages(), "\"one"));
    // Cancelling what is over is no error, and what the library does not know is one.
    MUST(run.try_cancel());
    CHECK_ERROR(err_unknown_variant, run.try_submit(R"({"op":"fly"})"));
}

void busy_threads(std::string_view config) {
    const objects o(config, slow);
    const auto run = o.start();
    const auto refused = fawn::run::try_start(o.assembly, o.thread, o.queue, hello);
    CHECK_ERROR(err_thread_busy, refused);
    CHECK(refused.error().retryable());
    CHECK_ERROR(err_unknown_member, fawn::run::try_start(o.assembly, o.thread, o.queue, R"({"inptu":{}})"));
    MUST(run.try_cancel());
    CHECK(MUST(run.try_wait(60s)));
}

// Letting go of a run does not end it.
void let_go(std::string_view config) {
    const objects o(config);
    (void)o.start();
    int ends = 0;
    for (const fawn::event& ev : o.queue.try_events()) {
        ends += ev.type() == "run_end" && ev.text("status") == "success";
        if (ends > 0) break;
    }
    CHECK(ends == 1);
}

void failed(std::string_view config) {
    const objects o(config, R"({"model":{"provider":"scripted","replies":[{"error":{"code":"model_auth","message":"no \"key\""}}]}})");
    const auto run = MUST(fawn::run::try_start(o.assembly, o.thread, hello));
    const auto result = MUST(run.try_wait());
    const fawn::error e(fawn::json::find(result.view(), "error"));
    CHECK(e.status() == fawn::status::err_model_auth && contains(e.message(), "no \"key\"") && !e.retryable());
}

void waited_for_by_many(std::string_view config) {
    const objects o(config);
    const auto run = o.start();
    std::vector<std::thread> waiting;
    for (int n = 0; n < 8; ++n) {
        waiting.emplace_back([&run] { CHECK(contains(MUST(run.try_wait()).answer(), R"("status":"success")")); });
    }
    for (auto& one : waiting) one.join();
}

void shut_down_under_a_run(std::string_view config) {
    const objects o(config, slow);
    const auto run = o.start();
    auto down = MUST(o.runtime.try_shutdown(60s));
    CHECK(down);
    const fawn::buffer said = std::move(down).answer();
    CHECK(said.view() == R"({"runs_cancelled":1})");
    CHECK(contains(MUST(run.try_wait()).view(), "status"));
    auto events = o.queue.try_events();
    std::string last;
    for (const fawn::event& ev : events) last = ev.type();
    CHECK(last == "run_end" && events.status() == fawn::status::closed);
}

void stopped_by_a_token(std::string_view config) {
#if defined(__cpp_lib_jthread)
    const objects o(config, slow);
    std::stop_source source;
    const auto run = o.start();
    const std::stop_callback ends_run(source.get_token(), [&run] { (void)run.try_cancel("stopped"); });
    std::jthread other([&source] {
        std::this_thread::sleep_for(50ms);
        source.request_stop();
    });
    CHECK(contains(MUST(run.try_wait()).view(), R"("cancel_reason":"stopped")"));
#else
    (void)config;
#endif
}

} // namespace

int main() {
    for (const auto config : configs) {
        cancelled_while_it_talks(config);
        busy_threads(config);
        let_go(config);
        failed(config);
        waited_for_by_many(config);
        shut_down_under_a_run(config);
        stopped_by_a_token(config);
    }
    check_nothing_left();
    return 0;
}
