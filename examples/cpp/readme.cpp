// An agent that calls a function of this program.
#include <fawn.hpp>
#include <iostream>

static std::string get_weather(const std::string& city) {
    return "It is 18 degrees and clear in " + city + ".";
}

int main() try {
    auto runtime = fawn::runtime::create(R"({"workers": 0})");
    auto agent = fawn::assembly::create(runtime, R"({
        "model": {"provider": "scripted", "replies": [
            {"tool_calls": [{"name": "get_weather", "args": {"city": "Paris"}}]},
            {"content": "In Paris it is clear, with 18 degrees."}]},
        "tools": [{"name": "get_weather", "description": "The weather in a city", "parameters":
            {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}]})");
    auto thread = fawn::thread::open(runtime);
    auto queue = fawn::queue::create(runtime);

    fawn::dispatcher host(runtime);
    host.tool("get_weather", [](fawn::pending_call& call) { return get_weather(call.arg("city")); });

    auto run = fawn::run::start(agent, thread, queue, R"({"input": {"messages": ["What is the weather in Paris?"]}})");
    for (const fawn::event& ev : queue.run_events(run)) {
        host.dispatch(ev);
        if (ev.type() == "message_delta") std::cout << ev.text("text");
        if (ev.type() == "run_end") std::cout << "\n(" << ev.text("status") << ")\n";
    }
} catch (const fawn::error& e) {
    std::cerr << e.what() << '\n';
    return 1;
}
