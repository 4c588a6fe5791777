// Host calls: handlers that answer by value, by error, by exception, later, never or wrongly; models of the host.
#include "check.hpp"

#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;

// Runs the agent once, its calls handled by `host`, and gives the result of the run.
std::string run_with(const objects& o, const fawn::dispatcher& host) {
    const auto run = o.start();
    auto range = o.queue.try_run_events(run);
    for (const fawn::event& ev : range) CHECK(MUST(host.try_dispatch(ev)) == (ev.type() == "host_call"));
    CHECK(range.status() == fawn::status::ok);
    return MUST(run.try_wait()).view().data();
}

// What the tool call of the run ended with in the thread, when "look" is this function.
std::string tool_message(std::string_view config, fawn::dispatcher::handler look) {
    const objects o(config, looker);
    fawn::dispatcher host(o.runtime);
    host.tool("look", std::move(look));
    CHECK(contains(run_with(o, host), R"("status":"success")"));
    const fawn::buffer state = MUST(o.thread.try_state(R"({"channels":["messages"],"last_messages":2})"));
    return std::string(fawn::json::find(fawn::json::find(state, "values"), "messages"));
}

void answers(std::string_view config) {
    CHECK(contains(tool_message(config, [](fawn::pending_call& call) {
        CHECK(call && call.kind() == "tool" && call.name() == "look" && call.id() > 0);
        CHECK(call.arg("at") == "the \"sky\"" && call.arg("n") == "3" && call.arg("x").empty());
        CHECK(call.args() == R"({"at":"the \"sky\"","n":3})" && call.deadline() == 600s);
        CHECK(!call.idempotency_key().empty() && call.asked().type() == "host_call" && call.asked().text("tool_call_id").size() > 1);
        return std::string("blue \"and\" clear\n");
    }), R"("content":"blue \"and\" clear\n")"));
    CHECK(contains(tool_message(config, [](fawn::pending_call&) { return "a literal"; }), R"("content":"a literal")"));
    CHECK(contains(tool_message(config, [](fawn::pending_call&) { return "not \xff UTF-8"; }), "\"not \xef\xbf\xbd UTF-8\""));
    CHECK(contains(tool_message(config, [](fawn::pending_call&) {
        return fawn::answer::json(R"({"content":"two","artifact":{"for":"the host"}})");
    }), R"("artifact":{"for":"the host"})"));
    CHECK(contains(tool_message(config, [](fawn::pending_call&) { return fawn::try_reduce("artifacts", R"({"existing":null,"updates":[["a"]]})"); }),
                   R"([\"a\"])"));
    const auto is_error = [](const std::string& messages, std::string_view text) {
        return contains(messages, R"("status":"error")") && contains(messages, text);
    };
    CHECK(is_error(tool_message(config, [](fawn::pending_call&) { return fawn::answer::error("no \"sky\""); }), R"(no \"sky\")"));
    // The error of another call becomes the answer.
    CHECK(is_error(tool_message(config, [](fawn::pending_call&) { return fawn::try_describe("nothing"); }), "nothing"));
    CHECK(is_error(tool_message(config, [](fawn::pending_call&) {
        return fawn::result<std::string>(fawn::unexpected(fawn::error("gone fishing")));
    }), "gone fishing"));
    // A handler may answer by itself; what it returns then does not count.
    CHECK(contains(tool_message(config, [](fawn::pending_call& call) {
        CHECK(MUST(call.try_finish("first")) == fawn::status::ok && !call);
        CHECK(MUST(call.try_finish("second")) == fawn::status::gone);
        CHECK(MUST(call.try_emit("1")) == fawn::status::gone);
        return "third";
    }), R"("content":"first")"));
}

