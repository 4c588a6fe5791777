/**
 * fawn: an agent harness that you link.
 *
 * This header is the whole interface: C99 and C++11 or later, no macros that do work, no inline functions. It is
 * generated; change src/ffi instead.
 *
 * JSON goes in, JSON comes out. What a document looks like is said by JSON Schemas, named in the text below as
 * (schema "run_request"); fawn_describe("schema/run_request") answers one; make install puts them into
 * share/fawn/schema.
 *
 * FIRST STEPS
 *
 *     fawn_runtime rt;
 *     fawn_buf err;
 *     if (fawn_runtime_new(FAWN_ABI_VERSION, "{}", FAWN_NTS, &rt, &err) != FAWN_OK) {
 *         fprintf(stderr, "%s\n", err.data);
 *         fawn_buf_free(&err);
 *     }
 *
 * fawn_assembly_new composes an agent, fawn_thread_open opens a conversation, fawn_queue_new makes the queue through
 * which everything comes to you, and fawn_run_start sets the agent to work. Take events with fawn_queue_take. When an
 * event of type "host_call" asks for one of your tools, do what it says and answer with fawn_call_finish.
 *
 * HANDLES
 *
 * fawn_runtime, fawn_subagents, fawn_assembly, fawn_thread, fawn_queue and fawn_run are 64-bit numbers, below 2^53, so that
 * JavaScript and JSON hold them exactly. 0 is none. A handle is good from the call that made it until the call that frees it, and
 * never means another object afterwards. A handle that was freed, is of another kind, or was made up is found out:
 * FAWN_ERR_HANDLE, never undefined behaviour. Objects may be freed in any order, also while other OS threads are inside
 * calls that use them; such calls complete. The _free functions take 0 and never fail.
 *
 * STATUS
 *
 * Functions return an int32_t. 0 is FAWN_OK. Positive: an expected outcome that is not an answer, such as FAWN_TIMEOUT.
 * Negative: an error, FAWN_ERR_...; the call has changed nothing. fawn_status_name gives the name.
 *
 * TEXT IN
 *
 * A pointer and a length in bytes; UTF-8. FAWN_NTS as length: the text ends at its first NUL. NULL with length 0 is empty
 * text (which is no JSON), NULL with another length is FAWN_ERR_ARGUMENT. The library reads the text during the call
 * only: it is yours again when the call returns. It must not change while the call lasts. Text above 1 GiB is refused
 * before it is read (FAWN_ERR_TOO_LARGE), JSON nested deeper than 128 is refused (FAWN_ERR_JSON_DEPTH). So is half of a
 * surrogate pair, an escape such as \ud800 whose other half is not beside it (FAWN_ERR_JSON_SYNTAX): UTF-8 has no such
 * character. Languages whose texts may hold one (JavaScript, Java) write U+FFFD in its place, as toWellFormed() does.
 *
 * Options are checked: an unknown member is refused with its place (FAWN_ERR_UNKNOWN_MEMBER), so that a misspelt one does
 * not go unnoticed. Members whose names begin with "x-" are yours and let through. Answers and events may gain members
 * in later versions: ignore those that you do not know.
 *
 * TEXT OUT AND ERRORS
 *
 * A fawn_buf that a function fills is yours; release it with fawn_buf_free, on any OS thread. What was in the struct
 * before the call is not looked at, so it need not be initialised, and a buffer in it that was not freed is lost.
 *
 * A function with an answer has one buffer, out: on FAWN_OK the answer, on an error the error object. A function that
 * makes a handle has a buffer err for the error object; the handle is set to 0 then. Every other status leaves the
 * buffer empty: {NULL, 0, 0}. Buffers may be NULL if you do not want them.
 *
 * The error object (schema "error"):
 *
 *     {"code":"unknown_member","status":-122,"message":"...","path":"/model/temprature","retryable":false}
 *
 * code is from a closed list, path a JSON pointer into what you passed.
 *
 * THREADS
 *
 * Every function may be called from any OS thread at any time, on the same object too. Only functions with a timeout_ms
 * parameter wait: negative for ever, 0 not at all. All others return at once,
 * but for the disk: with SQLite, fawn_thread_open, _update, _state, _history and fawn_runtime_submit read or write the file
 * in the calling OS thread, and wait up to 10 seconds while another process holds its lock.
 *
 * Small stacks are enough: a call from an OS thread that has less than 256 KiB left, or from a fiber, is carried out on an
 * OS thread of the library while the caller waits, which costs some 50 microseconds.
 *
 * No function of yours is called, with one exception: fawn_queue_set_wakeup. No callback has to answer anything.
 *
 * THE PROCESS
 *
 * The library installs no signal handlers and writes nothing to stdout or stderr. It does not change the environment,
 * the working directory, the locale or the umask. Its own OS threads block all signals.
 *
 * Panics of the library are caught: FAWN_ERR_PANIC, and the process goes on. Running out of memory ends the process.
 *
 * After fork() the child of a process that has used the library cannot use it: functions answer FAWN_ERR_FORKED, the _free
 * functions do nothing. A process that has loaded the library, but called nothing except fawn_abi_version, fawn_version
 * and fawn_status_name, may fork. fork() followed by exec() is always well.
 *
 * A library that was loaded is not unloaded again: dlclose() leaves it in place.
 */

#ifndef FAWN_H
#define FAWN_H

#include <stddef.h>
#include <stdint.h>

