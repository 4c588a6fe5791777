/// @file fawn.hpp
/// fawn in C++: owners, text, errors and iteration over fawn.h. Header only, C++17 or later, nothing but the standard
/// library. fawn.h says what each call does; here is only what C++ adds.
///
/// Every call comes twice. `try_x` never throws and answers a `fawn::result<T>`; `x` is the same call, which answers the T
/// and throws `fawn::error`. Without exceptions (-fno-exceptions) there are only the former. What is no error is a value
/// in both: `status::timeout`, `closed`, `interrupted`, `gone`.
///
/// Text goes in as `std::string_view`; it is copied before the call returns. Text comes out as a `fawn::buffer`, which owns
/// it, and is read as a `std::string_view` or copied by `str()`.
///
/// `runtime`, `subagents`, `assembly`, `thread`, `queue` and `run` own their handles: they move, do not copy, and free what they hold, in
/// any order. An object that was moved from holds none, and calls on it answer `status::err_handle`. Their calls may be made
/// from several OS threads at once; moving, resetting and destroying one object while another OS thread uses it may not.

#ifndef FAWN_HPP
#define FAWN_HPP

#include <fawn.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#if defined(__has_include)
#if __has_include(<version>)
#include <version>
#endif
#endif
#if defined(__cpp_lib_expected)
#include <expected>
#endif

#if __cplusplus < 201703L && (!defined(_MSVC_LANG) || _MSVC_LANG < 201703L)
#error "fawn.hpp needs C++17 or later"
#endif

/// 1 where the throwing half of the interface exists.
#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
#define FAWN_HPP_EXCEPTIONS 1
#else
#define FAWN_HPP_EXCEPTIONS 0
#endif

// What `result` is depends on the standard, and half of the interface on exceptions. Each combination has names of its own
// for the linker, so that objects that were compiled differently can be linked into one program.
#if defined(__cpp_lib_expected) && FAWN_HPP_EXCEPTIONS
#define FAWN_HPP_FLAVOUR expected_throwing
#elif defined(__cpp_lib_expected)
#define FAWN_HPP_FLAVOUR expected_only
#elif FAWN_HPP_EXCEPTIONS
#define FAWN_HPP_FLAVOUR result_throwing
#else
#define FAWN_HPP_FLAVOUR result_only
#endif

