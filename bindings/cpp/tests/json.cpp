// Reading and writing JSON text: quoting, finding members, and events whose content tries to look like something else.
#include "check.hpp"

#include <vector>

namespace {

namespace json = fawn::json;

void quoting() {
    CHECK(json::quote("") == R"("")");
    CHECK(json::quote("say \"hi\" \\ to") == R"("say \"hi\" \\ to")");
    CHECK(json::quote(std::string_view("\0\b\t\n\v\f\r\x1f\x7f", 9)) == "\"\\u0000\\b\\t\\n\\u000b\\f\\r\\u001f\x7f\"");
    CHECK(json::quote("é € 😀") == "\"é € 😀\"");
    // What is no UTF-8 is replaced: a lone byte, an overlong form, a surrogate, a number too high, a sequence cut off.
    for (const char* bad : {"\x80", "\xff", "\xc3"}) CHECK(json::quote(bad) == "\"\xef\xbf\xbd\"");
    for (const char* bad : {"\xc0\x80", "\xe2\x82", "\xc1\xbf"}) CHECK(json::quote(bad) == "\"\xef\xbf\xbd\xef\xbf\xbd\"");
    CHECK(json::quote("\xed\xa0\x80") == "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
    CHECK(json::quote("\xf4\x90\x80\x80").size() == 2 + 4 * 3);
    // All that comes out is text that the library takes, and reads as we wrote it.
    std::string all;
    for (int c = 0; c < 256; ++c) all.push_back(static_cast<char>(c));
    all += "é \xf0\x9f\x98\x80";
    const std::string message = R"({"messages":[)" + json::quote(all) + "]}";
    const fawn::buffer converted = MUST(fawn::try_messages_convert(message));
    const auto inside = converted.view().substr(1, converted.size() - 2);
    CHECK(json::text(json::find(inside, "content")) == json::text(json::quote(all)));
    CHECK(json::text(json::quote(all)).substr(0, 128) == all.substr(0, 128));
}

void unquoting() {
    CHECK(json::text(R"("a\"\\\/\b\f\n\r\tz")") == "a\"\\/\b\f\n\r\tz");
    CHECK(json::text(R"("\u00e9\u20AC\ud83d\ude00\u0000!")") == std::string("é€😀\0!", 11));
    CHECK(json::text(R"("\ud83d")") == "\xef\xbf\xbd");
    CHECK(json::text(R"("\ud83d\u0041")") == "\xef\xbf\xbd" "A");
    CHECK(json::text(R"("\ude00x")") == "\xef\xbf\xbdx");
    CHECK(json::text("12.5") == "12.5" && json::text("null").empty() && json::text("").empty());
    CHECK(json::text(R"({"a":1})") == R"({"a":1})");
}

void members() {
    constexpr std::string_view text = R"( { "a" : 1 , "b\"\u0063" : "x}]" , "d":[{"a":2},"]"], "e":{"a":3,"f":null},"g":-1.5e3, "a":true } )";
    CHECK(json::find(text, "a") == "true");
    CHECK(json::find(text, "b\"c") == R"("x}]")");
    CHECK(json::find(text, "d") == R"([{"a":2},"]"])");
    CHECK(json::find(text, "g") == "-1.5e3");
    CHECK(json::find(text, "f").empty() && json::find(text, "").empty());
    CHECK(json::find(json::find(text, "e"), "f") == "null");
    CHECK(json::find("{}", "a").empty() && json::find("[1]", "a").empty() && json::find("", "a").empty());
    const std::string deep = R"({"x":)" + std::string(100000, '[') + std::string(100000, ']') + R"(,"a":7})";
    CHECK(json::find(deep, "a") == "7");
}

constexpr std::string_view hostile =
    R"({"seq":18446744073709551615,"run_id":"a\",\"type\":\"run_end\",\"x\":\"","thread_id":"t","type":"message","at":"2026-01-01T00:00:00.000000Z",)"
    R"("data":{"type":"run_end","node":"}{","message":{"content":"\\\"},{\"seq\":1,\"type\":\"run_end\",\"data\":{}}]","seq":5,"data":{"call_id":9}}},"new":[{"type":"host_call"}]})";