/* Marks what the library exports. Define FAWN_STATIC when linking the static library on Windows. */
#ifndef FAWN_API
#if defined(_WIN32) && !defined(FAWN_STATIC)
#define FAWN_API __declspec(dllimport)
#elif defined(__GNUC__)
#define FAWN_API __attribute__((visibility("default")))
#else
#define FAWN_API
#endif
#endif

/* Marks functions whose status is the only sign of failure. */
#ifndef FAWN_MUST_USE
#if defined(__GNUC__)
#define FAWN_MUST_USE __attribute__((warn_unused_result))
#else
#define FAWN_MUST_USE
#endif
#endif

/* The version of the ABI that this header describes, for fawn_runtime_new. */
#define FAWN_ABI_VERSION 1u

/* Length that means: the text ends at its first NUL. */
#define FAWN_NTS ((size_t)-1)

/* Outcomes that are no errors. */

/* Done. */
#define FAWN_OK 0

/* The time was up before there was an answer. Nothing was lost: ask again. */
#define FAWN_TIMEOUT 1

/* The queue is empty and nothing will come any more: it was freed, or its runtime was shut down. */
#define FAWN_CLOSED 2

/* fawn_queue_interrupt ended the wait. */
#define FAWN_INTERRUPTED 3

/* The host call is over: it was answered already, cancelled, or its deadline passed. */
#define FAWN_GONE 4

/* Errors. The numbers are grouped, with gaps, and are never used again for something else. */

/* A pointer is NULL where one is needed, or a length does not fit its pointer. */
#define FAWN_ERR_ARGUMENT (-101)

/* The handle was never made by this library, is of another kind, or was freed. */
#define FAWN_ERR_HANDLE (-102)

/* Text is not valid UTF-8. */
#define FAWN_ERR_NOT_UTF8 (-103)

/* The caller was built against an ABI that this library does not serve. */
#define FAWN_ERR_ABI (-104)

/* The process was forked after the library was used; the child may not use it. */
#define FAWN_ERR_FORKED (-105)

/* The library caught a panic of its own. The process and all other handles go on. */
#define FAWN_ERR_PANIC (-106)

/* The runtime was shut down. */
#define FAWN_ERR_CLOSED (-107)

/* The call was made from inside a wake-up hook. */
#define FAWN_ERR_WRONG_THREAD (-108)

/* Input is larger than 1 GiB. */
#define FAWN_ERR_TOO_LARGE (-109)

/* What was asked is not available in this version or build. */
#define FAWN_ERR_UNSUPPORTED (-110)

/* Text is not JSON. */
#define FAWN_ERR_JSON_SYNTAX (-120)

/* JSON is nested deeper than 128. */
#define FAWN_ERR_JSON_DEPTH (-121)

/* An object has a member that is not known here. */
#define FAWN_ERR_UNKNOWN_MEMBER (-122)

/* A value has the wrong JSON type. */
#define FAWN_ERR_WRONG_TYPE (-123)

/* A value is outside its bounds. */
#define FAWN_ERR_OUT_OF_RANGE (-124)

/* A required member is missing. */
#define FAWN_ERR_MISSING_MEMBER (-125)

/* A name is not one of the known ones. */
#define FAWN_ERR_UNKNOWN_VARIANT (-126)

/* There is no channel of this name. */
#define FAWN_ERR_UNKNOWN_CHANNEL (-127)

/* Members contradict each other. */
#define FAWN_ERR_CONFLICT (-128)

/* A write to `messages` is null. */
#define FAWN_ERR_NULL_WRITE (-201)

/* A message has no role or no content member. */
#define FAWN_ERR_MESSAGE_INCOMPLETE (-202)

/* A message's role or type is not known. */
#define FAWN_ERR_UNKNOWN_ROLE (-203)

/* A value is not a message in any accepted form. */
#define FAWN_ERR_NOT_A_MESSAGE (-204)

/* A member of a message has the wrong type. */
#define FAWN_ERR_MESSAGE_INVALID (-205)

/* A member that a message or one of its tool calls needs is missing. */
#define FAWN_ERR_MESSAGE_MEMBER (-206)

/* The arguments text of a tool call is not JSON. */
#define FAWN_ERR_ARGUMENTS_SYNTAX (-207)

/* A message or one of its tool calls has a member that it may not have. */
#define FAWN_ERR_MESSAGE_EXTRA (-208)

/* The removal of a message names an id that is not in the thread. */
#define FAWN_ERR_UNKNOWN_MESSAGE_ID (-210)

/* Two writes put different sandboxes on one thread. */
#define FAWN_ERR_SANDBOX_CONFLICT (-211)

/* An entry written to a channel lacks a member that its reducer needs. */
#define FAWN_ERR_ENTRY_MEMBER (-212)

/* A value written to a channel has a type that its reducer cannot take. */
#define FAWN_ERR_ENTRY_TYPE (-213)

/* Two writes of one step meet in a channel that takes one. */
#define FAWN_ERR_CONFLICTING_WRITES (-214)

/* An assembly names a model or provider that is not configured. */
#define FAWN_ERR_UNKNOWN_MODEL (-301)

/* An assembly is inconsistent: two tools of one name, a schema that is none, a file that cannot
 * be read. */
#define FAWN_ERR_ASSEMBLY_INVALID (-302)

/* There is no custom agent of this name. */
#define FAWN_ERR_UNKNOWN_AGENT (-303)

