// Runs a conformance script through fawn.hpp and prints what the library answers, byte for byte. The runners of the other
// languages do the same, and what they print is compared.
//
//   runner SCRIPT
#include <fawn.hpp>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

namespace {

[[noreturn]] void give_up(const char* why, std::string_view what = {}) {
    std::fprintf(stderr, "%s%.*s\n", why, static_cast<int>(what.size()), what.data());
    std::exit(1);
}

// Prints a line: what it is, and its text if there is one.
void say(std::string_view what, std::string_view text) {
    std::fwrite(what.data(), 1, what.size(), stdout);
    std::putchar(' ');
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::putchar('\n');
}

void say_answer(const fawn::result<fawn::buffer>& answer) {
    if (answer) say("ok", answer->view());
    else say("error", answer.error().raw());
}

// Prints how an answer to a host call went: nothing if it arrived.
void say_action(const fawn::result<fawn::status>& done) {
    if (!done) say("error", done.error().raw());
    else if (*done == fawn::status::gone) std::puts("gone");
}

// Puts a new object in the place of the current one, which is freed then.
template <class Object>
void replace(Object& current, fawn::result<Object>&& made) {
    if (!made) return say("error", made.error().raw());
    current = *std::move(made);
    std::puts("ok");
}

// Frees an object early and keeps its handle, so that later uses reach the library.
template <class Object>
void free_early(Object& current) {
    const auto freed = current.get();
    current.reset();
    current = Object(freed);
    std::puts("ok");
}

struct command {
    std::string_view verb, text;
};

class runner {
public:
    explicit runner(std::string_view script) : rest_(script) {}

    void run_all() {
        while (const auto next = read()) carry_out(*next);
    }

private:
    // The next line that is neither empty nor a remark.
    std::optional<command> read() {
        while (!rest_.empty()) {
            const auto end = rest_.find('\n');
            const auto line = rest_.substr(0, end);
            rest_ = end == std::string_view::npos ? std::string_view() : rest_.substr(end + 1);
            if (line.empty() || line.front() == '#') continue;
            return cut(line);
        }
        return std::nullopt;
    }

    static command cut(std::string_view line) {
        const auto space = line.find(' ');
        if (space == std::string_view::npos) return {line, {}};
        return {line.substr(0, space), line.substr(space + 1)};
    }

    void carry_out(const command& c) {
        if (c.verb == "runtime") replace(runtime_, fawn::runtime::try_create(c.text));
        else if (c.verb == "assembly") replace(assembly_, fawn::assembly::try_create(runtime_, c.text));
        else if (c.verb == "thread") replace(thread_, fawn::thread::try_open(runtime_, c.text));
        else if (c.verb == "queue") replace(queue_, fawn::queue::try_create(runtime_, c.text));
        else if (c.verb == "run") run(c.text);
        else if (c.verb == "free" && c.text == "runtime") free_early(runtime_);
        else if (c.verb == "free" && c.text == "assembly") free_early(assembly_);
        else if (c.verb == "free" && c.text == "thread") free_early(thread_);
        else if (c.verb == "free" && c.text == "queue") free_early(queue_);
        else if (c.verb == "describe") say_answer(fawn::try_describe(c.text));
        else if (c.verb == "reduce") say_answer(fawn::try_reduce(cut(c.text).verb, cut(c.text).text));
        else if (c.verb == "convert") say_answer(fawn::try_messages_convert(c.text));
        else if (c.verb == "update") say_answer(thread_.try_update(c.text));
        else if (c.verb == "state") say_answer(thread_.try_state(c.text));
        else if (c.verb == "history") say_answer(thread_.try_history(c.text));
        else if (c.verb == "goal") say_answer(thread_.try_goal(c.text));
        else if (c.verb == "submit") say_answer(runtime_.try_submit(c.text));
        else if (c.verb == "descriptor") say_answer(assembly_.try_descriptor());
        else if (c.verb == "stats") say_answer(runtime_.try_stats());
        else if (c.verb == "shutdown") shut_down();
        else give_up("unknown command ", c.verb);
    }

    void shut_down() {
        auto down = runtime_.try_shutdown();
        if (down) say("ok", down->view());
        else say("error", down.error().raw());
    }

    void run(std::string_view request) {
        auto started = queue_ ? fawn::run::try_start(assembly_, thread_, queue_, request)
                              : fawn::run::try_start(assembly_, thread_, request);
        if (started) follow(*started);
        else say("error", started.error().raw());
        for (auto c = read(); c && c->verb != "end"; c = read()) continue;
    }

    void follow(const fawn::run& run) {
        if (queue_) {
            auto events = queue_.try_events(); // of whatever run, as the runners of the other languages
            for (const fawn::event& ev : events) {
                say("event", ev.raw());
                if (ev.type() == "host_call") answer(run, fawn::pending_call(runtime_, ev));
                if (ev.type() == "run_end") break;
            }
            if (events.status() != fawn::status::ok) give_up("events ended with ", fawn::status_name(events.status()));
        }
        const auto result = run.try_wait();
        if (!result || !*result) give_up("no result");
        say("result", result->view());
    }

    // Carries out the lines up to the one that answers a host call.
    void answer(const fawn::run& run, fawn::pending_call call) {
        while (const auto c = read()) {
            if (c->verb == "emit") {
                say_action(call.try_emit(c->text));
            } else if (c->verb == "finish") {
                say_action(call.try_finish(fawn::answer::document(c->text)));
                break;
            } else if (c->verb == "cancel") {
                if (const auto done = run.try_cancel("golden"); !done) say("error", done.error().raw());
                break;
            } else if (c->verb == "end") {
                give_up("no answer for a host call");
            } else {
                carry_out(*c);
            }
        }
        call.release(); // a script may leave a call open
    }

    std::string_view rest_;
    fawn::runtime runtime_;
    fawn::assembly assembly_;
    fawn::thread thread_;
    fawn::queue queue_;
};

} // namespace

int main(int argc, char** argv) {
    if (argc != 2) give_up("usage: runner SCRIPT");
    std::ifstream file(argv[1], std::ios::binary);
    if (!file) give_up("cannot read ", argv[1]);
    const std::string script((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    runner(script).run_all();
    return 0;
}
