// The owners: what moves and what does not, freeing twice and too late, errors with all they say, timeouts, buffers.
#include "check.hpp"

#include <limits>
#include <type_traits>
#include <utility>
#if defined(__cpp_lib_ranges)
#include <ranges>
static_assert(std::ranges::input_range<fawn::batch>);
static_assert(std::ranges::input_range<fawn::try_event_range>);
#endif

namespace {

using namespace std::chrono_literals;

template <class T>
constexpr bool only_moves = !std::is_copy_constructible_v<T> && !std::is_copy_assignable_v<T> &&
                            std::is_nothrow_move_constructible_v<T> && std::is_nothrow_move_assignable_v<T>;
static_assert(only_moves<fawn::runtime> && only_moves<fawn::assembly> && only_moves<fawn::thread> && only_moves<fawn::queue>);
static_assert(only_moves<fawn::subagents> && only_moves<fawn::run> && only_moves<fawn::buffer> && only_moves<fawn::pending_call>);
static_assert(!std::is_convertible_v<fawn::thread, fawn::run> && !std::is_constructible_v<fawn::run, fawn::handle<fawn::thread>>);
static_assert(!std::is_convertible_v<fawn::handle<fawn::thread>, fawn::handle<fawn::run>>);
static_assert(!std::is_constructible_v<fawn::run, std::uint64_t>);
static_assert(std::is_nothrow_copy_constructible_v<fawn::error> && std::is_base_of_v<std::exception, fawn::error>);
static_assert(std::is_trivially_copyable_v<fawn::event>);

void durations() {
    const auto ms = [](fawn::timeout t) { return t.count(); };
    CHECK(ms(fawn::forever) == -1 && ms(0s) == 0 && ms(2s) == 2000 && ms(7ms) == 7);
    CHECK(ms(-1ms) == 0 && ms(std::chrono::seconds::min()) == 0);
    CHECK(ms(1ns) == 1 && ms(1500us) == 2 && ms(std::chrono::duration<float>(0.25F)) == 250);
    CHECK(ms(std::chrono::hours::max()) == -1 && ms(std::chrono::milliseconds::max()) == -1);
    CHECK(ms(24h * 365 * 1000) == 31536000000000);
    CHECK(ms(std::chrono::duration<double>(std::numeric_limits<double>::quiet_NaN())) == 0);
    CHECK(ms(std::chrono::duration<double>(std::numeric_limits<double>::infinity())) == -1);
}

/// A small descriptor.
std::string agent(const char* model) {
    return std::string(R"({"namespace":"deerflow","agent_name":"a","effective_model":")") + model +
           R"(","model_parameters":{},"thinking_enabled":false,"reasoning_effort":null,"base_prompt_hash":"p","tools":[],)"
           R"("middlewares":[],"deferred_tool_names":[],"enabled_skills":[],"effective_policies":{}})";
}

void without_a_runtime() {
    CHECK(fawn::abi_version() == FAWN_ABI_VERSION && std::string_view(fawn::version()).size() >= 5);
    CHECK(std::string_view(fawn::status_name(fawn::status::gone)) == "FAWN_GONE");
    CHECK(std::string_view(fawn::status_name(static_cast<fawn::status>(-9999))) == "FAWN_UNKNOWN");
    CHECK(fawn::is_error(fawn::status::err_handle) && !fawn::is_error(fawn::status::timeout));
    CHECK(contains(MUST(fawn::try_describe("build")), fawn::version()));
    CHECK(MUST(fawn::try_reduce("artifacts", R"({"existing":["a"],"updates":[["b","a"]]})")).view() == R"(["a","b"])");
    CHECK(contains(MUST(fawn::try_messages_convert(R"({"messages":["hi"]})")), R"("type":"human")"));
    const std::string pair = "{\"before\":" + agent("fast") + ",\"after\":" + agent("slow") + "}";
    const auto diff = MUST(fawn::try_descriptor_diff(pair));
    CHECK(contains(diff, R"("what":"model_changed")") && contains(diff, R"(The model changed from \"fast\" to \"slow\".)"));
    CHECK(contains(MUST(fawn::try_descriptor_diagram(agent("fast"))), R"({"mermaid":"flowchart TD\n)"));
    const auto none = fawn::try_descriptor_diff(R"({"before":null,"after":null})");
    CHECK_ERROR(err_wrong_type, none);
    CHECK(none.error().path() == "/before");
    CHECK_ERROR(err_missing_member, fawn::try_descriptor_diagram("{}"));
    CHECK_ERROR(err_unknown_variant, fawn::try_describe("nothing"));
    CHECK_ERROR(err_unknown_channel, fawn::try_reduce("nothing", "{}"));
    CHECK_ERROR(err_json_syntax, fawn::try_messages_convert(""));
    CHECK_ERROR(err_not_utf8, fawn::try_messages_convert("\"\xff\""));
    CHECK_ERROR(err_json_syntax, fawn::try_messages_convert(std::string_view("{\0}", 3)));
}

void errors() {
    const auto refused = fawn::runtime::try_create(R"({"testing":{"clock":7}})");
    CHECK_ERROR(err_wrong_type, refused);
    const fawn::error e = refused.error();
    CHECK(e.code() == "wrong_type" && e.path() == "/testing/clock" && !e.retryable());
    CHECK(e.raw().front() == '{' && contains(e.raw(), R"("status":-123)") && !e.message().empty());
    CHECK(std::string_view(e.what()) == "wrong_type: " + e.message() + " (at /testing/clock)");

    // Errors that the library has nothing to say about still say what they are.
    const auto number_only = fawn::queue(fawn::handle<fawn::queue>{12345}).try_interrupt();
    CHECK_ERROR(err_handle, number_only);
    CHECK(number_only.error().code() == "handle" && number_only.error().raw().empty());
    CHECK(number_only.error().message() == "FAWN_ERR_HANDLE");

    // An error object that came another way, as in a run's result; texts are read as JSON.
    const fawn::error other(R"({"code":"store","status":-403,"message":"say \"no\" \u00e9","retryable":true,"cause":["message"]})");
    CHECK(other.status() == fawn::status::err_store && other.message() == "say \"no\" é" && other.retryable() && other.path().empty());
    const fawn::error copy = other;
    CHECK(copy.what() == other.what());
    const fawn::error own("out of \"order\"");
    CHECK(own.status() == fawn::status::err_internal && own.code() == "internal" && own.raw().empty() && own.message() == "out of \"order\"");
}