/* The authorization does not let this user have what the assembly needs. */
#define FAWN_ERR_NOT_AUTHORIZED (-304)

/* The thread has a run in flight. */
#define FAWN_ERR_THREAD_BUSY (-401)

/* There is no such checkpoint on this thread. */
#define FAWN_ERR_UNKNOWN_CHECKPOINT (-402)

/* The store failed to read or write. */
#define FAWN_ERR_STORE (-403)

/* What the store holds cannot be read. */
#define FAWN_ERR_STORE_CORRUPT (-404)

/* Another process changed the thread since it was opened. */
#define FAWN_ERR_THREAD_STALE (-405)

/* The run used up its steps. */
#define FAWN_ERR_RECURSION_LIMIT (-501)

/* The run was cancelled. */
#define FAWN_ERR_CANCELLED (-502)

/* A hook of a middleware failed. */
#define FAWN_ERR_MIDDLEWARE (-503)

/* The assembly asks the host, but nobody listens: the run was started with queue 0. */
#define FAWN_ERR_NO_QUEUE (-504)

/* A host call was not answered before its deadline. */
#define FAWN_ERR_DEADLINE_EXCEEDED (-505)

/* The run's queue was freed while it was needed. */
#define FAWN_ERR_QUEUE_CLOSED (-506)

/* What was handed in before has not been taken yet; try again later. */
#define FAWN_ERR_BEHIND (-507)

/* The model endpoint refused the credentials. */
#define FAWN_ERR_MODEL_AUTH (-601)

/* The model endpoint refused the request. */
#define FAWN_ERR_MODEL_REQUEST (-602)

/* The model endpoint asks to slow down. */
#define FAWN_ERR_MODEL_RATE_LIMIT (-603)

/* The model endpoint failed or is overloaded. */
#define FAWN_ERR_MODEL_SERVER (-604)

/* The model endpoint could not be reached, or the connection broke. */
#define FAWN_ERR_MODEL_CONNECTION (-605)

/* The model endpoint did not answer in time. */
#define FAWN_ERR_MODEL_TIMEOUT (-606)

/* The reply is not what the wire format says. */
#define FAWN_ERR_MODEL_PROTOCOL (-607)

/* The reply's stream ended before its end mark. */
#define FAWN_ERR_MODEL_TRUNCATED (-608)

/* A scripted model has no reply for this turn. */
#define FAWN_ERR_SCRIPT_EXHAUSTED (-609)

/* The host answered its model call with an error. */
#define FAWN_ERR_MODEL_HOST (-610)

/* The model was not asked: its calls have failed so often of late that the circuit breaker waits
 * a while. */
#define FAWN_ERR_MODEL_UNAVAILABLE (-611)

/* The model gave no answer that can be shown; a message of the thread stands in for it. */
#define FAWN_ERR_MODEL_NO_ANSWER (-612)

/* A broken invariant of the library. */
#define FAWN_ERR_INTERNAL (-901)

/**
 * Text that the library gives to the caller, who owns it and releases it with `fawn_buf_free`.
 *
 * `data[len]` is always 0, so that the text can be printed. There may be NULs before it: `len` counts. An empty
 * buffer is `{NULL, 0, 0}`. What a buffer holds may be read from any OS thread until it is freed.
 */
typedef struct fawn_buf {
  /**
   * UTF-8 text, JSON wherever a function does not say otherwise.
   */
  const char *data;
  /**
   * Bytes of text, without the final NUL.
   */
  size_t len;
  /**
   * Whose memory it is: a token of the library that is checked when the buffer is freed. Leave it alone.
   */
  uintptr_t owner;
} fawn_buf;

/**
 * A runtime: configuration, store, capacity. Threads, assemblies, queues and runs belong to one. 0 is none.
 *
 * Functions: fawn_runtime_new, _submit, _stats, _shutdown, _free.
 */
typedef uint64_t fawn_runtime;

/**
 * Capacity and limits for subagents, shared by all assemblies that name it: their subagents compete for the same places
 * and wait in the same queue. Those of two such objects never do. Assemblies that name none share the capacity of the
 * process. 0 is none.
 *
 * What it is configured with does not change any more. An assembly names it in its configuration by the number that
 * the handle is: {"factory": "lead", "subagent_runtime": 1688849860263937}. Freeing the handle takes nothing away from
 * such an assembly.
 *
 * Functions: fawn_subagents_new, _start, _stop, _stats, _free.
 */
typedef uint64_t fawn_subagents;

/**
 * An assembly: a model, a prompt, tools and middleware, composed once and not changed any more. 0 is none.
 *
 * Functions: fawn_assembly_new, _descriptor, _free.
 */
typedef uint64_t fawn_assembly;

/**
 * A thread: one conversation and its state. (An OS thread is always written out.) 0 is none.
 *
 * Functions: fawn_thread_open, _update, _state, _history, _goal, _free.
 */
typedef uint64_t fawn_thread;

/**
 * A queue: events of runs, calls to the host, logs. The host takes them; nothing is pushed at it. 0 is none.
 *
 * Functions: fawn_queue_new, _take, _interrupt, _set_wakeup, _free.
 */
typedef uint64_t fawn_queue;

/**
 * A function of the host that is called when a queue that was empty has something to take.
 */
typedef void (*fawn_wakeup_fn)(uintptr_t user_data);