void exceptions(std::string_view config) {
#if FAWN_HPP_EXCEPTIONS
    const auto message = [config](fawn::dispatcher::handler look) { return tool_message(config, std::move(look)); };
    CHECK(contains(message([](fawn::pending_call&) -> fawn::answer { throw std::runtime_error("rain \"today\""); }), R"(look: rain \"today\")"));
    CHECK(contains(message([](fawn::pending_call&) -> fawn::answer { throw 7; }), "look: failed without saying why"));
    CHECK(contains(message([](fawn::pending_call&) { return fawn::describe("nothing"); }), "unknown_variant"));
    CHECK(contains(message([](fawn::pending_call& call) -> fawn::answer {
        const fawn::pending_call taken = std::move(call); // answers when it is destroyed
        throw std::runtime_error("too late to tell");
    }), "without an answer"));
    CHECK(contains(message([](fawn::pending_call& call) {
        CHECK(call.emit(R"({"half":true})") == fawn::status::ok && call.finish("done") == fawn::status::ok);
        return "";
    }), R"("content":"done")"));
#else
    (void)config;
#endif
}

void unknown_names(std::string_view config) {
    const objects o(config, looker);
    fawn::dispatcher host(o.runtime);
    host.tool("lock", [](fawn::pending_call&) { return "wrong"; }).model("look", [](fawn::pending_call&) { return "wrong"; });
    CHECK(contains(run_with(o, host), R"("status":"success")"));
    CHECK(contains(o.messages(), R"(the host has no tool named \"look\")"));
    // An empty function is no handler, and the handler of last resort gets what is left.
    host.tool("look", nullptr).otherwise([](fawn::pending_call& call) { return std::string(call.kind()) + "/" + std::string(call.name()); });
    CHECK(contains(run_with(o, host), R"("status":"success")"));
    CHECK(contains(o.messages(), R"("content":"tool/look")"));
    CHECK(!MUST(host.try_dispatch(fawn::event())));
    CHECK(!MUST(host.try_dispatch(*fawn::event::parse(R"({"type":"host_call","data":{"name":"look"}})"))));
}

// A guardrail of the host decides whether the tool is called.
void guardrails(std::string_view config) {
    std::string guarded(looker);
    const std::string_view tools = R"("tools":)";
    const auto at = guarded.find(tools);
    CHECK(at != std::string::npos);
    guarded.insert(at, R"("middleware":[{"name":"guardrail_provider","provider":{"use":"host","config":{"name":"watch"}}}],)");
    for (const bool allow : {true, false}) {
        const objects o(config, guarded);
        fawn::dispatcher host(o.runtime);
        host.tool("look", [](fawn::pending_call&) { return "seen"; });
        host.guardrail("watch", [allow](fawn::pending_call& call) {
            CHECK(call.kind() == "guardrail" && call.arg("tool_name") == "look");
            return fawn::answer::json(allow ? R"({"allow":true})" : R"({"allow":false,"reasons":[{"code":"night"}]})");
        });
        CHECK(contains(run_with(o, host), R"("status":"success")"));
        CHECK(contains(o.messages(), allow ? R"("content":"seen")" : "(night)"));
    }
}

