// An agent that calls a function of this program, on a thread that is still there the next time.
//
//   quickstart FOLDER [QUESTION]
//
// FOLDER keeps the thread (one SQLite file). Without OPENAI_API_KEY a script stands in for the model; with
// OPENAI_BASE_URL, OPENAI_API_KEY and FAWN_MODEL set, the real one answers.
#include <fawn.hpp>

#include <cstdlib>
#include <iostream>
#include <string>

namespace {

// The function that the agent calls.
std::string get_weather(const std::string& city) {
    return "It is 18 degrees and clear in " + city + ".";
}

constexpr const char* script = R"({"provider": "scripted", "repeat": true, "replies": [
    {"tool_calls": [{"name": "get_weather", "args": {"city": "Paris"}}]},
    {"content": "In Paris it is clear, with 18 degrees.", "chunks": 5, "chunk_delay_ms": 60},
    {"tool_calls": [{"name": "get_weather", "args": {"city": "Oslo"}}]},
    {"content": "Oslo has the same weather as Paris, which we spoke about before.", "chunks": 7, "chunk_delay_ms": 60},
    {"content": "My script ends here. Set OPENAI_API_KEY for a real model."}]})";

std::string variable(const char* name, const char* otherwise) {
    const char* value = std::getenv(name);
    return value != nullptr ? value : otherwise;
}

std::string model() {
    if (std::getenv("OPENAI_API_KEY") == nullptr) return script;
    return R"({"provider": "openai", "api_key": "$OPENAI_API_KEY", "model": )" +
           fawn::json::quote(variable("FAWN_MODEL", "gpt-4.1-mini")) + R"(, "base_url": )" +
           fawn::json::quote(variable("OPENAI_BASE_URL", "https://api.openai.com/v1")) + "}";
}

// Says what the agent said last on this thread, if it did.
void recall(const fawn::thread& thread) {
    const fawn::buffer state = thread.state(R"({"channels": ["messages"], "last_messages": 1})");
    const auto messages = fawn::json::find(fawn::json::find(state, "values"), "messages");
    if (messages.size() <= 2) return;
    const auto last = messages.substr(1, messages.size() - 2); // the one in the array
    std::cout << "(last time: " << fawn::json::text(fawn::json::find(last, "content")) << ")\n";
}

int chat(const std::string& folder, const std::string& question) {
    // A runtime that keeps threads in FOLDER/fawn.db and lets this OS thread do all the work.
    const auto runtime = fawn::runtime::create(
        R"({"workers": 0, "database": {"backend": "sqlite", "sqlite_dir": )" + fawn::json::quote(folder) + "}}");

    // An agent: a model and one tool, which this program runs.
    const auto agent = fawn::assembly::create(runtime, R"({"model": )" + model() + R"(,
        "system_prompt": "Answer in one sentence. Use the tool for weather.",
        "tools": [{"name": "get_weather", "description": "The weather in a city", "parameters": {"type": "object",
            "properties": {"city": {"type": "string"}}, "required": ["city"]}}]})");
    fawn::dispatcher host(runtime);
    host.tool("get_weather", [](fawn::pending_call& call) {
        const std::string city = call.arg("city");
        std::cout << "[calls get_weather(" << city << ")] ";
        return get_weather(city);
    });

    // The thread "demo", as an earlier start of this program left it.
    const auto thread = fawn::thread::open(runtime, R"({"thread_id": "demo"})");
    recall(thread);

    const auto queue = fawn::queue::create(runtime);
    std::cout << "you:   " << question << "\nagent: ";
    const auto run = fawn::run::start(agent, thread, queue,
        R"({"input": {"messages": [{"role": "user", "content": )" + fawn::json::quote(question) + "}]}}");

    bool failed = false;
    for (const fawn::event& ev : queue.run_events(run)) {
        host.dispatch(ev);
        if (ev.type() == "message_delta") {
            std::cout << ev.text("text") << std::flush;
        } else if (ev.type() == "run_end" && ev.text("status") == "error") {
            failed = true;
            std::cout << '\n' << fawn::error(ev.field("error")).what();
        }
    }
    std::cout << '\n';
    return failed ? 1 : 0;
}

} // namespace

int main(int argc, char** argv) {
    try {
        return chat(argc > 1 ? argv[1] : ".", argc > 2 ? argv[2] : "What is the weather in Paris?");
    } catch (const fawn::error& e) {
        std::cerr << e.what() << '\n';
        return 1;
    }
}