/**
 * A function of the host that is called exactly once when a registration has ended.
 */
typedef void (*fawn_drop_fn)(uintptr_t user_data);

/**
 * A run: one execution of an assembly on a thread, from request to result. 0 is none.
 *
 * Functions: fawn_run_start, _submit, _wait, _free.
 */
typedef uint64_t fawn_run;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The version of the ABI that the library serves. A program that was compiled with another `FAWN_ABI_VERSION` is
 * refused by `fawn_runtime_new`, with a message that says both numbers.
 *
 * Never fails, takes no lock, may be called in a forked child.
 */
FAWN_API
uint32_t fawn_abi_version(void);

/**
 * The version of the library, as static text: "0.1.0". Not to be freed.
 *
 * Never fails, takes no lock, may be called in a forked child.
 */
FAWN_API const char *fawn_version(void);

/**
 * The name of a status as it stands in this header, as static text: "FAWN_ERR_HANDLE". Not to be freed.
 * "FAWN_UNKNOWN" for a number that this version does not know.
 *
 * Never fails, takes no lock, may be called in a forked child.
 */
FAWN_API
const char *fawn_status_name(int32_t status);

/**
 * Answers questions about the library, as JSON. Needs no runtime.
 *
 * `what`, `len`: the topic, plain text rather than JSON:
 * - "" or "index": the topics;
 * - "build": version, ABI, features and target of this build;
 * - "errors": the closed list of error codes with status and meaning, and the outcomes that are no errors;
 * - "schemas": the names of the JSON schemas, each with a sentence;
 * - "schema/NAME": one JSON Schema (draft 2020-12);
 * - "handles": the living handles with their kinds, and how many buffers are alive.
 *
 * `out`: the answer, which you free.
 *
 * FAWN_ERR_UNKNOWN_VARIANT if there is no such topic; the message names those that exist.
 */
FAWN_API
int32_t fawn_describe(const char *what,
                      size_t len,
                      struct fawn_buf *out);

/**
 * Frees a buffer and empties it.
 *
 * NULL, an empty buffer, a buffer that was freed, and a copy of one are harmless: `owner` is checked. So is calling it
 * from inside a wake-up function. Two threads may not free the same `fawn_buf` struct at the same time.
 */
FAWN_API
void fawn_buf_free(struct fawn_buf *buf);

/**
 * Folds updates into the value of a channel, left to right, by the channel's reducer. Pure: no runtime, no thread.
 *
 * `channel`, `channel_len`: the name: "messages", "sandbox", "artifacts", "viewed_images", "todos", "goal", "promoted",
 * "delegations" or "skill_context".
 * `json`, `len`: `{"existing": E, "updates": [u1, u2, ...]}` (schema "reduce_input"). For "messages"
 * also `"ids"` and `"form"`: a value that an earlier call answered is fed back with `"form": "canonical"`.
 * `out`: the merged value, which you free.
 *
 * Errors: FAWN_ERR_UNKNOWN_CHANNEL; the FAWN_ERR_JSON_* and option errors for the document; the errors of the reducer
 * (-201 and below), with the path of the update at fault. A failed call changes nothing, there being nothing to change.
 */
FAWN_API
int32_t fawn_reduce(const char *channel,
                    size_t channel_len,
                    const char *json,
                    size_t len,
                    struct fawn_buf *out);

/**
 * Brings messages into canonical form: the layout in which threads, events and `fawn_reduce` have them. Gives no ids.
 *
 * `json`, `len`: `{"messages": [...]}` in any accepted form (schema "convert_input").
 * `out`: the array of canonical messages (schema "convert_answer"), which you free.
 *
 * Errors: as `fawn_reduce` for channel "messages".
 */
FAWN_API
int32_t fawn_messages_convert(const char *json,
                              size_t len,
                              struct fawn_buf *out);

/**
 * Tells what makes one agent another than the other: which tool, middleware, skill, setting or policy came, went or changed,
 * whether the prompt did, and whether only what is no part of an agent's identity (build, requested model) changed. Pure: no
 * runtime, no assembly.
 *
 * `json`, `len`: `{"before": D, "after": D}` (schema "descriptor_pair"), each as fawn_assembly_descriptor answered it, now or
 * in another version; a bare graph's `null` is refused.
 * `out`: the changes, as data and in words (schema "descriptor_diff"), which you free. `same` says whether the fingerprints
 * are equal; they are computed anew, and a stated one that does not belong to its facts is warned of.
 *
 * Errors: the FAWN_ERR_JSON_* and option errors for the document; FAWN_ERR_MISSING_MEMBER and FAWN_ERR_WRONG_TYPE, with the
 * path below `/before` or `/after`, for a descriptor that is none.
 */
FAWN_API
int32_t fawn_descriptor_diff(const char *json,
                             size_t len,
                             struct fawn_buf *out);

/**
 * Draws an agent: its loop, its middleware in order, its tools by source and its subagents, as a Mermaid flowchart. Pure: no
 * runtime, no assembly. Names of tools and agents cannot break the drawing's syntax, nor bring markup into it.
 *
 * `json`, `len`: a descriptor (schema "assembly_descriptor") as fawn_assembly_descriptor answered it, now or in another
 * version; a bare graph's `null` is refused.
 * `out`: `{"mermaid": "flowchart TD ..."}` (schema "descriptor_diagram"), which you free.
 *
 * Errors: the FAWN_ERR_JSON_* errors; FAWN_ERR_MISSING_MEMBER and FAWN_ERR_WRONG_TYPE, with the path, for a descriptor that
 * is none.
 */