void results() {
    fawn::result<std::string> good = "text";
    fawn::result<std::string> bad = fawn::unexpected(fawn::error("{}"));
    CHECK(good && good.has_value() && *good == "text" && good->size() == 4 && !bad);
    CHECK(bad.error().status() == fawn::status::err_internal);
    CHECK(std::move(bad).value_or("other") == "other" && good.value_or("other") == "text");
    fawn::result<std::string> moved = std::move(good);
    CHECK(*moved == "text");
    moved = fawn::unexpected(fawn::error("{}"));
    CHECK(!moved);
    const fawn::result<void> nothing;
    CHECK(nothing && nothing.has_value());
}

void buffers() {
    fawn::buffer empty;
    CHECK(empty.empty() && empty.view().empty() && *empty.c_str() == 0 && empty.str().empty());
    fawn::buffer a = MUST(fawn::try_describe("index"));
    const char* where = a.c_str();
    CHECK(a.size() > 2 && a.view().data() == where && where[a.size()] == 0);
    fawn::buffer b = std::move(a);
    CHECK(b.c_str() == where && a.empty());
    b = MUST(fawn::try_describe("build"));
    CHECK(b.c_str() != nullptr);
    fawn_buf raw = b.release();
    CHECK(b.empty() && raw.data != nullptr);
    // A copy of the C struct that is freed as well is found out by the library.
    fawn_buf twin = raw;
    fawn_buf_free(&raw);
    { const fawn::buffer late(twin); }
    b = MUST(fawn::try_describe("index"));
    fawn::buffer& same = b;
    b = std::move(same); // to itself
    CHECK(b.size() > 2);
}

void handles_move() {
    objects o;
    fawn::thread thread = MUST(fawn::thread::try_open(o.runtime, R"({"thread_id":"a"})"));
    const auto number = thread.get();
    CHECK(thread && number && number.value < (std::uint64_t{1} << 53));
    fawn::thread other = std::move(thread);
    CHECK(other.get() == number && !thread && thread.get() != number);
    CHECK_ERROR(err_handle, thread.try_state());
    CHECK(MUST(other.try_state()).size() > 2);
    other = MUST(fawn::thread::try_open(o.runtime, R"({"thread_id":"b"})"));
    CHECK_ERROR(err_handle, fawn::thread(number).try_state());
    fawn::thread& same = other;
    other = std::move(same); // to itself
    CHECK(other && MUST(other.try_state()).size() > 2);

    const auto given = other.release();
    CHECK(!other && given);
    fawn::thread taken(given);
    CHECK(MUST(taken.try_state()).size() > 2);

    // Freed twice, by way of two owners, and used after: the library finds out.
    fawn::thread twin(taken.get());
    taken.reset();
    taken.reset();
    CHECK_ERROR(err_handle, twin.try_state());
    CHECK_ERROR(err_handle, twin.try_update("{}"));
    CHECK_ERROR(err_handle, twin.try_history());
    CHECK_ERROR(err_handle, twin.try_goal());
    twin.reset();
    // A number of another kind, and one that was made up.
    CHECK_ERROR(err_handle, fawn::thread(fawn::handle<fawn::thread>{o.queue.get().value}).try_state());
    CHECK(MUST(o.queue.try_take(0s)).status() == fawn::status::timeout);
    CHECK_ERROR(err_handle, fawn::runtime(fawn::handle<fawn::runtime>{~std::uint64_t{0}}).try_stats());
}