// The host is the sandbox and the memory of a lead agent. What they answer is for the library to judge.
void sandbox_and_memory(std::string_view config) {
    std::string hosted(R"({"sandbox":{"use":"host"},"memory":{"manager_class":"host"},"models":[{"name":"main","provider":"scripted",
        "repeat":true,"replies":[{"tool_calls":[{"name":"write_file","args":{"path":"/mnt/a","content":"new"}}]},{"content":"Done."}]}])");
    if (config != "{}") hosted.append(",").append(config.substr(1, config.size() - 2));
    hosted += "}";
    const std::string_view lead = R"({"factory":"lead","tools":[{"name":"write_file","parameters":{"type":"object"}}]})";
    const objects o(hosted, lead);
    fawn::dispatcher host(o.runtime);
    std::string asked;
    const auto note = [&asked](const fawn::pending_call& call) {
        CHECK(!call.arg("user_id").empty() && !call.arg("thread_id").empty());
        asked.append(call.kind()).append(".").append(call.name()).append(" ");
    };
    host.tool("write_file", [](fawn::pending_call&) { return "written"; });
    host.sandbox("acquire", [&](fawn::pending_call& call) {
        note(call);
        return fawn::answer::json(R"({"sandbox_id":"s1"})");
    });
    host.sandbox("read_file", [&](fawn::pending_call& call) {
        note(call);
        CHECK(call.arg("sandbox_id") == "s1" && call.arg("path") == "/mnt/a");
        return fawn::answer::json("{\"text\":" + fawn::json::quote("old") + "}");
    });
    host.sandbox("release", [&](fawn::pending_call& call) {
        note(call);
        return fawn::answer::nothing();
    });
    host.memory("add", [&](fawn::pending_call& call) {
        note(call);
        CHECK(contains(call.args(), R"("content":"Done.")"));
        return fawn::answer::nothing();
    });
    CHECK(contains(run_with(o, host), R"("status":"success")"));
    CHECK(asked == "sandbox.acquire sandbox.read_file memory.add sandbox.release " ||
          asked == "sandbox.acquire sandbox.read_file sandbox.release memory.add ");
    CHECK(contains(o.messages(), "not read"));
    // A file that is not there may be written.
    host.sandbox("read_file", [](fawn::pending_call&) { return fawn::answer::nothing(); });
    CHECK(contains(run_with(o, host), R"("status":"success")"));
    CHECK(contains(o.messages(), R"("content":"written")"));

    const objects wrong(hosted, lead);
    fawn::dispatcher bad(wrong.runtime);
    std::string refused;
    bad.on_refused([&refused](const fawn::pending_call& call, const fawn::error& why) {
        refused.append(call.name()).append(" ").append(why.path()).append(";");
    });
    bad.sandbox("acquire", [](fawn::pending_call&) { return fawn::answer::json(R"({"sandbox":"s1"})"); });
    bad.memory("add", [](fawn::pending_call&) { return "remembered"; });
    CHECK(contains(run_with(wrong, bad), R"("status":"success")"));
    CHECK(refused == "acquire /ok/sandbox;add /ok;");
    CHECK(contains(wrong.messages(), "the sandbox's acquire"));

    const objects none(hosted, lead);
    CHECK(contains(run_with(none, fawn::dispatcher(none.runtime)), R"("status":"success")"));
    CHECK(contains(none.messages(), "the host has no handler for the sandbox's acquire"));
}

// An answer that the library refuses is told to the host, and the run goes on with an error.
void refused_answers(std::string_view config) {
    for (const char* wrong : {"{\"content\":}", R"({"content":"x","nonsense":1})"}) {
        const objects o(config, looker);
        fawn::dispatcher host(o.runtime);
        host.tool("look", [wrong](fawn::pending_call&) { return fawn::answer::json(wrong); });
        const auto run = o.start();
        int refused = 0;
        host.on_refused([&refused](const fawn::pending_call& call, const fawn::error& why) {
            ++refused;
            CHECK(!call && call.name() == "look");
            CHECK(why.status() == fawn::status::err_json_syntax || why.path() == "/ok/nonsense");
        });
        for (const fawn::event& ev : o.queue.try_run_events(run)) CHECK(MUST(host.try_dispatch(ev)) == (ev.type() == "host_call"));
        CHECK(refused == 1 && contains(o.messages(), "the host's answer was refused"));
    }
#if FAWN_HPP_EXCEPTIONS
    // Nothing leaves the loop.
    const objects o(config, looker);
    fawn::dispatcher host(o.runtime);
    host.tool("look", [](fawn::pending_call&) { return fawn::answer::document("nonsense"); });
    const auto run = o.start();
    for (const fawn::event& ev : o.queue.run_events(run)) host.dispatch(ev);
    CHECK(contains(o.messages(), "the host's answer was refused"));
#endif
    // A call that cannot be answered is told.
    objects other(config, looker);
    const fawn::dispatcher late(other.runtime);
    const auto asks = other.start();
    int calls = 0;
    for (const fawn::event& ev : other.queue.try_events()) {
        if (ev.type() != "host_call") continue;
        other.runtime.reset();
        CHECK_ERROR(err_handle, late.try_dispatch(ev));
        ++calls;
        break;
    }
    CHECK(calls == 1);
    // The host's own try may be mended: the call is open until an answer is taken.
    CHECK(contains(tool_message(config, [](fawn::pending_call& call) {
        CHECK_ERROR(err_json_syntax, call.try_finish(fawn::answer::json("{")));
        CHECK(call);
        CHECK_ERROR(err_json_syntax, call.try_emit("{"));
        return "mended";
    }), R"("content":"mended")"));
}