FAWN_API
int32_t fawn_descriptor_diagram(const char *json,
                                size_t len,
                                struct fawn_buf *out);

/**
 * Makes a runtime. It starts no OS thread before the first run.
 *
 * `abi`: pass FAWN_ABI_VERSION, the version that the program was compiled with.
 * `json`, `len`: the configuration (schema "runtime_config"); `{}` is valid: memory store, no files, no network.
 * `out`: the handle, which you free with fawn_runtime_free; 0 on failure. `err`: the error object on failure.
 *
 * Errors: FAWN_ERR_ABI; FAWN_ERR_ARGUMENT if `out` is NULL; the FAWN_ERR_JSON_* and option errors; FAWN_ERR_STORE and
 * FAWN_ERR_STORE_CORRUPT if the store cannot be opened.
 */
FAWN_API
FAWN_MUST_USE
int32_t fawn_runtime_new(uint32_t abi,
                         const char *json,
                         size_t len,
                         fawn_runtime *out,
                         struct fawn_buf *err);

/**
 * Tells a runtime to do something that is rarely needed: `{"op": "delete_thread", "thread_id": "..."}`
 * (schema "runtime_op"). To delete a thread that there is not is no error.
 *
 * `out`: the op's answer, an object, which you free.
 *
 * Errors: FAWN_ERR_HANDLE; FAWN_ERR_CLOSED after shutdown; FAWN_ERR_UNKNOWN_VARIANT for an op that does not exist,
 * FAWN_ERR_UNSUPPORTED for one that this version does not have; FAWN_ERR_THREAD_BUSY; the option errors.
 */
FAWN_API
int32_t fawn_runtime_submit(fawn_runtime runtime,
                            const char *json,
                            size_t len,
                            struct fawn_buf *out);

/**
 * Facts and figures about a runtime: runs, queues, host calls that wait, living handles.
 *
 * Works after shutdown too. `out`: the answer (schema "runtime_stats"), which you free. Error: FAWN_ERR_HANDLE.
 */
FAWN_API
int32_t fawn_runtime_stats(fawn_runtime runtime,
                           struct fawn_buf *out);

/**
 * Shuts a runtime down: cancels its runs, ends open host calls, saves what is to be saved, closes its queues.
 *
 * Waits up to `timeout_ms` for that (negative: for ever; 0: only begins it). From the first call on everything else on
 * the runtime and its objects answers FAWN_ERR_CLOSED, except reading what is left in its queues and the results of
 * its runs. May be called again, by several threads at once, to wait once more.
 *
 * FAWN_OK: it is down; `out` says what was ended (schema "shutdown_answer"), and you free it.
 * FAWN_TIMEOUT: it is still going down. Error: FAWN_ERR_HANDLE.
 */
FAWN_API
int32_t fawn_runtime_shutdown(fawn_runtime runtime,
                              int64_t timeout_ms,
                              struct fawn_buf *out);

/**
 * Frees a runtime. 0 and handles that are none do nothing.
 *
 * Does not wait for runs: a runtime that was not shut down goes down behind the scenes. Its threads, assemblies, queues
 * and runs keep their handles and answer FAWN_ERR_CLOSED until you free them, in any order. The wake-up functions of its
 * queues are not running when this returns and will not run again, unless this is called from inside one, which it may
 * be. Calls that other OS threads are inside of are completed.
 */
FAWN_API
void fawn_runtime_free(fawn_runtime runtime);

/**
 * Makes a subagents object. It needs no fawn_subagents_start before assemblies delegate through it.
 *
 * `json`, `len`: its configuration (schema "subagents_config"); `{}` is valid. What is absent is as the runtime's
 * configuration has it ("subagent_runtime", and "max_total_per_run" of "subagents").
 * A request's "max_total_subagents" comes before "max_total_per_run", also where it is more.
 * `out`: the handle, which you free with fawn_subagents_free; 0 on failure. `err`: the error object on failure.
 *
 * Errors: FAWN_ERR_HANDLE, FAWN_ERR_CLOSED; FAWN_ERR_ARGUMENT if `out` is NULL; the FAWN_ERR_JSON_* and option errors;
 * FAWN_ERR_UNSUPPORTED for "batch_config": durable batches are not available in this version.
 */
FAWN_API
FAWN_MUST_USE
int32_t fawn_subagents_new(fawn_runtime runtime,
                           const char *json,
                           size_t len,
                           fawn_subagents *out,
                           struct fawn_buf *err);

/**
 * Starts what a subagents object owns besides its capacity: durable batches, of which this version has none. Subagents
 * of agents that wait for them run started or not. May be called again, and after fawn_subagents_stop.
 *
 * `out`: `{"started": true}` (schema "subagents_answer"), which you free. Errors: FAWN_ERR_HANDLE, FAWN_ERR_CLOSED.
 */
FAWN_API
int32_t fawn_subagents_start(fawn_subagents subagents,
                             struct fawn_buf *out);

/**
 * Stops what fawn_subagents_start started, and waits up to `timeout_ms` for that (negative: for ever; 0: only begins
 * it). Subagents of agents that wait for them go on, and new ones begin. May be called again, also without a start.
 *
 * FAWN_OK: it is stopped; `out`: `{"started": false}` (schema "subagents_answer"), which you free. FAWN_TIMEOUT: it is
 * still stopping; call it again to wait once more. Errors: FAWN_ERR_HANDLE, FAWN_ERR_CLOSED.
 */