void empty_objects() {
    const objects o;
    const fawn::runtime runtime;
    const fawn::assembly assembly;
    const fawn::thread thread;
    const fawn::queue queue;
    const fawn::run run;
    CHECK_ERROR(err_handle, runtime.try_stats());
    CHECK_ERROR(err_handle, runtime.try_submit("{}"));
    CHECK_ERROR(err_handle, runtime.try_shutdown(0s));
    CHECK_ERROR(err_handle, fawn::assembly::try_create(runtime, talker));
    CHECK_ERROR(err_handle, fawn::thread::try_open(runtime));
    CHECK_ERROR(err_handle, fawn::queue::try_create(runtime));
    CHECK_ERROR(err_handle, assembly.try_descriptor());
    CHECK_ERROR(err_handle, queue.try_take(0s));
    CHECK_ERROR(err_handle, queue.try_interrupt());
    CHECK_ERROR(err_handle, queue.try_set_wakeup([] {}));
    CHECK_ERROR(err_handle, run.try_wait(0s));
    CHECK_ERROR(err_handle, run.try_cancel());
    CHECK_ERROR(err_handle, fawn::run::try_start(assembly, o.thread, o.queue, hello));
    CHECK_ERROR(err_handle, fawn::run::try_start(o.assembly, thread, o.queue, hello));
    // A queue that was moved from is not "nobody listens".
    CHECK_ERROR(err_handle, fawn::run::try_start(o.assembly, o.thread, queue, hello));
    const auto alone = MUST(fawn::run::try_start(o.assembly, o.thread, hello));
    CHECK(MUST(alone.try_wait()));
}

void any_order() {
    objects o;
    fawn::run run = o.start();
    o.runtime.reset();
    CHECK_ERROR(err_closed, o.thread.try_state());
    run.reset();
    o.queue.reset();
    o.assembly.reset();
    o.thread.reset();
}

void threads() {
    const objects o;
    const auto written = MUST(o.thread.try_update(R"({"values":{"messages":["one","two"],"title":"T"}})"));
    CHECK(!fawn::json::find(written, "checkpoint_id").empty());
    CHECK(contains(o.messages(), R"("content":"two")"));
    CHECK(contains(MUST(o.thread.try_history(R"({"limit":1})")), "checkpoint_id"));
    CHECK(contains(MUST(o.thread.try_goal(R"({"op":"set","objective":"two messages"})")), R"("status":"active")"));
    CHECK(contains(MUST(o.thread.try_goal(R"({"op":"command","argument":"clear"})")), R"("goal":null)"));
    const auto refused = o.thread.try_update(R"({"values":{"messages":[{"role":"remove","id":"nobody","content":""}]}})");
    CHECK_ERROR(err_unknown_message_id, refused);
    CHECK(refused.error().path().find("/values/messages") == 0);
    CHECK(MUST(o.assembly.try_descriptor()).view() == "null");
    CHECK(contains(MUST(o.runtime.try_stats()), R"("threads":)"));
    CHECK_ERROR(err_unknown_variant, o.runtime.try_submit(R"({"op":"fly"})"));
    const auto down = MUST(o.runtime.try_shutdown(10s));
    CHECK(down && down.status() == fawn::status::ok && contains(down.view(), "runs_cancelled"));
    CHECK_ERROR(err_closed, o.thread.try_state());
}