void later_from_another_thread(std::string_view config) {
    const objects o(config, looker);
    fawn::dispatcher host(o.runtime);
    std::thread worker;
    host.tool("look", [&](fawn::pending_call& call) {
        worker = std::thread([call = std::move(call)]() mutable {
            std::this_thread::sleep_for(20ms);
            CHECK(MUST(call.try_emit(R"({"half":"way"})")) == fawn::status::ok);
            CHECK(call.name() == "look" && call.arg("n") == "3");
            CHECK(MUST(call.try_finish("late")) == fawn::status::ok);
        });
        return fawn::answer::later();
    });
    const auto run = o.start(R"({"input":{"messages":["Hello"]},"stream":["custom"]})");
    int customs = 0;
    for (const fawn::event& ev : o.queue.try_run_events(run)) {
        customs += ev.type() == "custom" && contains(ev.field("value"), "way");
        CHECK(MUST(host.try_dispatch(ev)) == (ev.type() == "host_call"));
    }
    worker.join();
    CHECK(customs == 1 && contains(o.messages(), R"("content":"late")"));
}

void dropped_and_moved(std::string_view config) {
    CHECK(contains(tool_message(config, [](fawn::pending_call&) { return fawn::answer::later(); }), "without an answer"));
    CHECK(contains(tool_message(config, [](fawn::pending_call& call) {
        { const fawn::pending_call taken = std::move(call); CHECK(taken && !call && call.args().empty()); }
        return "not counted";
    }), "without an answer"));
    // Assigning drops what was there.
    CHECK(contains(tool_message(config, [](fawn::pending_call& call) {
        fawn::pending_call taken = std::move(call);
        taken = fawn::pending_call();
        CHECK(!taken && taken.id() == 0 && taken.kind().empty() && taken.asked().type().empty());
        CHECK_ERROR(err_handle, taken.try_finish("nothing"));
        CHECK_ERROR(err_handle, taken.try_emit("nothing"));
        return "not counted";
    }), "without an answer"));
    // Released: somebody else answers.
    CHECK(contains(tool_message(config, [](fawn::pending_call& call) {
        fawn::pending_call twin(call.asked().type() == "host_call" ? std::move(call) : fawn::pending_call());
        CHECK(twin.id() > 0);
        return MUST(twin.try_finish("by the twin")) == fawn::status::ok ? "not counted" : "wrong";
    }), R"("content":"by the twin")"));
}

// Calls that are over when the answer comes: cancelled, past their deadline, queue gone, runtime gone.
void too_late(std::string_view config) {
    objects o(config, looker);
    const auto take_call = [](const objects& of) {
        for (const fawn::event& ev : of.queue.try_events()) {
            if (fawn::pending_call call{of.runtime, ev}) return call;
        }
        fail(__FILE__, __LINE__, "no call");
    };
    auto run = o.start();
    auto call = take_call(o);
    MUST(run.try_cancel("enough"));
    CHECK(contains(MUST(run.try_wait()).view(), R"("cancel_reason":"enough")"));
    std::uint64_t cancelled = 0;
    for (const fawn::event& ev : o.queue.try_run_events(run)) {
        if (ev.type() == "host_call_cancelled") cancelled = std::strtoull(ev.text("call_id").c_str(), nullptr, 10);
    }
    CHECK(cancelled == call.id());
    CHECK(MUST(call.try_emit("1")) == fawn::status::gone);
    CHECK(call && MUST(call.try_finish("late")) == fawn::status::gone && !call);

    o.thread = MUST(fawn::thread::try_open(o.runtime));
    run = o.start();
    call = take_call(o);
    o.queue.reset();
    CHECK(MUST(run.try_wait()));
    CHECK(MUST(call.try_finish("late")) == fawn::status::gone);

    o.queue = MUST(fawn::queue::try_create(o.runtime));
    o.thread = MUST(fawn::thread::try_open(o.runtime));
    run = o.start();
    call = take_call(o);
    o.runtime.reset();
    CHECK_ERROR(err_handle, call.try_finish("late"));
}