FAWN_API
int32_t fawn_subagents_stop(fawn_subagents subagents,
                            int64_t timeout_ms,
                            struct fawn_buf *out);

/**
 * Tells how many subagents run and how many wait at this moment, and the limits of both.
 *
 * Works after the runtime's shutdown too. `out`: the figures (schema "subagents_stats"), which you free. Error:
 * FAWN_ERR_HANDLE.
 */
FAWN_API
int32_t fawn_subagents_stats(fawn_subagents subagents,
                             struct fawn_buf *out);

/**
 * Frees a subagents object's handle. 0 and handles that are none do nothing. Assemblies that name the object keep it, and
 * their subagents go on.
 */
FAWN_API
void fawn_subagents_free(fawn_subagents subagents);

/**
 * Composes an assembly.
 *
 * `json`, `len`: what it is made of (schema "assembly_config"). A fawn_subagents is named by its handle, a number:
 * "subagent_runtime".
 * `out`: the handle, which you free with fawn_assembly_free; 0 on failure. `err`: the error object on failure.
 *
 * Errors: FAWN_ERR_HANDLE, also for a fawn_subagents that was freed or is of another runtime; FAWN_ERR_CLOSED;
 * FAWN_ERR_ARGUMENT if `out` is NULL; the FAWN_ERR_JSON_* and option errors; FAWN_ERR_UNKNOWN_MODEL, FAWN_ERR_UNKNOWN_AGENT, FAWN_ERR_NOT_AUTHORIZED, FAWN_ERR_ASSEMBLY_INVALID, FAWN_ERR_STORE. May
 * read files: skills, and the record of a custom agent.
 */
FAWN_API
FAWN_MUST_USE
int32_t fawn_assembly_new(fawn_runtime runtime,
                          const char *json,
                          size_t len,
                          fawn_assembly *out,
                          struct fawn_buf *err);

/**
 * What an assembly turned out to be (schema "assembly_descriptor"): model, prompt hash, tools, order of middleware,
 * policies, and a fingerprint of all that shapes what it does; or `null` for a bare graph, which is what every factory but
 * `lead` makes.
 *
 * `out`: the descriptor, which you free. Errors: FAWN_ERR_HANDLE, FAWN_ERR_CLOSED.
 */
FAWN_API
int32_t fawn_assembly_descriptor(fawn_assembly assembly,
                                 struct fawn_buf *out);

/**
 * Frees an assembly. 0 and handles that are none do nothing. Runs that were started with it go on.
 */
FAWN_API void fawn_assembly_free(fawn_assembly assembly);

/**
 * Opens a thread of the runtime's store, or begins one.
 *
 * `json`, `len`: which (schema "thread_open"); `{}` begins a new one.
 * `out`: the handle, which you free with fawn_thread_free; 0 on failure. `err`: the error object on failure.
 *
 * Errors: FAWN_ERR_HANDLE, FAWN_ERR_CLOSED; FAWN_ERR_ARGUMENT if `out` is NULL; the FAWN_ERR_JSON_* and option errors;
 * FAWN_ERR_STORE, FAWN_ERR_STORE_CORRUPT.
 */
FAWN_API
FAWN_MUST_USE
int32_t fawn_thread_open(fawn_runtime runtime,
                         const char *json,
                         size_t len,
                         fawn_thread *out,
                         struct fawn_buf *err);

/**
 * Writes to the channels of a thread, as one step and one checkpoint: all of it or nothing. Channel by name, in "values", or
 * several such sets in order in "writes": {"values":{"title":"Trip","messages":[{"role":"user","content":"Hi"}]}}. Each value
 * goes through its channel's reducer: messages are added, those of a known id replaced. Nothing runs; a run without an input
 * goes on from there.
 *
 * `json`, `len`: the writes (schema "thread_update"). `out`: the new checkpoint
 * (schema "thread_update_answer"), which you free.
 *
 * Errors: FAWN_ERR_HANDLE, FAWN_ERR_CLOSED; FAWN_ERR_THREAD_BUSY while a run is in flight; the FAWN_ERR_JSON_* and option
 * errors; the errors of the reducers (-201 and below) with the path of the write; FAWN_ERR_STORE, FAWN_ERR_THREAD_STALE.
 */
FAWN_API
FAWN_MUST_USE
int32_t fawn_thread_update(fawn_thread thread,
                           const char *json,
                           size_t len,
                           struct fawn_buf *out);

/**
 * Reads the state of a thread, as of its newest checkpoint or of a named one. What another process has written since this
 * one opened the thread is seen once a write has failed with FAWN_ERR_THREAD_STALE, or by a named checkpoint.
 *
 * `json`, `len`: what to read (schema "thread_state_query"); `{}` reads all channels of the newest.
 * `out`: the channels' values and the checkpoint they are of (schema "thread_state"), which you free.
 *
 * Errors: FAWN_ERR_HANDLE, FAWN_ERR_CLOSED, FAWN_ERR_UNKNOWN_CHECKPOINT; the FAWN_ERR_JSON_* and option errors;
 * FAWN_ERR_STORE, FAWN_ERR_STORE_CORRUPT. May be called while a run is in flight.
 */