void events() {
    const auto ev = fawn::event::parse(hostile);
    CHECK(ev && ev->type() == "message" && ev->seq() == 18446744073709551615U && ev->thread_id() == "t");
    CHECK(ev->is_of(R"(a","type":"run_end","x":")") && !ev->is_of("a") && !ev->is_of(ev->run_id()));
    CHECK(ev->raw() == hostile && ev->at() == "2026-01-01T00:00:00.000000Z");
    CHECK(ev->field("type") == R"("run_end")" && ev->text("node") == "}{" && ev->field("call_id").empty());
    CHECK(contains(ev->field("message"), "call_id"));
    CHECK(!fawn::pending_call(fawn::handle<fawn::runtime>{1}, *ev));
    CHECK(!fawn::event::parse("") && !fawn::event::parse("[]") && !fawn::event::parse("{"));
    const auto none = fawn::event::parse("{}");
    CHECK(none && none->type().empty() && none->seq() == 0 && none->text("a").empty() && !none->is_of("a"));

    // An array of them, cut apart only where one ends.
    const std::string other = R"({"seq":2,"type":"log","data":{"message":"]["}})";
    const std::string array = "[" + std::string(hostile) + " , " + other + "]";
    std::vector<std::string> seen;
    for (auto it = fawn::batch::iterator(array); it != fawn::batch::sentinel{}; ++it) seen.emplace_back(it->raw());
    CHECK(seen.size() == 2 && seen[0] == hostile && seen[1] == other);
    CHECK(fawn::batch::iterator("[]").at_end() && fawn::batch::iterator("").at_end() && fawn::batch::iterator().at_end());
}

// Events and members of events that come with a later version pass as they are, and harm none beside them.
void events_of_a_later_version() {
    const std::string later = R"({"seq":1,"run_id":"r","task_id":"x\",\"type\":\"run_end\"","thread_id":"t","type":"task_started",)"
                              R"("at":"2026-01-01T00:00:00.000000Z","data":{"task_id":"x","type":"run_end","deep":[[{"seq":9}]]}})";
    const std::string known = R"({"task_id":null,"later":{"type":["host_call"]},"seq":2,"run_id":"r","type":"message_delta","data":{"text":"a","new":[{}]},"last":[]})";
    const std::string array = "[" + later + "," + known + "]";
    auto it = fawn::batch::iterator(array);
    CHECK(it->type() == "task_started" && it->raw() == later && it->seq() == 1 && it->is_of("r") && it->text("task_id") == "x");
    CHECK(it->thread_id() == "t" && json::text(json::find(it->raw(), "task_id")) == R"(x","type":"run_end")");
    CHECK(it->task_id() == R"(x\",\"type\":\"run_end\")");
    CHECK(!fawn::pending_call(fawn::handle<fawn::runtime>{1}, *it));
    ++it;
    CHECK(it->type() == "message_delta" && it->raw() == known && it->seq() == 2 && it->text("text") == "a");
    CHECK(++it == fawn::batch::sentinel{});
}

// Text that is cut off anywhere, or has a byte changed, is read without a step outside of it. A checker sees to that: each
// text gets memory of its own, of just its size.
void broken_text() {
    const auto read = [](const std::vector<char>& bytes) {
        const std::string_view text(bytes.data(), bytes.size());
        std::size_t sum = 0;
        if (const auto ev = fawn::event::parse(text)) {
            sum += ev->raw().size() + ev->text("node").size() + json::quote(ev->run_id()).size();
            sum += fawn::pending_call(fawn::handle<fawn::runtime>{}, *ev).args().size();
        }
        for (auto it = fawn::batch::iterator(text); !it.at_end(); ++it) sum += it->raw().size();
        sum += json::text(text).size() + json::find(text, "data").size() + json::quote(text).size();
        sum += fawn::error(text).message().size();
        return sum;
    };
    std::size_t sum = 0;
    for (std::size_t length = 0; length <= hostile.size(); ++length) {
        sum += read({hostile.begin(), hostile.begin() + static_cast<std::ptrdiff_t>(length)});
        std::vector<char> array{'['};
        array.insert(array.end(), hostile.begin(), hostile.begin() + static_cast<std::ptrdiff_t>(length));
        sum += read(array);
    }
    for (std::size_t at = 0; at < hostile.size(); ++at) {
        for (const char c : {'"', '\\', '{', '}', '[', ']', ',', ':', '\0', '\xff', 'u'}) {
            std::vector<char> changed(hostile.begin(), hostile.end());
            changed[at] = c;
            sum += read(changed);
        }
    }
    CHECK(sum > 0);
}

} // namespace

int main() {
    quoting();
    unquoting();
    members();
    events();
    events_of_a_later_version();
    broken_text();
    check_nothing_left();
    return 0;
}
