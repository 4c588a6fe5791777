// The few words that the C++ tests are written in. A program that fails says where and ends with 1; one that succeeds says
// nothing. They use the half of fawn.hpp that does not throw, so that they run without exceptions too.
#ifndef CHECK_HPP
#define CHECK_HPP

#include <fawn.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#define CHECK(...)                                                                                   \
    do {                                                                                             \
        if (!(__VA_ARGS__)) fail(__FILE__, __LINE__, #__VA_ARGS__);                                  \
    } while (0)

/// The value of a result; ends the program if it is an error.
#define MUST(...) must(__FILE__, __LINE__, __VA_ARGS__)

/// The result is an error of this status.
#define CHECK_ERROR(number, ...) check_error(__FILE__, __LINE__, fawn::status::number, __VA_ARGS__)

[[noreturn]] inline void fail(const char* file, int line, std::string_view what) {
    std::fprintf(stderr, "%s:%d: %.*s\n", file, line, static_cast<int>(what.size()), what.data());
    std::exit(1);
}

template <class T>
T must(const char* file, int line, fawn::result<T>&& r) {
    if (!r) fail(file, line, r.error().what());
    if constexpr (!std::is_void_v<T>) return *std::move(r);
}

template <class T>
void check_error(const char* file, int line, fawn::status number, const fawn::result<T>& r) {
    if (r) fail(file, line, "no error");
    if (r.error().status() != number) fail(file, line, r.error().what());
}

inline bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

/// No handle and no buffer is alive any more.
inline void check_nothing_left() {
    const fawn::buffer left = MUST(fawn::try_describe("handles"));
    if (left.view() != R"({"handles":[],"buffers":{"count":0,"bytes":0}})") fail(__FILE__, __LINE__, left);
}

/// An assembly that needs no host: its model says the same again and again.
inline constexpr std::string_view talker = R"({"model":{"provider":"scripted","repeat":true,"replies":[{"content":"Done."}]}})";

/// An assembly that calls the tool "look" of the host once in a run.
inline constexpr std::string_view looker = R"({"model":{"provider":"scripted","repeat":true,"replies":[
    {"tool_calls":[{"name":"look","args":{"at":"the \"sky\"","n":3}}]},{"content":"Done."}]},
    "tools":[{"name":"look","parameters":{"type":"object"}}]})";

/// An assembly whose model is the host.
inline constexpr std::string_view host_model = R"({"model":{"provider":"host","model":"mine"}})";

inline constexpr std::string_view hello = R"({"input":{"messages":["Hello"]}})";

/// One of each, of one runtime.
struct objects {
    fawn::runtime runtime;
    fawn::assembly assembly;
    fawn::thread thread;
    fawn::queue queue;

    explicit objects(std::string_view config = "{}", std::string_view agent = talker)
        : runtime(MUST(fawn::runtime::try_create(config))),
          assembly(MUST(fawn::assembly::try_create(runtime, agent))),
          thread(MUST(fawn::thread::try_open(runtime))),
          queue(MUST(fawn::queue::try_create(runtime))) {}

    [[nodiscard]] fawn::run start(std::string_view request = hello) const {
        return MUST(fawn::run::try_start(assembly, thread, queue, request));
    }
    /// The messages of the thread.
    [[nodiscard]] std::string messages() const { return MUST(thread.try_state(R"({"channels":["messages"]})")).str(); }
};

/// Both ways of driving runs.
inline constexpr std::string_view configs[] = {"{}", R"({"workers":0})"};

#endif // CHECK_HPP