FAWN_API
int32_t fawn_thread_state(fawn_thread thread,
                          const char *json,
                          size_t len,
                          struct fawn_buf *out);

/**
 * Lists the checkpoints of a thread, newest first.
 *
 * `json`, `len`: which and how many (schema "thread_history_query"); `{}` is all.
 * `out`: the list (schema "thread_history"), which you free.
 *
 * Errors: as fawn_thread_state. May be called while a run is in flight.
 */
FAWN_API
int32_t fawn_thread_history(fawn_thread thread,
                            const char *json,
                            size_t len,
                            struct fawn_buf *out);

/**
 * Reads, sets or clears the goal of a thread. Runs on the thread, of whichever assembly, judge an active goal after each turn
 * and add turns of their own until it is reached, blocked or out of turns (events "goal").
 *
 * A goal is cleared by this alone: what fawn_thread_update writes to the channel "goal" only ever replaces it, and null
 * keeps it.
 *
 * `json`, `len`: `{"op": "get"}`, `{"op": "set", "objective": "..."}`, `{"op": "clear"}`, or `{"op": "command",
 * "argument": "..."}` for what a user wrote behind "/goal" (schema "goal_op").
 * `out`: what was done, the goal, and the newest checkpoint (schema "goal_answer"), which you free.
 *
 * Errors: FAWN_ERR_HANDLE, FAWN_ERR_CLOSED; FAWN_ERR_OUT_OF_RANGE for an objective that is blank or too long; the
 * FAWN_ERR_JSON_* and option errors; FAWN_ERR_STORE, FAWN_ERR_STORE_CORRUPT. For set and clear also FAWN_ERR_THREAD_BUSY
 * while a run is in flight, FAWN_ERR_CONFLICT if another checkpoint was expected (FAWN_ERR_UNKNOWN_CHECKPOINT if what was
 * expected is no checkpoint's id), FAWN_ERR_THREAD_STALE; get may be called while a run is in flight.
 */
FAWN_API
FAWN_MUST_USE
int32_t fawn_thread_goal(fawn_thread thread,
                         const char *json,
                         size_t len,
                         struct fawn_buf *out);

/**
 * Frees a thread's handle. 0 and handles that are none do nothing. What the store holds stays; a run in flight goes on.
 */
FAWN_API
void fawn_thread_free(fawn_thread thread);

/**
 * Makes a queue.
 *
 * `json`, `len`: its options (schema "queue_config"); `{}` is valid.
 * `out`: the handle, which you free with fawn_queue_free; 0 on failure. `err`: the error object on failure.
 *
 * Errors: FAWN_ERR_HANDLE, FAWN_ERR_CLOSED; FAWN_ERR_ARGUMENT if `out` is NULL; the FAWN_ERR_JSON_* and option errors.
 */
FAWN_API
FAWN_MUST_USE
int32_t fawn_queue_new(fawn_runtime runtime,
                       const char *json,
                       size_t len,
                       fawn_queue *out,
                       struct fawn_buf *err);

/**
 * Takes what is in a queue, oldest first, or waits until there is something.
 *
 * `timeout_ms`: how long to wait: negative for ever, 0 not at all.
 * `max_events`: take at most so many; 0: all that are there.
 * `out`: a JSON array of at least one event (schema "event" each), which you free.
 *
 * FAWN_TIMEOUT: nothing came. FAWN_INTERRUPTED: fawn_queue_interrupt was called. FAWN_CLOSED: the queue is empty and was
 * freed, or its runtime is down. In these cases `out` is empty. Error: FAWN_ERR_HANDLE.
 *
 * Several OS threads may take from one queue; each event goes to one of them. In a runtime with `"workers": 0` it is in
 * here, and in fawn_run_wait, that runs make progress.
 */
FAWN_API
int32_t fawn_queue_take(fawn_queue queue,
                        int64_t timeout_ms,
                        uint32_t max_events,
                        struct fawn_buf *out);

/**
 * Ends one fawn_queue_take early: the one that waits now (any one, if several do), or else the next. Never lost.
 *
 * Never blocks. Error: FAWN_ERR_HANDLE (there is no error object).
 */
FAWN_API
int32_t fawn_queue_interrupt(fawn_queue queue);

/**
 * Registers the function that is called when an empty queue gets something to take; NULL clears it.
 *
 * For hosts with an event loop of their own: the function tells the loop, and the loop calls fawn_queue_take with a
 * timeout of 0 until FAWN_TIMEOUT. If there is something to take already, the function is called at once.
 *
 * `wakeup(user_data)` is called on OS threads of the library, or inside a call of the host's own; at most once each time
 * the queue goes from empty to not empty, and when it is closed; perhaps on several OS threads at once, perhaps before
 * this function returns.
 * It must return soon and must not unwind, longjmp or end the OS thread. It must not call the library: calls answer
 * FAWN_ERR_WRONG_THREAD, except for the _free functions.
 * `drop(user_data)`, if not NULL, is called exactly once when the registration has ended, because it was replaced or
 * cleared, or the queue or its runtime was freed: after the last call of `wakeup` has returned, under the same rules. If
 * this function fails nothing is registered and `drop` is not called.
 *
 * When this returns, the function that was registered before is not running and will not run again, and its `drop` has
 * returned: do not call it while holding a lock that `wakeup` takes. With `wakeup` NULL the other two are ignored.
 *
 * `err`: the error object on failure. Error: FAWN_ERR_HANDLE.
 */