void throwing() {
#if FAWN_HPP_EXCEPTIONS
    try {
        (void)fawn::runtime::create(R"({"wrokers":1})");
        fail(__FILE__, __LINE__, "nothing was thrown");
    } catch (const std::exception& e) {
        CHECK(contains(e.what(), "unknown_member") && contains(e.what(), "/wrokers"));
    }
    const auto runtime = fawn::runtime::create(R"({"workers":0})");
    const auto assembly = fawn::assembly::create(runtime, talker);
    const auto thread = fawn::thread::open(runtime);
    const auto queue = fawn::queue::create(runtime);
    CHECK(assembly.descriptor().view() == "null" && fawn::describe("index").size() > 2);
    CHECK(fawn::reduce("artifacts", R"({"existing":null,"updates":[["a"]]})").view() == R"(["a"])");
    CHECK(fawn::messages_convert(R"({"messages":[]})").view() == "[]");
    CHECK(contains(fawn::descriptor_diff("{\"before\":" + agent("m") + ",\"after\":" + agent("m") + "}"), R"("same":true)"));
    CHECK(contains(fawn::descriptor_diagram(agent("m")), "model m"));
    thread.update(R"({"values":{"title":"T"}})");
    CHECK(contains(thread.state(), "\"thread_id\":\"" + thread.id() + '"') && fawn::thread::open(runtime, R"({"thread_id":"a \"b\""})").id() == "a \"b\"");
    CHECK(contains(thread.state(), "\"T\"") && contains(thread.history(), "checkpoint_id"));
    CHECK(contains(thread.goal(), R"("goal":null)"));
    const auto run = fawn::run::start(assembly, thread, queue, hello);
    CHECK(run.id().size() == 36);
    int ends = 0;
    for (const fawn::event& ev : queue.run_events(run)) ends += ev.type() == "run_end";
    CHECK(ends == 1 && run.wait() && queue.take(0s).status() == fawn::status::timeout);
    run.cancel("late");
    run.submit(R"({"op":"cancel"})");
    queue.interrupt();
    CHECK(queue.take().status() == fawn::status::interrupted);
    queue.set_wakeup([] {});
    queue.set_wakeup({});
    CHECK(fawn::run::start(assembly, thread, hello).wait());
    CHECK(runtime.stats().size() > 2 && runtime.shutdown());
    bool thrown = false;
    try {
        for (const fawn::event& ev : fawn::queue().events()) (void)ev;
    } catch (const fawn::error& e) {
        thrown = e.status() == fawn::status::err_handle;
    }
    CHECK(thrown);
    try {
        runtime.submit(R"({"op":"delete_thread","thread_id":"x"})");
        fail(__FILE__, __LINE__, "nothing was thrown");
    } catch (const fawn::error& e) {
        CHECK(e.status() == fawn::status::err_closed);
    }
#endif
}

void subagents_are_shared() {
    constexpr std::string_view direct = R"({"factory":"direct","features":{"subagent":true},"model":{"provider":"scripted","replies":[]}})";
    objects o;
    fawn::subagents shared = MUST(fawn::subagents::try_create(o.runtime, R"({"config":{"max_running":2},"max_total_per_run":4})"));
    CHECK(contains(MUST(shared.try_stats()), R"({"max_running":2,"running":0,"max_queued":64,"queued":0,"admission_policy":"queue",)"
                                             R"("max_total_per_run":4,"started":false})"));
    for (int again = 0; again < 2; again++) {
        CHECK(MUST(shared.try_start()).view() == R"({"started":true})");
        CHECK(MUST(shared.try_start()).view() == R"({"started":true})");
        const fawn::outcome stopped = MUST(shared.try_stop(0ms));
        CHECK(stopped && stopped.view() == R"({"started":false})" && MUST(shared.try_stop()));
    }
    // Whatever the document is; one that names an object itself keeps it.
    CHECK_ERROR(err_unknown_member, fawn::assembly::try_create(o.runtime, " { } ", shared));
    CHECK_ERROR(err_handle, fawn::assembly::try_create(o.runtime, std::string(direct.substr(0, direct.size() - 1)) + R"(,"subagent_runtime":0})", shared));
    CHECK_ERROR(err_json_syntax, fawn::assembly::try_create(o.runtime, "", shared));
    CHECK_ERROR(err_wrong_type, fawn::assembly::try_create(o.runtime, "[]", shared));
    CHECK_ERROR(err_unknown_member, fawn::assembly::try_create(o.runtime, talker, shared));
    const auto refused = fawn::assembly::try_create(o.runtime, R"({"factory":"direct","model":{"provider":"host"}})", shared);
    CHECK_ERROR(err_conflict, refused);
    CHECK(refused.error().path() == "/subagent_runtime");
    CHECK_ERROR(err_unsupported, fawn::subagents::try_create(o.runtime, R"({"batch_config":{}})"));
    const fawn::runtime other = MUST(fawn::runtime::try_create());
    CHECK_ERROR(err_handle, fawn::assembly::try_create(other, direct, shared));

    const fawn::assembly agent = MUST(fawn::assembly::try_create(o.runtime, direct, shared));
    shared.reset();
    CHECK_ERROR(err_handle, shared.try_stats());
    CHECK_ERROR(err_handle, fawn::assembly::try_create(o.runtime, direct, shared));
    CHECK(MUST(agent.try_descriptor()).view() == "null");
#if FAWN_HPP_EXCEPTIONS
    const fawn::subagents thrower = fawn::subagents::create(o.runtime);
    thrower.start();
    thrower.stop(fawn::forever);
    CHECK(contains(thrower.stats(), "\"queued\":0") && fawn::assembly::create(o.runtime, direct, thrower));
#endif
}

} // namespace

int main() {
    durations();
    without_a_runtime();
    errors();
    results();
    buffers();
    handles_move();
    subagents_are_shared();
    empty_objects();
    any_order();
    threads();
    throwing();
    check_nothing_left();
    return 0;
}