void model_of_the_host(std::string_view config) {
    const objects o(config, host_model);
    fawn::dispatcher host(o.runtime);
    std::string asked;
    host.model("mine", [&](fawn::pending_call& call) {
        CHECK(call.kind() == "model" && call.name() == "mine");
        asked = call.args();
        CHECK(MUST(call.try_emit_text("It is ")) == fawn::status::ok && MUST(call.try_emit_text("\"clear\".\n")) == fawn::status::ok);
        CHECK_ERROR(err_unknown_member, call.try_emit(R"({"txt":"x"})"));
        return fawn::answer::json(R"({"content":"It is \"clear\".\n","usage":{"input_tokens":3,"output_tokens":4}})");
    });
    const auto run = o.start();
    std::string text;
    for (const fawn::event& ev : o.queue.try_run_events(run)) {
        MUST(host.try_dispatch(ev));
        if (ev.type() == "message_delta") text += ev.text("text");
    }
    CHECK(text == "It is \"clear\".\n" && contains(asked, R"("content":"Hello")"));
    CHECK(contains(MUST(run.try_wait()).view(), R"("total_tokens":7)"));
    // Text alone is a reply too; an error ends the run, whose result has it.
    host.model("mine", [](fawn::pending_call&) { return "Short."; });
    CHECK(contains(run_with(o, host), R"("content":"Short.")"));
    host.model("mine", [](fawn::pending_call&) { return fawn::answer::error("no power"); });
    const std::string failed = run_with(o, host);
    const fawn::error e(fawn::json::find(failed, "error"));
    CHECK(fawn::json::text(fawn::json::find(failed, "status")) == "error");
    CHECK(e.status() == fawn::status::err_model_host && e.code() == "model_host" && contains(e.message(), "no power"));
}

// A middleware of the host decides about the calls of the tool; an error is no verdict, and its default counts.
void middleware_of_the_host(std::string_view config) {
    std::string agent(looker);
    agent.replace(agent.rfind('}'), 1, R"(,"middleware":[{"name":"gate","host":{"hooks":["wrap_tool_call"],"on_timeout":"deny"}}]})");
    const auto says = [&](fawn::dispatcher::handler gate) {
        const objects o(config, agent);
        fawn::dispatcher host(o.runtime);
        host.tool("look", [](fawn::pending_call&) { return "seen"; }).middleware("gate", std::move(gate));
        CHECK(contains(run_with(o, host), R"("status":"success")"));
        return std::string(o.messages());
    };
    CHECK(contains(says([](fawn::pending_call& call) {
        CHECK(call.kind() == "middleware" && call.name() == "gate" && call.arg("hook") == "wrap_tool_call" && call.arg("phase") == "before");
        return fawn::answer::go_on();
    }), R"("content":"seen")"));
    CHECK(contains(says([](fawn::pending_call&) { return fawn::answer::deny("not \"now\""); }), R"(not \"now\")"));
    CHECK(contains(says([](fawn::pending_call&) { return fawn::answer::json(R"({"verdict":"change","result":"made up"})"); }), "made up"));
    CHECK(contains(says([](fawn::pending_call&) { return fawn::answer::error("lost"); }), "could not decide"));
    CHECK(contains(says([](fawn::pending_call&) { return "no verdict"; }), "could not decide"));
}

} // namespace

int main() {
    for (const auto config : configs) {
        answers(config);
        middleware_of_the_host(config);
        exceptions(config);
        unknown_names(config);
        guardrails(config);
        sandbox_and_memory(config);
        refused_answers(config);
        later_from_another_thread(config);
        dropped_and_moved(config);
        too_late(config);
        model_of_the_host(config);
    }
    check_nothing_left();
    return 0;
}