FAWN_API
int32_t fawn_queue_set_wakeup(fawn_queue queue,
                              fawn_wakeup_fn wakeup,
                              uintptr_t user_data,
                              fawn_drop_fn drop,
                              struct fawn_buf *err);

/**
 * Frees a queue. 0 and handles that are none do nothing.
 *
 * What is in it is lost, its open host calls fail, and runs that need it end. An OS thread that waits in
 * fawn_queue_take gets FAWN_CLOSED. The wake-up function is not running when this returns and will not run again, unless
 * this is called from inside a wake-up function, which it may be.
 */
FAWN_API
void fawn_queue_free(fawn_queue queue);

/**
 * Starts a run. Returns as soon as the run is admitted; everything else comes through the queue.
 *
 * `assembly`, `thread`, `queue`: of one runtime. `queue` 0: nobody listens, the result is had by fawn_run_wait; refused
 * with FAWN_ERR_NO_QUEUE if the assembly calls the host.
 * `json`, `len`: the request (schema "run_request").
 * `out`: the handle, which you free with fawn_run_free; 0 on failure. NULL: you do not want one, the run goes by itself.
 * `err`: the error object on failure.
 *
 * Errors: FAWN_ERR_HANDLE, FAWN_ERR_CLOSED; FAWN_ERR_THREAD_BUSY if another run is in flight and the request does not
 * say what to do then; FAWN_ERR_UNKNOWN_CHECKPOINT; the FAWN_ERR_JSON_* and option errors; the errors of the reducer for
 * the input's messages.
 */
FAWN_API
FAWN_MUST_USE
int32_t fawn_run_start(fawn_assembly assembly,
                       fawn_thread thread,
                       fawn_queue queue,
                       const char *json,
                       size_t len,
                       fawn_run *out,
                       struct fawn_buf *err);

/**
 * Tells a run something: `{"op": "cancel" | "status" | ...}` (schema "run_op").
 *
 * Returns when the op was taken, not when it has had its effect. `out`: its answer (schema "run_op_answer"), which you
 * free.
 *
 * Errors: FAWN_ERR_HANDLE; FAWN_ERR_UNKNOWN_VARIANT for an op that does not exist, FAWN_ERR_UNSUPPORTED for one that this
 * version does not have; the option errors.
 */
FAWN_API
int32_t fawn_run_submit(fawn_run run,
                        const char *json,
                        size_t len,
                        struct fawn_buf *out);

/**
 * Waits for the end of a run and answers its result: status, final state, error (schema "run_result").
 *
 * `timeout_ms`: how long to wait: negative for ever, 0 not at all. May be called again, and by several OS threads: all
 * get the same result, perhaps a moment before the event "run_end" is in the queue. `out`: the result, which you free.
 * A run that failed is a result, and FAWN_OK.
 *
 * FAWN_TIMEOUT: it goes on. FAWN_CLOSED: the runtime was freed and nobody drives it to its end. Error: FAWN_ERR_HANDLE.
 */
FAWN_API
int32_t fawn_run_wait(fawn_run run,
                      int64_t timeout_ms,
                      struct fawn_buf *out);

/**
 * Frees a run's handle. 0 and handles that are none do nothing. The run goes on; to end it, submit "cancel".
 */
FAWN_API
void fawn_run_free(fawn_run run);

/**
 * Adds to the answer of a host call before it is finished: text of a model as it comes, progress of a tool. The call of a
 * middleware takes nothing but its verdict (FAWN_ERR_UNSUPPORTED).
 *
 * `call_id`: from the "host_call" event. `json`, `len`: the part (schema "call_part").
 * FAWN_GONE: the call is over (cancelled, or its deadline passed); stop working on it. `err`: the error object on
 * failure.
 *
 * May be called from any OS thread, many times; parts of one call arrive in the order of the calls here.
 * Errors: FAWN_ERR_HANDLE, also for a `call_id` that was never given; FAWN_ERR_BEHIND if the run has not yet taken what the
 * call emitted before (wait, then try again); the FAWN_ERR_JSON_* and option errors.
 */
FAWN_API
int32_t fawn_call_emit(fawn_runtime runtime,
                       uint64_t call_id,
                       const char *json,
                       size_t len,
                       struct fawn_buf *err);

/**
 * Answers a host call, now or in an hour, from any OS thread.
 *
 * `call_id`: from the "host_call" event. `json`, `len`: `{"ok": ...}` or `{"error": {"message": "..."}}` (schema
 * "call_answer"). What stands under "ok" depends on the kind of the call: a tool's answer, a model's reply, whether a
 * guardrail allows a call (schema "guardrail_answer"), or, when you are asked as a middleware, a verdict (schema
 * "middleware_verdict") on what "args" says (schema "middleware_question"). `err`: the error object on failure; the call is
 * still open then, so that an answer that does not fit can be mended.
 *
 * FAWN_GONE: it was answered before, was cancelled, or its deadline passed. Of two answers at the same time one gets
 * FAWN_OK. Errors: FAWN_ERR_HANDLE, also for a `call_id` that was never given; the FAWN_ERR_JSON_* and option errors.
 */
FAWN_API
int32_t fawn_call_finish(fawn_runtime runtime,
                         uint64_t call_id,
                         const char *json,
                         size_t len,
                         struct fawn_buf *err);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* FAWN_H */