namespace fawn {
inline namespace FAWN_HPP_FLAVOUR {

class runtime;
class subagents;
class assembly;
class thread;
class queue;
class run;
class event;

/// How a call went. `ok` and those above it are outcomes, those below are errors. A newer library may answer a number that
/// is not named here.
enum class status : std::int32_t {
    ok = FAWN_OK,
    timeout = FAWN_TIMEOUT,
    closed = FAWN_CLOSED,
    interrupted = FAWN_INTERRUPTED,
    gone = FAWN_GONE,

    err_argument = FAWN_ERR_ARGUMENT,
    err_handle = FAWN_ERR_HANDLE,
    err_not_utf8 = FAWN_ERR_NOT_UTF8,
    err_abi = FAWN_ERR_ABI,
    err_forked = FAWN_ERR_FORKED,
    err_panic = FAWN_ERR_PANIC,
    err_closed = FAWN_ERR_CLOSED,
    err_wrong_thread = FAWN_ERR_WRONG_THREAD,
    err_too_large = FAWN_ERR_TOO_LARGE,
    err_unsupported = FAWN_ERR_UNSUPPORTED,
    err_json_syntax = FAWN_ERR_JSON_SYNTAX,
    err_json_depth = FAWN_ERR_JSON_DEPTH,
    err_unknown_member = FAWN_ERR_UNKNOWN_MEMBER,
    err_wrong_type = FAWN_ERR_WRONG_TYPE,
    err_out_of_range = FAWN_ERR_OUT_OF_RANGE,
    err_missing_member = FAWN_ERR_MISSING_MEMBER,
    err_unknown_variant = FAWN_ERR_UNKNOWN_VARIANT,
    err_unknown_channel = FAWN_ERR_UNKNOWN_CHANNEL,
    err_conflict = FAWN_ERR_CONFLICT,
    err_null_write = FAWN_ERR_NULL_WRITE,
    err_message_incomplete = FAWN_ERR_MESSAGE_INCOMPLETE,
    err_unknown_role = FAWN_ERR_UNKNOWN_ROLE,
    err_not_a_message = FAWN_ERR_NOT_A_MESSAGE,
    err_message_invalid = FAWN_ERR_MESSAGE_INVALID,
    err_message_member = FAWN_ERR_MESSAGE_MEMBER,
    err_arguments_syntax = FAWN_ERR_ARGUMENTS_SYNTAX,
    err_message_extra = FAWN_ERR_MESSAGE_EXTRA,
    err_unknown_message_id = FAWN_ERR_UNKNOWN_MESSAGE_ID,
    err_sandbox_conflict = FAWN_ERR_SANDBOX_CONFLICT,
    err_entry_member = FAWN_ERR_ENTRY_MEMBER,
    err_entry_type = FAWN_ERR_ENTRY_TYPE,
    err_conflicting_writes = FAWN_ERR_CONFLICTING_WRITES,
    err_unknown_model = FAWN_ERR_UNKNOWN_MODEL,
    err_unknown_agent = FAWN_ERR_UNKNOWN_AGENT,
    err_not_authorized = FAWN_ERR_NOT_AUTHORIZED,
    err_assembly_invalid = FAWN_ERR_ASSEMBLY_INVALID,
    err_thread_busy = FAWN_ERR_THREAD_BUSY,
    err_unknown_checkpoint = FAWN_ERR_UNKNOWN_CHECKPOINT,
    err_store = FAWN_ERR_STORE,
    err_store_corrupt = FAWN_ERR_STORE_CORRUPT,
    err_thread_stale = FAWN_ERR_THREAD_STALE,
    err_recursion_limit = FAWN_ERR_RECURSION_LIMIT,
    err_cancelled = FAWN_ERR_CANCELLED,
    err_middleware = FAWN_ERR_MIDDLEWARE,
    err_no_queue = FAWN_ERR_NO_QUEUE,
    err_deadline_exceeded = FAWN_ERR_DEADLINE_EXCEEDED,
    err_queue_closed = FAWN_ERR_QUEUE_CLOSED,
    err_behind = FAWN_ERR_BEHIND,
    err_model_auth = FAWN_ERR_MODEL_AUTH,
    err_model_request = FAWN_ERR_MODEL_REQUEST,
    err_model_rate_limit = FAWN_ERR_MODEL_RATE_LIMIT,
    err_model_server = FAWN_ERR_MODEL_SERVER,
    err_model_connection = FAWN_ERR_MODEL_CONNECTION,
    err_model_timeout = FAWN_ERR_MODEL_TIMEOUT,
    err_model_protocol = FAWN_ERR_MODEL_PROTOCOL,
    err_model_truncated = FAWN_ERR_MODEL_TRUNCATED,
    err_script_exhausted = FAWN_ERR_SCRIPT_EXHAUSTED,
    err_model_host = FAWN_ERR_MODEL_HOST,
    err_model_unavailable = FAWN_ERR_MODEL_UNAVAILABLE,
    err_model_no_answer = FAWN_ERR_MODEL_NO_ANSWER,
    err_internal = FAWN_ERR_INTERNAL,
};

/// Whether a status is an error, which it is below `ok`.
[[nodiscard]] constexpr bool is_error(status s) noexcept { return static_cast<std::int32_t>(s) < 0; }

/// The name of a status as fawn.h has it, such as "FAWN_TIMEOUT"; "FAWN_UNKNOWN" for a number that the library does not know.
[[nodiscard]] inline const char* status_name(status s) noexcept { return fawn_status_name(static_cast<std::int32_t>(s)); }

namespace detail {

/// Walks over JSON text. It finds where values begin and end and leaves checking them to whoever reads them; text that is
/// not whole ends the walk, and nothing outside of the text is ever read. Needs no memory, however deep the text nests.
class scanner {
public:
    explicit scanner(std::string_view text) noexcept : at_(text.data()), end_(text.data() + text.size()) {}

    /// Passes one character of the structure, and white space before it.
    bool take(char c) noexcept {
        space();
        if (at_ == end_ || *at_ != c) return false;
        ++at_;
        return true;
    }

    /// Passes a string and gives what is between its quotes, escapes as they stand.
    bool string(std::string_view& inside) noexcept {
        if (!take('"')) return false;
        const char* begin = at_;
        if (!rest_of_string()) return false;
        inside = between(begin, at_ - 1);
        return true;
    }

    /// Passes any value and gives its text.
    bool value(std::string_view& raw) noexcept {
        space();
        const char* begin = at_;
        if (at_ == end_) return false;
        bool whole = false;
        switch (*at_) {
        case '"':
            ++at_;
            whole = rest_of_string();
            break;
        case '{':
        case '[': whole = container(); break;
        default:
            while (at_ != end_ && !ends_scalar(*at_)) ++at_;
            whole = at_ != begin;
        }
        raw = between(begin, at_);
        return whole;
    }

    /// Passes an object and shows each of its members: `visit(name between its quotes, text of the value)`.
    template <class Visit>
    bool object(Visit visit) noexcept {
        if (!take('{')) return false;
        if (take('}')) return true;
        do {
            std::string_view name, member;
            if (!string(name) || !take(':') || !value(member)) return false;
            visit(name, member);
        } while (take(','));
        return take('}');
    }

    /// Passes white space.
    void space() noexcept {
        while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
    }

    /// Where the walk stands.
    [[nodiscard]] const char* at() const noexcept { return at_; }

    static std::string_view between(const char* begin, const char* end) noexcept {
        return {begin, static_cast<std::size_t>(end - begin)};
    }

private:
    static bool ends_scalar(char c) noexcept {
        return c == ',' || c == '}' || c == ']' || c == ':' || c == ' ' || c == '\n' || c == '\r' || c == '\t';
    }

    /// Passes what is left of a string, its end quote too: eight bytes at a time while there is neither quote nor backslash
    /// among them, and then to the next of these.
    bool rest_of_string() noexcept {
        constexpr std::uint64_t ones = 0x0101010101010101, tops = 0x8080808080808080;
        constexpr auto has_zero = [](std::uint64_t word) { return (word - ones) & ~word & tops; };
        for (;;) {
            while (end_ - at_ >= 8) {
                std::uint64_t word = 0;
                std::memcpy(&word, at_, 8);
                if ((has_zero(word ^ (ones * '"')) | has_zero(word ^ (ones * '\\'))) != 0) break;
                at_ += 8;
            }
            while (at_ != end_ && *at_ != '"' && *at_ != '\\') ++at_;
            if (at_ == end_) return false;
            if (*at_++ == '"') return true;
            if (at_ != end_) ++at_;
        }
    }

    bool container() noexcept {
        std::size_t depth = 0;
        while (at_ != end_) {
            switch (*at_++) {
            case '{':
            case '[': ++depth; break;
            case '}':
            case ']':
                if (--depth == 0) return true;
                break;
            case '"':
                if (!rest_of_string()) return false;
                break;
            default: break;
            }
        }
        return false;
    }

    const char* at_;
    const char* end_;
};

inline void append_utf8(std::string& out, std::uint32_t c) {
    const auto put = [&out](std::uint32_t byte) { out.push_back(static_cast<char>(static_cast<unsigned char>(byte))); };
    if (c < 0x80) {
        put(c);
    } else if (c < 0x800) {
        put(0xc0 | (c >> 6));
        put(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
        put(0xe0 | (c >> 12));
        put(0x80 | ((c >> 6) & 0x3f));
        put(0x80 | (c & 0x3f));
    } else {
        put(0xf0 | (c >> 18));
        put(0x80 | ((c >> 12) & 0x3f));
        put(0x80 | ((c >> 6) & 0x3f));
        put(0x80 | (c & 0x3f));
    }
}

/// Reads the four hexadecimal digits of an escape.
inline bool hex4(std::string_view text, std::size_t at, std::uint32_t& value) noexcept {
    if (text.size() < at + 4) return false;
    value = 0;
    for (const char c : text.substr(at, 4)) {
        std::uint32_t digit = 0;
        if (c >= '0' && c <= '9') digit = static_cast<std::uint32_t>(c - '0');
        else if (c >= 'a' && c <= 'f') digit = static_cast<std::uint32_t>(c - 'a') + 10;
        else if (c >= 'A' && c <= 'F') digit = static_cast<std::uint32_t>(c - 'A') + 10;
        else return false;
        value = value * 16 + digit;
    }
    return true;
}

/// What the inside of a JSON string stands for. A lone surrogate becomes U+FFFD.
inline std::string unescape(std::string_view inside) {
    std::string out;
    out.reserve(inside.size());
    for (std::size_t at = 0; at < inside.size(); ++at) {
        const char c = inside[at];
        if (c != '\\' || at + 1 == inside.size()) {
            out.push_back(c);
            continue;
        }
        switch (inside[++at]) {
        case 'n': out.push_back('\n'); break;
        case 't': out.push_back('\t'); break;
        case 'r': out.push_back('\r'); break;
        case 'b': out.push_back('\b'); break;
        case 'f': out.push_back('\f'); break;
        case 'u': {
            std::uint32_t unit = 0, second = 0;
            if (!hex4(inside, at + 1, unit)) break;
            at += 4;
            const bool high = unit >= 0xd800 && unit < 0xdc00;
            if (high && inside.substr(at + 1, 2) == "\\u" && hex4(inside, at + 3, second) && second >= 0xdc00 &&
                second < 0xe000) {
                at += 6;
                unit = 0x10000 + ((unit - 0xd800) << 10) + (second - 0xdc00);
            } else if (unit >= 0xd800 && unit < 0xe000) {
                unit = 0xfffd;
            }
            append_utf8(out, unit);
            break;
        }
        default: out.push_back(inside[at]);
        }
    }
    return out;
}

/// Whether the inside of a JSON string stands for `text`.
inline bool stands_for(std::string_view inside, std::string_view text) {
    if (inside == text) return inside.find('\\') == std::string_view::npos;
    return inside.size() > text.size() && inside.find('\\') != std::string_view::npos && unescape(inside) == text;
}

/// The length of the UTF-8 sequence at the beginning of `text`, which is not empty; 0 if it is none.
inline std::size_t utf8_length(std::string_view text) noexcept {
    const auto byte = [text](std::size_t at) { return static_cast<unsigned char>(text[at]); };
    const auto follows = [text, byte](std::size_t at, unsigned low = 0x80, unsigned high = 0xbf) {
        return at < text.size() && byte(at) >= low && byte(at) <= high;
    };
    const unsigned first = byte(0);
    if (first < 0x80) return 1;
    if (first < 0xc2) return 0;
    if (first < 0xe0) return follows(1) ? 2 : 0;
    if (first < 0xf0) {
        const bool second = follows(1, first == 0xe0 ? 0xa0 : 0x80, first == 0xed ? 0x9f : 0xbf);
        return second && follows(2) ? 3 : 0;
    }
    if (first > 0xf4) return 0;
    const bool second = follows(1, first == 0xf0 ? 0x90 : 0x80, first == 0xf4 ? 0x8f : 0xbf);
    return second && follows(2) && follows(3) ? 4 : 0;
}

/// What is between the quotes, if the text is a string; else nothing.
inline std::string_view inside_string(std::string_view raw) noexcept {
    return raw.size() >= 2 && raw.front() == '"' ? raw.substr(1, raw.size() - 2) : std::string_view();
}

inline std::uint64_t to_number(std::string_view raw) noexcept {
    std::uint64_t number = 0;
    for (const char c : raw) {
        if (c < '0' || c > '9') break;
        number = number * 10 + static_cast<std::uint64_t>(c - '0');
    }
    return number;
}

} // namespace detail

/// The little that hosts need to write and read JSON text without a library for it. Take one for more.
namespace json {

/// A JSON string, quotes included, that stands for `text`. Bytes that are no UTF-8 become U+FFFD.
[[nodiscard]] inline std::string quote(std::string_view text) {
    std::string out;
    out.reserve(text.size() + 2);
    out.push_back('"');
    for (std::size_t at = 0; at < text.size();) {
        const auto c = static_cast<unsigned char>(text[at]);
        if (c == '"' || c == '\\') {
            out.push_back('\\');
            out.push_back(text[at++]);
        } else if (c < 0x20) {
            constexpr std::string_view digits = "0123456789abcdef", letters = "btn fr";
            out.push_back('\\');
            if (c >= 8 && c <= 13 && c != 11) {
                out.push_back(letters[c - 8U]);
            } else {
                out.append("u00");
                out.push_back(digits[c >> 4]);
                out.push_back(digits[c & 15]);
            }
            ++at;
        } else {
            const std::size_t length = detail::utf8_length(text.substr(at));
            if (length == 0) out.append("\xef\xbf\xbd");
            else out.append(text, at, length);
            at += length == 0 ? 1 : length;
        }
    }
    out.push_back('"');
    return out;
}

/// The text of a member of a JSON object; empty if `object` is none or has no such member. Only members of the object
/// itself count, not those of values inside it. Of two members with one name the last counts, as in the library.
[[nodiscard]] inline std::string_view find(std::string_view object, std::string_view name) {
    std::string_view found;
    const bool whole = detail::scanner(object).object([&](std::string_view member, std::string_view value) {
        if (detail::stands_for(member, name)) found = value;
    });
    return whole ? found : std::string_view();
}

/// What a JSON string stands for. Text of another value is answered as it is, but for null, which is empty text.
[[nodiscard]] inline std::string text(std::string_view value) {
    if (!value.empty() && value.front() == '"') return detail::unescape(detail::inside_string(value));
    return value == "null" ? std::string() : std::string(value);
}

} // namespace json

namespace detail {

/// The text of an object with a member before its others, so that one of that name which it has already counts. Text of
/// something else is answered as it is.
inline std::string with_first(std::string_view object, std::string_view name, std::string_view value) {
    constexpr std::string_view space = " \t\r\n";
    const std::size_t open = object.find_first_not_of(space);
    if (open == std::string_view::npos || object[open] != '{') return std::string(object);
    std::string out(object.substr(0, open + 1));
    out.append(json::quote(name)).append(":").append(value);
    const std::size_t next = object.find_first_not_of(space, open + 1);
    if (next != std::string_view::npos && object[next] != '}') out.push_back(',');
    return out.append(object.substr(open + 1));
}

} // namespace detail

/// The error of a call, or of a run. Copies share what it says; copying does not throw.
class error : public std::exception {
public:
    /// What an error object says (schema "error"), such as the member "error" of a run's result. Other text is the message of
    /// an error of the host's own, which has the status `err_internal`.
    explicit error(std::string_view text) : error(text, status::err_internal) {}

    /// The error of a call that answered a status, with its error object if there is one.
    error(std::string_view raw, fawn::status answered) {
        auto says = std::make_shared<data>();
        says->number = answered;
        (!raw.empty() && raw.front() == '{' ? says->raw : says->message) = raw;
        detail::scanner(raw).object([&](std::string_view name, std::string_view value) {
            if (name == "code") says->code = json::text(value);
            else if (name == "message") says->message = json::text(value);
            else if (name == "path") says->path = json::text(value);
            else if (name == "retryable") says->retryable = value == "true";
            else if (name == "status" && value.size() > 1 && value.front() == '-')
                says->number = static_cast<fawn::status>(-static_cast<std::int32_t>(detail::to_number(value.substr(1))));
        });
        if (says->code.empty()) says->code = code_of(says->number);
        if (says->message.empty()) says->message = status_name(says->number);
        says->what = says->code + ": " + says->message;
        if (!says->path.empty()) says->what += " (at " + says->path + ")";
        says_ = std::move(says);
    }

    /// The number: `status::err_thread_busy`.
    [[nodiscard]] fawn::status status() const noexcept { return says_->number; }
    /// What kind of failure, from a closed list: "thread_busy".
    [[nodiscard]] const std::string& code() const noexcept { return says_->code; }
    /// What went wrong, in words.
    [[nodiscard]] const std::string& message() const noexcept { return says_->message; }
    /// JSON pointer into what was sent; empty if that is not at fault.
    [[nodiscard]] const std::string& path() const noexcept { return says_->path; }
    /// Whether the same call may succeed later.
    [[nodiscard]] bool retryable() const noexcept { return says_->retryable; }
    /// The error object as the library wrote it; empty where there is none.
    [[nodiscard]] const std::string& raw() const noexcept { return says_->raw; }
    /// Code, message and path in a line.
    [[nodiscard]] const char* what() const noexcept override { return says_->what.c_str(); }

    // Declared so that there is no move, which would leave an error without its text.
    error(const error&) noexcept = default;
    error& operator=(const error&) noexcept = default;
    ~error() override = default;

private:
    struct data {
        fawn::status number = fawn::status::err_internal;
        std::string raw, code, message, path, what;
        bool retryable = false;
    };

    /// The code of a status, for the calls that have no error object: its name, FAWN_ERR_THREAD_BUSY, as "thread_busy".
    static std::string code_of(fawn::status number) {
        std::string code = status_name(number);
        const std::string_view prefix = "FAWN_ERR_";
        if (code.compare(0, prefix.size(), prefix) == 0) code.erase(0, prefix.size());
        for (char& c : code) {
            if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
        }
        return code;
    }

    std::shared_ptr<const data> says_;
};

#if defined(__cpp_lib_expected)

/// What a call that does not throw answers: a T or a `fawn::error`.
template <class T>
using result = std::expected<T, error>;
/// Wraps the error of a result: `return fawn::unexpected(e);`.
using unexpected = std::unexpected<error>;

#else

/// Wraps the error of a result: `return fawn::unexpected(e);`.
class unexpected {
public:
    explicit unexpected(fawn::error e) noexcept : error_(std::move(e)) {}
    [[nodiscard]] const fawn::error& error() const noexcept { return error_; }

private:
    fawn::error error_;
};

/// What a call that does not throw answers: a T or a `fawn::error`. The part of `std::expected` that reads the same under
/// C++23, where `result` is that type; so there is no `value()`, which throws something else there. See `unwrap`.
template <class T>
class [[nodiscard]] result {
public:
    using value_type = T;
    using error_type = fawn::error;

    template <class U = T, class = std::enable_if_t<std::is_convertible_v<U&&, T> && !std::is_same_v<std::decay_t<U>, result> &&
                                                    !std::is_same_v<std::decay_t<U>, unexpected>>>
    result(U&& value) noexcept(std::is_nothrow_constructible_v<T, U&&>) : held_(std::in_place_index<0>, std::forward<U>(value)) {}
    result(const unexpected& e) noexcept : held_(std::in_place_index<1>, e.error()) {}

    [[nodiscard]] bool has_value() const noexcept { return held_.index() == 0; }
    [[nodiscard]] explicit operator bool() const noexcept { return has_value(); }

    // As with std::expected, the value is asked for only where there is one, the error only where there is one.
    [[nodiscard]] T& operator*() & noexcept { return *std::get_if<0>(&held_); }
    [[nodiscard]] const T& operator*() const& noexcept { return *std::get_if<0>(&held_); }
    [[nodiscard]] T&& operator*() && noexcept { return std::move(*std::get_if<0>(&held_)); }
    [[nodiscard]] T* operator->() noexcept { return std::get_if<0>(&held_); }
    [[nodiscard]] const T* operator->() const noexcept { return std::get_if<0>(&held_); }
    [[nodiscard]] const fawn::error& error() const noexcept { return *std::get_if<1>(&held_); }

    template <class U>
    [[nodiscard]] T value_or(U&& other) && {
        return has_value() ? std::move(**this) : static_cast<T>(std::forward<U>(other));
    }
    template <class U>
    [[nodiscard]] T value_or(U&& other) const& {
        return has_value() ? **this : static_cast<T>(std::forward<U>(other));
    }

private:
    std::variant<T, fawn::error> held_;
};

/// A result of a call that answers nothing.
template <>
class [[nodiscard]] result<void> {
public:
    using value_type = void;
    using error_type = fawn::error;

    result() noexcept = default;
    result(const unexpected& e) noexcept : error_(e.error()) {}

    [[nodiscard]] bool has_value() const noexcept { return !error_; }
    [[nodiscard]] explicit operator bool() const noexcept { return has_value(); }
    void operator*() const noexcept {}
    [[nodiscard]] const fawn::error& error() const noexcept { return *error_; }

private:
    std::optional<fawn::error> error_;
};

#endif

#if FAWN_HPP_EXCEPTIONS
/// The value of a result; throws its `fawn::error` if it has none.
template <class T>
T unwrap(result<T>&& r) {
    if (!r) throw error(r.error());
    if constexpr (!std::is_void_v<T>) return *std::move(r);
}
#endif

/// Text that the library gave, and its owner. Moves, does not copy. `c_str()[size()]` is 0.
class buffer {
public:
    buffer() noexcept = default;
    /// Takes over what a C function has filled.
    explicit buffer(const fawn_buf& filled) noexcept : held_(filled) {}
    buffer(buffer&& other) noexcept : held_(other.release()) {}
    buffer& operator=(buffer&& other) noexcept {
        if (this != &other) {
            fawn_buf_free(&held_);
            held_ = other.release();
        }
        return *this;
    }
    buffer(const buffer&) = delete;
    buffer& operator=(const buffer&) = delete;
    ~buffer() {
        if (held_.data != nullptr) fawn_buf_free(&held_);
    }

    /// The text, as long as this buffer is neither changed nor destroyed.
    [[nodiscard]] std::string_view view() const noexcept { return {c_str(), held_.len}; }
    [[nodiscard]] operator std::string_view() const noexcept { return view(); }
    /// A copy of the text.
    [[nodiscard]] std::string str() const { return std::string(view()); }
    /// The text with a 0 behind it; never null.
    [[nodiscard]] const char* c_str() const noexcept { return held_.data != nullptr ? held_.data : ""; }
    [[nodiscard]] std::size_t size() const noexcept { return held_.len; }
    [[nodiscard]] bool empty() const noexcept { return held_.len == 0; }
    /// Gives the text away; the caller frees it with `fawn_buf_free`.
    [[nodiscard]] fawn_buf release() noexcept { return std::exchange(held_, fawn_buf{nullptr, 0, 0}); }

private:
    fawn_buf held_{nullptr, 0, 0};
};

/// How a call that waits has ended, and its answer if that was `status::ok`.
class outcome {
public:
    outcome(fawn::status how, buffer answer) noexcept : how_(how), answer_(std::move(answer)) {}

    /// `ok`, `timeout` or `closed`.
    [[nodiscard]] fawn::status status() const noexcept { return how_; }
    /// Whether there is an answer.
    [[nodiscard]] explicit operator bool() const noexcept { return how_ == fawn::status::ok; }
    /// The answer; empty without one.
    [[nodiscard]] std::string_view view() const noexcept { return answer_.view(); }
    [[nodiscard]] const buffer& answer() const& noexcept { return answer_; }
    [[nodiscard]] buffer answer() && noexcept { return std::move(answer_); }

private:
    fawn::status how_;
    buffer answer_;
};

/// Says that a call waits as long as it takes.
struct forever_t {
    explicit forever_t() = default;
};
inline constexpr forever_t forever{};

/// How long a call may wait: `fawn::forever`, or a duration of std::chrono, rounded up to whole milliseconds. A duration
/// that is not above zero does not wait, as when a deadline has passed; it never means for ever.
class timeout {
public:
    constexpr timeout(forever_t) noexcept : ms_(-1) {}
    template <class Rep, class Period>
    constexpr timeout(std::chrono::duration<Rep, Period> duration) noexcept : ms_(whole_ms(duration)) {}

    /// As the C functions take it: -1 for ever.
    [[nodiscard]] constexpr std::int64_t count() const noexcept { return ms_; }

private:
    template <class Duration>
    static constexpr std::int64_t whole_ms(Duration duration) noexcept {
        if (!(duration > Duration::zero())) return 0;
        // What does not fit into 64 bits of milliseconds is longer than anybody waits.
        if (std::chrono::duration<double, std::milli>(duration).count() > 4e18) return -1;
        return static_cast<std::int64_t>(std::chrono::ceil<std::chrono::milliseconds>(duration).count());
    }

    std::int64_t ms_;
};

/// The handle of an Object, which owns nothing: a number for C functions, logs and tables. 0 is none. Handles of two kinds
/// do not mix.
template <class Object>
struct handle {
    std::uint64_t value = 0;

    [[nodiscard]] explicit operator bool() const noexcept { return value != 0; }
    friend bool operator==(handle a, handle b) noexcept { return a.value == b.value; }
    friend bool operator!=(handle a, handle b) noexcept { return a.value != b.value; }
    friend bool operator<(handle a, handle b) noexcept { return a.value < b.value; }
};

namespace detail {

inline void free_handle(handle<runtime> h) noexcept { fawn_runtime_free(h.value); }
inline void free_handle(handle<subagents> h) noexcept { fawn_subagents_free(h.value); }
inline void free_handle(handle<assembly> h) noexcept { fawn_assembly_free(h.value); }
inline void free_handle(handle<thread> h) noexcept { fawn_thread_free(h.value); }
inline void free_handle(handle<queue> h) noexcept { fawn_queue_free(h.value); }
inline void free_handle(handle<run> h) noexcept { fawn_run_free(h.value); }

/// Owns a handle and frees it: what the six objects have in common.
template <class Object>
class owner {
public:
    owner() noexcept = default;
    /// Takes over a handle that a C function or `release` gave.
    explicit owner(handle<Object> held) noexcept : held_(held) {}
    owner(owner&& other) noexcept : held_(other.release()) {}
    owner& operator=(owner&& other) noexcept {
        if (this != &other) reset(other.release());
        return *this;
    }
    owner(const owner&) = delete;
    owner& operator=(const owner&) = delete;
    ~owner() {
        if (held_) free_handle(held_);
    }

    /// The handle, which stays owned.
    [[nodiscard]] handle<Object> get() const noexcept { return held_; }
    /// Gives the handle away; the caller frees it.
    [[nodiscard]] handle<Object> release() noexcept { return std::exchange(held_, handle<Object>()); }
    /// Frees the handle, and takes another if there is one.
    void reset(handle<Object> other = {}) noexcept { free_handle(std::exchange(held_, other)); }
    /// Whether there is a handle.
    [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(held_); }

protected:
    [[nodiscard]] std::uint64_t raw() const noexcept { return held_.value; }

private:
    handle<Object> held_;
};

/// The error of a call: its status and the error object in its buffer, which is freed.
inline unexpected failure(std::int32_t number, const fawn_buf& filled) {
    return unexpected(error(buffer(filled).view(), static_cast<status>(number)));
}

/// Does a call with an answer: `call(out)`.
template <class Call>
result<buffer> answer_of(Call call) noexcept {
    fawn_buf out{nullptr, 0, 0};
    const std::int32_t number = call(&out);
    if (number < 0) return failure(number, out);
    return buffer(out);
}

/// What a member of an answer stands for.
inline result<std::string> member_of(const result<buffer>& answered, std::string_view name) {
    if (!answered) return unexpected(answered.error());
    return json::text(json::find(*answered, name));
}

/// Does a call that waits, whose outcome is not only its answer: `call(out)`.
template <class Ended, class Call>
result<Ended> ended_of(Call call) noexcept {
    fawn_buf out{nullptr, 0, 0};
    const std::int32_t number = call(&out);
    if (number < 0) return failure(number, out);
    return Ended(static_cast<status>(number), buffer(out));
}

/// Does a call that makes an Object: `call(handle, err)`.
template <class Object, class Call>
result<Object> made_by(Call call) noexcept {
    fawn_buf err{nullptr, 0, 0};
    handle<Object> made;
    const std::int32_t number = call(&made.value, &err);
    if (number < 0) return failure(number, err);
    return Object(made);
}

/// Does a call that answers nothing but how it went: `call(err)`.
template <class Call>
result<status> done_by(Call call) noexcept {
    fawn_buf err{nullptr, 0, 0};
    const std::int32_t number = call(&err);
    if (number < 0) return failure(number, err);
    return static_cast<status>(number);
}

} // namespace detail

/// The version of the library that is linked: "0.1.0".
[[nodiscard]] inline const char* version() noexcept { return fawn_version(); }
/// The version of the ABI that it serves; this header was written for FAWN_ABI_VERSION.
[[nodiscard]] inline std::uint32_t abi_version() noexcept { return fawn_abi_version(); }

/// Answers a question about the library: "build", "errors", "schema/run_request", "handles"; "index" lists them.
[[nodiscard]] inline result<buffer> try_describe(std::string_view topic) noexcept {
    return detail::answer_of([&](fawn_buf* out) { return fawn_describe(topic.data(), topic.size(), out); });
}
/// Folds updates into the value of a channel.
[[nodiscard]] inline result<buffer> try_reduce(std::string_view channel, std::string_view json) noexcept {
    return detail::answer_of([&](fawn_buf* out) {
        return fawn_reduce(channel.data(), channel.size(), json.data(), json.size(), out);
    });
}
/// Brings messages into canonical form.
[[nodiscard]] inline result<buffer> try_messages_convert(std::string_view json) noexcept {
    return detail::answer_of([&](fawn_buf* out) { return fawn_messages_convert(json.data(), json.size(), out); });
}
/// Tells what makes the agent of one descriptor another than that of the other (schema "descriptor_pair").
[[nodiscard]] inline result<buffer> try_descriptor_diff(std::string_view json) noexcept {
    return detail::answer_of([&](fawn_buf* out) { return fawn_descriptor_diff(json.data(), json.size(), out); });
}
/// Draws a descriptor as a Mermaid flowchart.
[[nodiscard]] inline result<buffer> try_descriptor_diagram(std::string_view json) noexcept {
    return detail::answer_of([&](fawn_buf* out) { return fawn_descriptor_diagram(json.data(), json.size(), out); });
}

#if FAWN_HPP_EXCEPTIONS
[[nodiscard]] inline buffer describe(std::string_view topic) { return unwrap(try_describe(topic)); }
[[nodiscard]] inline buffer reduce(std::string_view channel, std::string_view json) { return unwrap(try_reduce(channel, json)); }
[[nodiscard]] inline buffer messages_convert(std::string_view json) { return unwrap(try_messages_convert(json)); }
[[nodiscard]] inline buffer descriptor_diff(std::string_view json) { return unwrap(try_descriptor_diff(json)); }
[[nodiscard]] inline buffer descriptor_diagram(std::string_view json) { return unwrap(try_descriptor_diagram(json)); }
#endif

/// Configuration, store, capacity. The others belong to one.
class runtime : public detail::owner<runtime> {
public:
    using owner::owner;

    /// Makes one (schema "runtime_config").
    [[nodiscard]] static result<runtime> try_create(std::string_view json = "{}") noexcept {
        return detail::made_by<runtime>([&](std::uint64_t* out, fawn_buf* err) {
            return fawn_runtime_new(FAWN_ABI_VERSION, json.data(), json.size(), out, err);
        });
    }
    /// Tells it to do something: `{"op":"delete_thread","thread_id":"…"}`.
    [[nodiscard]] result<buffer> try_submit(std::string_view json) const noexcept {
        return detail::answer_of([&](fawn_buf* out) { return fawn_runtime_submit(raw(), json.data(), json.size(), out); });
    }
    /// Facts and figures.
    [[nodiscard]] result<buffer> try_stats() const noexcept {
        return detail::answer_of([&](fawn_buf* out) { return fawn_runtime_stats(raw(), out); });
    }
    /// Cancels its runs, saves, closes its queues, and waits for that; `timeout` if it is still at it.
    [[nodiscard]] result<outcome> try_shutdown(timeout wait = forever) const noexcept {
        return detail::ended_of<outcome>([&](fawn_buf* out) { return fawn_runtime_shutdown(raw(), wait.count(), out); });
    }

#if FAWN_HPP_EXCEPTIONS
    [[nodiscard]] static runtime create(std::string_view json = "{}") { return unwrap(try_create(json)); }
    buffer submit(std::string_view json) const { return unwrap(try_submit(json)); }
    [[nodiscard]] buffer stats() const { return unwrap(try_stats()); }
    outcome shutdown(timeout wait = forever) const { return unwrap(try_shutdown(wait)); }
#endif
};

/// Capacity and limits for subagents, shared by all assemblies that are made with it: their subagents compete for the same
/// places. Assemblies made without one share the capacity of the process.
class subagents : public detail::owner<subagents> {
public:
    using owner::owner;

    /// Makes one (schema "subagents_config"). What the document does not say is as the runtime's configuration has it.
    [[nodiscard]] static result<subagents> try_create(const runtime& of, std::string_view json = "{}") noexcept {
        return detail::made_by<subagents>([&](std::uint64_t* out, fawn_buf* err) {
            return fawn_subagents_new(of.get().value, json.data(), json.size(), out, err);
        });
    }
    /// Starts what it owns besides its capacity: durable batches, of which this version has none. Subagents need no start.
    [[nodiscard]] result<buffer> try_start() const noexcept {
        return detail::answer_of([&](fawn_buf* out) { return fawn_subagents_start(raw(), out); });
    }
    /// Stops that and waits for it; `timeout` if it is still at it. Subagents go on, and new ones begin.
    [[nodiscard]] result<outcome> try_stop(timeout wait = forever) const noexcept {
        return detail::ended_of<outcome>([&](fawn_buf* out) { return fawn_subagents_stop(raw(), wait.count(), out); });
    }
    /// How many subagents run and how many wait at this moment, and the limits of both.
    [[nodiscard]] result<buffer> try_stats() const noexcept {
        return detail::answer_of([&](fawn_buf* out) { return fawn_subagents_stats(raw(), out); });
    }

#if FAWN_HPP_EXCEPTIONS
    [[nodiscard]] static subagents create(const runtime& of, std::string_view json = "{}") { return unwrap(try_create(of, json)); }
    buffer start() const { return unwrap(try_start()); }
    outcome stop(timeout wait = forever) const { return unwrap(try_stop(wait)); }
    [[nodiscard]] buffer stats() const { return unwrap(try_stats()); }
#endif
};

/// A model, a prompt and tools, composed once and not changed any more.
class assembly : public detail::owner<assembly> {
public:
    using owner::owner;

    /// Composes one (schema "assembly_config").
    [[nodiscard]] static result<assembly> try_create(const runtime& of, std::string_view json) noexcept {
        return detail::made_by<assembly>([&](std::uint64_t* out, fawn_buf* err) {
            return fawn_assembly_new(of.get().value, json.data(), json.size(), out, err);
        });
    }
    /// The same with subagents that have the capacity and limits of `with`: `"subagent_runtime"` in the document, which counts if
    /// it is there already.
    [[nodiscard]] static result<assembly> try_create(const runtime& of, std::string_view json, const subagents& with) noexcept {
        return try_create(of, detail::with_first(json, "subagent_runtime", std::to_string(with.get().value)));
    }
    /// What it turned out to be.
    [[nodiscard]] result<buffer> try_descriptor() const noexcept {
        return detail::answer_of([&](fawn_buf* out) { return fawn_assembly_descriptor(raw(), out); });
    }

#if FAWN_HPP_EXCEPTIONS
    [[nodiscard]] static assembly create(const runtime& of, std::string_view json) { return unwrap(try_create(of, json)); }
    [[nodiscard]] static assembly create(const runtime& of, std::string_view json, const subagents& with) {
        return unwrap(try_create(of, json, with));
    }
    [[nodiscard]] buffer descriptor() const { return unwrap(try_descriptor()); }
#endif
};

/// One conversation and its state. (An OS thread is `std::thread`.)
class thread : public detail::owner<thread> {
public:
    using owner::owner;

    /// Opens one of the runtime's store, or begins one (schema "thread_open").
    [[nodiscard]] static result<thread> try_open(const runtime& of, std::string_view json = "{}") noexcept {
        return detail::made_by<thread>([&](std::uint64_t* out, fawn_buf* err) {
            return fawn_thread_open(of.get().value, json.data(), json.size(), out, err);
        });
    }
    /// Writes to its channels as one checkpoint, all or nothing (schema "thread_update").
    [[nodiscard]] result<buffer> try_update(std::string_view json) const noexcept {
        return detail::answer_of([&](fawn_buf* out) { return fawn_thread_update(raw(), json.data(), json.size(), out); });
    }
    /// Reads its state (schema "thread_state_query").
    [[nodiscard]] result<buffer> try_state(std::string_view json = "{}") const noexcept {
        return detail::answer_of([&](fawn_buf* out) { return fawn_thread_state(raw(), json.data(), json.size(), out); });
    }
    /// Lists its checkpoints, newest first (schema "thread_history_query").
    [[nodiscard]] result<buffer> try_history(std::string_view json = "{}") const noexcept {
        return detail::answer_of([&](fawn_buf* out) { return fawn_thread_history(raw(), json.data(), json.size(), out); });
    }
    /// Reads, sets or clears its goal (schema "goal_op"): `{"op":"set","objective":"…"}`.
    [[nodiscard]] result<buffer> try_goal(std::string_view json = "{\"op\":\"get\"}") const noexcept {
        return detail::answer_of([&](fawn_buf* out) { return fawn_thread_goal(raw(), json.data(), json.size(), out); });
    }

    /// Its id: the one that it was opened with, or the random one that it was begun with.
    [[nodiscard]] result<std::string> try_id() const noexcept {
        return detail::member_of(try_state("{\"channels\":[]}"), "thread_id");
    }

#if FAWN_HPP_EXCEPTIONS
    [[nodiscard]] static thread open(const runtime& of, std::string_view json = "{}") { return unwrap(try_open(of, json)); }
    buffer update(std::string_view json) const { return unwrap(try_update(json)); }
    [[nodiscard]] buffer state(std::string_view json = "{}") const { return unwrap(try_state(json)); }
    [[nodiscard]] buffer history(std::string_view json = "{}") const { return unwrap(try_history(json)); }
    buffer goal(std::string_view json = "{\"op\":\"get\"}") const { return unwrap(try_goal(json)); }
    [[nodiscard]] std::string id() const { return unwrap(try_id()); }
#endif
};

/// An event (schema "event"): views of its text, which belongs to the batch or range that it came from. To keep one, copy
/// `raw()` and read the copy with `parse`.
///
/// Only members of the event itself are looked at: whatever stands in a message or in a tool's output changes nothing here.
class event {
public:
    event() noexcept = default;

    /// Reads the text of one event; nothing if it is none.
    [[nodiscard]] static std::optional<event> parse(std::string_view raw) noexcept {
        detail::scanner scan(raw);
        event found;
        if (!found.read(scan)) return std::nullopt;
        return found;
    }

    /// What it is: "message_delta", "host_call", "run_end" …
    [[nodiscard]] std::string_view type() const noexcept { return type_; }
    /// Its number within its run, from 1.
    [[nodiscard]] std::uint64_t seq() const noexcept { return seq_; }
    /// The run it is of, as it stands in JSON, without quotes: the same as the id unless that needs escapes. Empty for
    /// events of no run. See `is_of`.
    [[nodiscard]] std::string_view run_id() const noexcept { return run_id_; }
    /// The thread it is of, likewise.
    [[nodiscard]] std::string_view thread_id() const noexcept { return thread_id_; }
    /// The task call of the subagent that caused it, likewise; empty when the run itself did.
    [[nodiscard]] std::string_view task_id() const noexcept { return task_id_; }
    /// When, in RFC 3339.
    [[nodiscard]] std::string_view at() const noexcept { return at_; }
    /// The text of its data, a JSON object.
    [[nodiscard]] std::string_view data() const noexcept { return data_; }
    /// The text of the whole event, byte for byte as the library wrote it.
    [[nodiscard]] std::string_view raw() const noexcept { return raw_; }

    /// Whether it is of the run with this id.
    [[nodiscard]] bool is_of(std::string_view run_id) const { return detail::stands_for(run_id_, run_id); }
    /// The JSON text of a member of its data; empty if there is none.
    [[nodiscard]] std::string_view field(std::string_view name) const { return json::find(data_, name); }
    /// What a member of its data stands for, as `json::text` has it: `ev.text("text")` of a message_delta.
    [[nodiscard]] std::string text(std::string_view name) const { return json::text(field(name)); }

private:
    friend class batch;

    /// Reads the event at which a walk stands, and passes it.
    bool read(detail::scanner& scan) noexcept {
        *this = event();
        scan.space();
        const char* begin = scan.at();
        const bool whole = scan.object([this](std::string_view name, std::string_view value) {
            if (name == "seq") seq_ = detail::to_number(value);
            else if (name == "run_id") run_id_ = detail::inside_string(value);
            else if (name == "thread_id") thread_id_ = detail::inside_string(value);
            else if (name == "task_id") task_id_ = detail::inside_string(value);
            else if (name == "type") type_ = detail::inside_string(value);
            else if (name == "at") at_ = detail::inside_string(value);
            else if (name == "data") data_ = value;
        });
        raw_ = detail::scanner::between(begin, scan.at());
        return whole;
    }

    std::string_view raw_, type_, run_id_, thread_id_, task_id_, at_, data_;
    std::uint64_t seq_ = 0;
};

/// What a queue gave in one go: events, and how the taking went. It owns their text. Iterating does not use it up.
class batch {
public:
    /// Where iteration ends.
    struct sentinel {};

    /// Goes over the events once, reading each when it is reached.
    class iterator {
    public:
        using iterator_category = std::input_iterator_tag;
        using value_type = event;
        using difference_type = std::ptrdiff_t;
        using pointer = const event*;
        using reference = const event&;

        iterator() noexcept : iterator(std::string_view()) {}
        explicit iterator(std::string_view array) noexcept : scan_(array), more_(scan_.take('[')) { ++*this; }

        [[nodiscard]] const event& operator*() const noexcept { return current_; }
        [[nodiscard]] const event* operator->() const noexcept { return &current_; }
        iterator& operator++() noexcept {
            more_ = more_ && current_.read(scan_);
            static_cast<void>(scan_.take(','));
            return *this;
        }
        void operator++(int) noexcept { ++*this; }
        [[nodiscard]] bool at_end() const noexcept { return !more_; }

        friend bool operator==(const iterator& it, sentinel) noexcept { return it.at_end(); }
        friend bool operator!=(const iterator& it, sentinel) noexcept { return !it.at_end(); }
        friend bool operator==(sentinel, const iterator& it) noexcept { return it.at_end(); }
        friend bool operator!=(sentinel, const iterator& it) noexcept { return !it.at_end(); }

    private:
        detail::scanner scan_;
        event current_;
        bool more_;
    };

    batch(fawn::status how, buffer events) noexcept : how_(how), events_(std::move(events)) {}

    /// `ok`, `timeout`, `interrupted` or `closed`.
    [[nodiscard]] fawn::status status() const noexcept { return how_; }
    /// Whether there are events.
    [[nodiscard]] explicit operator bool() const noexcept { return how_ == fawn::status::ok; }
    /// The JSON array as the library wrote it.
    [[nodiscard]] std::string_view raw() const noexcept { return events_.view(); }

    [[nodiscard]] iterator begin() const noexcept { return iterator(raw()); }
    [[nodiscard]] sentinel end() const noexcept { return {}; }

private:
    fawn::status how_;
    buffer events_;
};

/// The events of a queue, taken as the loop comes to them: `for (const fawn::event& ev : queue.events())`. An event is good
/// until the loop goes on.
///
/// It ends when the queue is closed or interrupted, or when nothing came in the time given; `status()` says which. After that,
/// or after a `break`, another loop over the same range goes on where the last one stood. An error is thrown by the range of
/// `events` and ends that of `try_events`, which has it as `error()`.
template <bool Throws>
class basic_event_range {
public:
    struct sentinel {};

    class iterator {
    public:
        using iterator_category = std::input_iterator_tag;
        using value_type = event;
        using difference_type = std::ptrdiff_t;
        using pointer = const event*;
        using reference = const event&;

        iterator() noexcept = default;
        explicit iterator(basic_event_range* range) noexcept : range_(range) {}

        [[nodiscard]] const event& operator*() const noexcept { return *range_->at_; }
        [[nodiscard]] const event* operator->() const noexcept { return &*range_->at_; }
        iterator& operator++() noexcept(!Throws) {
            range_->advance();
            return *this;
        }
        void operator++(int) noexcept(!Throws) { ++*this; }
        [[nodiscard]] bool at_end() const noexcept { return range_ == nullptr || range_->ended_; }

        friend bool operator==(const iterator& it, sentinel) noexcept { return it.at_end(); }
        friend bool operator!=(const iterator& it, sentinel) noexcept { return !it.at_end(); }
        friend bool operator==(sentinel, const iterator& it) noexcept { return it.at_end(); }
        friend bool operator!=(sentinel, const iterator& it) noexcept { return !it.at_end(); }

    private:
        basic_event_range* range_ = nullptr;
    };

    basic_event_range(handle<queue> of, timeout wait, std::uint32_t max_events) noexcept
        : of_(of), wait_(wait), max_events_(max_events) {}
    /// The events of one run, which is named by its id, or an error instead of them.
    basic_event_range(handle<queue> of, timeout wait, result<std::string> run_id) noexcept
        : of_(of), wait_(wait), max_events_(1), run_id_(std::move(run_id)) {}

    [[nodiscard]] iterator begin() noexcept(!Throws) {
        advance();
        return iterator(this);
    }
    [[nodiscard]] sentinel end() const noexcept { return {}; }

    /// Why the last loop ended: `closed`, `interrupted`, `timeout`, an error, or `ok` after the end of a run. `ok` in a loop.
    [[nodiscard]] fawn::status status() const noexcept { return how_; }
    /// The error that ended the last loop.
    [[nodiscard]] const std::optional<fawn::error>& error() const noexcept { return error_; }

private:
    /// Goes on to the next event that is to be shown: of no run, or of the one that was asked for.
    void advance() noexcept(!Throws) {
        if (run_id_ && !*run_id_) return end_with(run_id_->error());
        do {
            if (run_id_ && at_->type() == "run_end" && at_->is_of(**run_id_)) {
                ended_ = true;
                return;
            }
            next();
        } while (!ended_ && run_id_ && !at_->run_id().empty() && !at_->is_of(**run_id_));
    }

    void next() noexcept(!Throws) {
        ended_ = false;
        if (!at_.at_end()) ++at_;
        while (at_.at_end()) {
            fawn_buf out{nullptr, 0, 0};
            const std::int32_t number = fawn_queue_take(of_.value, wait_.count(), max_events_, &out);
            how_ = static_cast<fawn::status>(number);
            text_ = buffer(out);
            at_ = batch::iterator(is_error(how_) ? std::string_view() : text_.view());
            ended_ = how_ != fawn::status::ok;
            if (!ended_) continue;
            error_.reset();
            if (is_error(how_)) end_with(fawn::error(text_.view(), how_));
            return;
        }
    }

    void end_with(const fawn::error& failed) noexcept(!Throws) {
        ended_ = true;
        how_ = failed.status();
        error_.emplace(failed);
#if FAWN_HPP_EXCEPTIONS
        if constexpr (Throws) throw fawn::error(failed);
#endif
    }

    handle<queue> of_;
    timeout wait_;
    std::uint32_t max_events_;
    std::optional<result<std::string>> run_id_;
    bool ended_ = false;
    fawn::status how_ = fawn::status::ok;
    buffer text_;
    batch::iterator at_;
    std::optional<fawn::error> error_;
};
using try_event_range = basic_event_range<false>;
#if FAWN_HPP_EXCEPTIONS
using event_range = basic_event_range<true>;
#endif

/// What everything comes through: events of runs and calls to the host.
class queue : public detail::owner<queue> {
public:
    using owner::owner;

    /// Makes one (schema "queue_config").
    [[nodiscard]] static result<queue> try_create(const runtime& of, std::string_view json = "{}") noexcept {
        return detail::made_by<queue>([&](std::uint64_t* out, fawn_buf* err) {
            return fawn_queue_new(of.get().value, json.data(), json.size(), out, err);
        });
    }
    /// Takes what is there, oldest first, or waits until there is something. `max_events` 0: all that is there.
    [[nodiscard]] result<batch> try_take(timeout wait = forever, std::uint32_t max_events = 0) const noexcept {
        return detail::ended_of<batch>([&](fawn_buf* out) { return fawn_queue_take(raw(), wait.count(), max_events, out); });
    }
    /// The events as a range. With the default of one event at a time nothing is taken that the loop does not come to; with
    /// more it is faster, and what a range that is given up has taken and not shown is lost.
    [[nodiscard]] try_event_range try_events(timeout wait = forever, std::uint32_t max_events = 1) const noexcept {
        return {get(), wait, max_events};
    }
    /// The events of one run, up to its "run_end", and those of no run, such as warnings. Events of other runs, such as what
    /// is left of an earlier one, are taken and passed over, calls to the host among them: for a queue that serves one run
    /// at a time. Nothing but the time given ends the range if the "run_end" was taken before.
    [[nodiscard]] try_event_range try_run_events(const run& of, timeout wait = forever) const noexcept;
    /// Ends one wait early: one that is under way, or else the next. May be called from any OS thread, but not from a signal
    /// handler.
    [[nodiscard]] result<void> try_interrupt() const noexcept {
        const std::int32_t number = fawn_queue_interrupt(raw());
        if (number < 0) return detail::failure(number, fawn_buf{nullptr, 0, 0});
        return {};
    }
    /// Registers a function that tells the host's event loop that there is something to take; the loop then takes with a
    /// timeout of zero until `status::timeout`. It is called on OS threads of the library, perhaps on several at once, perhaps
    /// before this returns. It must return soon and must not call the library; an exception that leaves it ends the process.
    ///
    /// It replaces the function that was registered before and is destroyed when it is replaced or cleared, or when queue or
    /// runtime are freed: after its last call has returned. An empty function clears.
    [[nodiscard]] result<void> try_set_wakeup(std::function<void()> wakeup) const noexcept {
        std::unique_ptr<std::function<void()>> kept;
        if (wakeup) kept = std::make_unique<std::function<void()>>(std::move(wakeup));
        fawn_buf err{nullptr, 0, 0};
        const std::int32_t number = fawn_queue_set_wakeup(raw(), kept ? &call_wakeup : nullptr,
                                                          reinterpret_cast<std::uintptr_t>(kept.get()), &drop_wakeup, &err);
        if (number < 0) return detail::failure(number, err);
        static_cast<void>(kept.release()); // from here on the library owns it, and gives it back to `drop_wakeup`
        return {};
    }

#if FAWN_HPP_EXCEPTIONS
    [[nodiscard]] static queue create(const runtime& of, std::string_view json = "{}") { return unwrap(try_create(of, json)); }
    [[nodiscard]] batch take(timeout wait = forever, std::uint32_t max_events = 0) const {
        return unwrap(try_take(wait, max_events));
    }
    [[nodiscard]] event_range events(timeout wait = forever, std::uint32_t max_events = 1) const noexcept {
        return {get(), wait, max_events};
    }
    [[nodiscard]] event_range run_events(const run& of, timeout wait = forever) const noexcept;
    void interrupt() const { unwrap(try_interrupt()); }
    void set_wakeup(std::function<void()> wakeup) const { unwrap(try_set_wakeup(std::move(wakeup))); }
#endif

private:
    static void call_wakeup(std::uintptr_t kept) noexcept { (*reinterpret_cast<std::function<void()>*>(kept))(); }
    static void drop_wakeup(std::uintptr_t kept) noexcept { delete reinterpret_cast<std::function<void()>*>(kept); }
};

/// One execution of an assembly on a thread. Destroying the object lets go of the run, which goes on; `cancel` ends it.
class run : public detail::owner<run> {
public:
    using owner::owner;

    /// Starts one (schema "run_request"). What comes of it comes through the queue.
    [[nodiscard]] static result<run> try_start(const assembly& agent, const thread& on, const queue& to,
                                               std::string_view json) noexcept {
        // Without a queue object the C function would start a run that nobody listens to. Here that was not asked for, so it
        // gets a handle that is none.
        return start_with(agent, on, to ? to.get().value : ~std::uint64_t{0}, json);
    }
    /// Starts one that nobody listens to; `wait` has its result. Refused if the assembly asks the host.
    [[nodiscard]] static result<run> try_start(const assembly& agent, const thread& on, std::string_view json) noexcept {
        return start_with(agent, on, 0, json);
    }
    /// Tells it something (schema "run_op").
    [[nodiscard]] result<buffer> try_submit(std::string_view json) const noexcept {
        return detail::answer_of([&](fawn_buf* out) { return fawn_run_submit(raw(), json.data(), json.size(), out); });
    }
    /// Ends it; what has arrived of a reply is kept. Returns at once, `wait` and the event "run_end" tell when it is over.
    [[nodiscard]] result<buffer> try_cancel(std::string_view reason = {}) const noexcept {
        const std::string said = reason.empty() ? std::string() : ",\"reason\":" + json::quote(reason);
        return try_submit("{\"op\":\"cancel\"" + said + "}");
    }
    /// Its id, which is also in its events and its result.
    [[nodiscard]] result<std::string> try_id() const noexcept {
        return detail::member_of(try_submit("{\"op\":\"status\"}"), "run_id");
    }
    /// Waits for its end and answers its result (schema "run_result"); a run that failed is a result, not an error.
    ///
    /// A run with a queue comes to its end only if somebody takes from that: one that asks the host and is not answered waits
    /// until the call's deadline, ten minutes by default, and one that has filled its queue for ever. So wait after the loop
    /// over its events, or on another OS thread than that.
    [[nodiscard]] result<outcome> try_wait(timeout wait = forever) const noexcept {
        return detail::ended_of<outcome>([&](fawn_buf* out) { return fawn_run_wait(raw(), wait.count(), out); });
    }

#if FAWN_HPP_EXCEPTIONS
    [[nodiscard]] static run start(const assembly& agent, const thread& on, const queue& to, std::string_view json) {
        return unwrap(try_start(agent, on, to, json));
    }
    [[nodiscard]] static run start(const assembly& agent, const thread& on, std::string_view json) {
        return unwrap(try_start(agent, on, json));
    }
    buffer submit(std::string_view json) const { return unwrap(try_submit(json)); }
    buffer cancel(std::string_view reason = {}) const { return unwrap(try_cancel(reason)); }
    [[nodiscard]] std::string id() const { return unwrap(try_id()); }
    [[nodiscard]] outcome wait(timeout until = forever) const { return unwrap(try_wait(until)); }
#endif

private:
    static result<run> start_with(const assembly& agent, const thread& on, std::uint64_t to, std::string_view json) noexcept {
        return detail::made_by<run>([&](std::uint64_t* out, fawn_buf* err) {
            return fawn_run_start(agent.get().value, on.get().value, to, json.data(), json.size(), out, err);
        });
    }
};

inline try_event_range queue::try_run_events(const run& of, timeout wait) const noexcept { return {get(), wait, of.try_id()}; }
#if FAWN_HPP_EXCEPTIONS
inline event_range queue::run_events(const run& of, timeout wait) const noexcept { return {get(), wait, of.try_id()}; }
#endif

/// What a host says to a host call. Text makes one by itself, so a handler may return a string.
class answer {
public:
    /// Text: what a tool found, or what a model says.
    answer(std::string_view text) : json_("{\"ok\":" + json::quote(text) + "}") {}
    answer(const std::string& text) : answer(std::string_view(text)) {}
    answer(const char* text) : answer(std::string_view(text)) {}
    answer(const buffer& text) : answer(text.view()) {}
    /// The failure of something that the handler tried, for the model to read.
    answer(const fawn::error& failure) : answer(error(failure.message())) {}
    /// Either of them.
    template <class T>
    answer(const result<T>& tried) : answer(tried ? answer(*tried) : answer(tried.error())) {}

    /// Any JSON: `{"content":…,"artifact":…}` for a tool, `{"content":…,"tool_calls":[…]}` for a model (schema "call_answer").
    [[nodiscard]] static answer json(std::string_view value) {
        return answer(whole{}, std::string("{\"ok\":").append(value).append("}"));
    }
    /// It could not be done; the message is for the model.
    [[nodiscard]] static answer error(std::string_view message) {
        return answer(whole{}, "{\"error\":{\"message\":" + json::quote(message) + "}}");
    }
    /// The verdict of a middleware that changes nothing. Others are `json`, such as `{"verdict":"change","args":{…}}` (schema
    /// "middleware_verdict").
    [[nodiscard]] static answer go_on() { return json("{\"verdict\":\"continue\"}"); }
    /// The verdict of a middleware that refuses.
    [[nodiscard]] static answer deny(std::string_view reason) {
        return json("{\"verdict\":\"deny\",\"reason\":" + json::quote(reason) + "}");
    }
    /// Done, and there is nothing to say: what a sandbox and a memory answer, and "no such file" of a sandbox's "read_file".
    [[nodiscard]] static answer nothing() { return json("null"); }
    /// The handler has moved the call away and answers it later.
    [[nodiscard]] static answer later() { return answer(whole{}, std::string()); }
    /// The whole document for fawn_call_finish.
    [[nodiscard]] static answer document(std::string_view text) { return answer(whole{}, std::string(text)); }

    [[nodiscard]] const std::string& document() const noexcept { return json_; }

private:
    struct whole {};
    answer(whole, std::string text) : json_(std::move(text)) {}

    std::string json_;
};

/// A call to the host that waits for its answer, and the duty to give one: now or in an hour, from any OS thread. It moves;
/// it owns its text. One that is destroyed unanswered answers with an error, so that the run does not wait for nothing.
///
/// Emitting and finishing answer `status::gone` when the call is over already: answered, cancelled (there is a
/// "host_call_cancelled" event then) or past its deadline. Stop working on it.
class pending_call {
public:
    pending_call() noexcept = default;
    /// Takes the duty from an event of type "host_call"; of any other event this makes an empty object.
    pending_call(const runtime& of, const event& asked) noexcept : pending_call(of.get(), asked) {}
    pending_call(handle<runtime> of, const event& asked) noexcept : runtime_(of) {
        if (asked.type() != "host_call") return;
        says_ = std::make_unique<text>(asked);
        open_ = says_->id != 0;
    }
    pending_call(pending_call&& other) noexcept
        : runtime_(other.runtime_), says_(std::move(other.says_)), open_(std::exchange(other.open_, false)) {}
    pending_call& operator=(pending_call&& other) noexcept {
        if (this == &other) return *this;
        drop();
        runtime_ = other.runtime_;
        says_ = std::move(other.says_);
        open_ = std::exchange(other.open_, false);
        return *this;
    }
    pending_call(const pending_call&) = delete;
    pending_call& operator=(const pending_call&) = delete;
    ~pending_call() { drop(); }

    /// Whether there is a call here that waits for an answer, as far as this object knows.
    [[nodiscard]] explicit operator bool() const noexcept { return open_; }

    /// Its number within the runtime.
    [[nodiscard]] std::uint64_t id() const noexcept { return says_ ? says_->id : 0; }
    /// "tool", "model", "guardrail", "middleware", "sandbox" or "memory".
    [[nodiscard]] std::string_view kind() const noexcept { return says_ ? says_->kind : std::string_view(); }
    /// Which tool, model, guardrail or middleware; of a sandbox or a memory, what it is asked for.
    [[nodiscard]] std::string_view name() const noexcept { return says_ ? says_->name : std::string_view(); }
    /// The arguments: JSON text of an object. Those of a model: system, messages, tools, tool_choice; of a middleware, what it
    /// is asked about (schema "middleware_question").
    [[nodiscard]] std::string_view args() const noexcept { return says_ ? says_->args : std::string_view(); }
    /// What one argument stands for, as `json::text` has it; empty if there is none.
    [[nodiscard]] std::string arg(std::string_view argument) const { return json::text(json::find(args(), argument)); }
    /// The same for the same question, also when it is asked again after a crash.
    [[nodiscard]] std::string_view idempotency_key() const noexcept { return says_ ? says_->key : std::string_view(); }
    /// How long the host has, from the event on.
    [[nodiscard]] std::chrono::milliseconds deadline() const noexcept {
        return std::chrono::milliseconds(says_ ? says_->deadline_ms : 0);
    }
    /// The event that asked: its run and thread, and the task call for which a subagent asks.
    [[nodiscard]] const event& asked() const noexcept {
        static const event none;
        return says_ ? says_->asked : none;
    }

    /// Adds to the answer before it is finished: progress of a tool (any JSON), a delta of a model (`{"text":…}`).
    /// `status::err_behind`: the run has not taken what came before; try again later, and not from the OS thread that takes
    /// from the queue, where waiting for that would be waiting for oneself.
    [[nodiscard]] result<status> try_emit(std::string_view json) const noexcept {
        return detail::done_by([&](fawn_buf* err) {
            return fawn_call_emit(runtime_.value, id(), json.data(), json.size(), err);
        });
    }
    /// Adds a piece of a model's text.
    [[nodiscard]] result<status> try_emit_text(std::string_view piece) const noexcept {
        return try_emit("{\"text\":" + json::quote(piece) + "}");
    }
    /// Answers. `ok`, or `gone` if the answer came too late; the duty is done in both cases, and not after an error.
    [[nodiscard]] result<status> try_finish(const answer& said) noexcept {
        const std::string& json = said.document();
        auto done = detail::done_by([&](fawn_buf* err) {
            return fawn_call_finish(runtime_.value, id(), json.data(), json.size(), err);
        });
        if (done) open_ = false;
        return done;
    }
    /// Gives the duty away without an answer: whoever has the call's number and the runtime may answer.
    std::uint64_t release() noexcept {
        open_ = false;
        return id();
    }

#if FAWN_HPP_EXCEPTIONS
    status emit(std::string_view json) const { return unwrap(try_emit(json)); }
    status emit_text(std::string_view piece) const { return unwrap(try_emit_text(piece)); }
    status finish(const answer& said) { return unwrap(try_finish(said)); }
#endif

private:
    /// A copy of the event, which stays where it is when the call moves.
    struct text {
        explicit text(const event& from) : copy(from.raw()) {
            if (const auto read = event::parse(copy)) asked = *read;
            detail::scanner(asked.data()).object([this](std::string_view member, std::string_view value) {
                if (member == "call_id") id = detail::to_number(value);
                else if (member == "kind") kind = json::text(value);
                else if (member == "name") name = json::text(value);
                else if (member == "args") args = value;
                else if (member == "idempotency_key") key = json::text(value);
                else if (member == "deadline_ms") deadline_ms = static_cast<std::int64_t>(detail::to_number(value));
            });
        }

        std::string copy, kind, name, key;
        event asked;
        std::string_view args;
        std::uint64_t id = 0;
        std::int64_t deadline_ms = 0;
    };

    void drop() noexcept {
        if (open_) static_cast<void>(try_finish(answer::error("the host let the call go without an answer")));
    }

    handle<runtime> runtime_;
    std::unique_ptr<text> says_;
    bool open_ = false;
};

/// Hands the calls of a runtime's queues to functions of the host.
///
/// A handler gets the call and returns its answer: a string, an `answer`, or a `result` of either. An exception that leaves
/// it answers the call with an error, as does a name that nothing is registered for. To answer later it moves the call away
/// and returns `answer::later()`.
///
///     host.tool("get_weather", [](fawn::pending_call& call) { return get_weather(call.arg("city")); });
///     for (const fawn::event& ev : queue.run_events(run)) host.dispatch(ev);
///
/// Handlers run where `dispatch` is called. In the loop over the events nothing else comes out while one runs, what it emits
/// included: a handler that takes long, or a model that streams, moves its call to another OS thread. Several OS threads may
/// dispatch with one dispatcher, once all handlers are registered.
class dispatcher {
public:
    using handler = std::function<answer(pending_call&)>;

    explicit dispatcher(const runtime& of) noexcept : runtime_(of.get()) {}

    /// Registers a tool, in place of an earlier one of that name.
    dispatcher& tool(std::string name, handler does) {
        tools_.insert_or_assign(std::move(name), std::move(does));
        return *this;
    }
    /// Registers a model, by the "model" of its configuration; "host" if that has none.
    dispatcher& model(std::string name, handler does) {
        models_.insert_or_assign(std::move(name), std::move(does));
        return *this;
    }
    /// Registers a guardrail, by the "name" of its configuration; "guardrail" if that has none. Its answer is
    /// `answer::json(R"({"allow": true})")` or the like (schema "guardrail_answer").
    dispatcher& guardrail(std::string name, handler does) {
        guardrails_.insert_or_assign(std::move(name), std::move(does));
        return *this;
    }
    /// Registers a middleware, which answers with a verdict: `answer::go_on()`, `answer::deny(reason)`, or `answer::json`. An
    /// error counts as none, and then what its configuration says.
    dispatcher& middleware(std::string name, handler does) {
        middlewares_.insert_or_assign(std::move(name), std::move(does));
        return *this;
    }
    /// Registers what a sandbox is asked for, where a configuration has `"sandbox": {"use": "host"}`: "acquire", which answers
    /// `answer::json(R"({"sandbox_id":"…"})")`; "read_file", with `{"text":"…"}` or `answer::nothing()`; "write_file" and "release".
    dispatcher& sandbox(std::string operation, handler does) {
        sandbox_.insert_or_assign(std::move(operation), std::move(does));
        return *this;
    }
    /// Registers what a memory is asked for, where a configuration has `"memory": {"manager_class": "host"}`: "add", which takes
    /// in what a run said, and answers `answer::nothing()`.
    dispatcher& memory(std::string operation, handler does) {
        memory_.insert_or_assign(std::move(operation), std::move(does));
        return *this;
    }
    /// Registers what gets the calls that nothing else is registered for.
    dispatcher& otherwise(handler does) {
        otherwise_ = std::move(does);
        return *this;
    }

    /// Registers what hears of answers that the library refused, such as JSON that is none.
    dispatcher& on_refused(std::function<void(const pending_call&, const error&)> hears) {
        refused_ = std::move(hears);
        return *this;
    }

    /// Has a host call answered by its handler; false if it is none. An answer that the library refuses is no error here: the
    /// call is answered with what was wrong, so that the run goes on. The error is that of a call that cannot be answered at
    /// all, since the runtime was freed or is not the one of the call.
    [[nodiscard]] result<bool> try_dispatch(const event& ev) const noexcept {
        pending_call call(runtime_, ev);
        if (!call) return false;
        const answer said = ask(call);
        if (!call || said.document().empty()) return true; // moved away or finished; or dropped here, which answers
        auto done = call.try_finish(said);
        if (done) return true;
        const error refused = done.error();
        done = call.try_finish(answer::error("the host's answer was refused: " + refused.message()));
        if (!done) return unexpected(done.error());
        if (refused_) refused_(call, refused);
        return true;
    }

#if FAWN_HPP_EXCEPTIONS
    bool dispatch(const event& ev) const { return unwrap(try_dispatch(ev)); }
#endif

private:
    using table = std::map<std::string, handler, std::less<>>;

    [[nodiscard]] const handler* find(const pending_call& call) const {
        const table* known = call.kind() == "tool" ? &tools_ : call.kind() == "model" ? &models_
                           : call.kind() == "guardrail" ? &guardrails_
                           : call.kind() == "middleware" ? &middlewares_
                           : call.kind() == "sandbox" ? &sandbox_
                           : call.kind() == "memory" ? &memory_ : nullptr;
        if (known != nullptr) {
            const auto found = known->find(call.name());
            if (found != known->end() && found->second) return &found->second;
        }
        return otherwise_ ? &otherwise_ : nullptr;
    }

    [[nodiscard]] answer ask(pending_call& call) const {
        const handler* does = find(call);
        if (does == nullptr) {
            std::string none = "the host has no ";
            if (call.kind() == "sandbox" || call.kind() == "memory") none.append("handler for the ").append(call.kind()).append("'s ").append(call.name());
            else none.append(call.kind()).append(" named ").append(json::quote(call.name()));
            return answer::error(none);
        }
#if FAWN_HPP_EXCEPTIONS
        // The call may be gone when the handler throws.
        const std::string name(call.name());
        try {
            return (*does)(call);
        } catch (const std::exception& thrown) {
            return answer::error(name + ": " + thrown.what());
        } catch (...) {
            return answer::error(name + ": failed without saying why");
        }
#else
        return (*does)(call);
#endif
    }

    handle<runtime> runtime_;
    table tools_, models_, guardrails_, middlewares_, sandbox_, memory_;
    handler otherwise_;
    std::function<void(const pending_call&, const error&)> refused_;
};

} // namespace FAWN_HPP_FLAVOUR
} // namespace fawn

#undef FAWN_HPP_FLAVOUR

#endif // FAWN_HPP
