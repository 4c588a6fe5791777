// The closed list of error codes, as errors.

package fawn

// Code names a kind of failure, by a closed list that new versions may add to. Each Err... constant is a Code, and a Code
// is an error, so that
//
//	errors.Is(err, fawn.ErrThreadBusy)
//
// tells whether err is, or wraps, an [Error] of that code.
type Code string

// Error is the code's name, such as "thread_busy".
func (c Code) Error() string { return string(c) }

// Outcomes of calls that are no failures of the library.
const (
	// The host call is over: it was answered already, cancelled, or its deadline passed.
	ErrGone = Code("gone")
)

// What the library refuses or fails with.
const (
	// A pointer is NULL where one is needed, or a length does not fit its pointer.
	ErrArgument = Code("argument")
	// The handle was never made by this library, is of another kind, or was freed.
	ErrHandle = Code("handle")
	// Text is not valid UTF-8.
	ErrNotUTF8 = Code("not_utf8")
	// The caller was built against an ABI that this library does not serve.
	ErrABI = Code("abi")
	// The process was forked after the library was used; the child may not use it.
	ErrForked = Code("forked")
	// The library caught a panic of its own. The process and all other handles go on.
	ErrPanic = Code("panic")
	// The runtime was shut down.
	ErrClosed = Code("closed")
	// The call was made from inside a wake-up hook.
	ErrWrongThread = Code("wrong_thread")
	// Input is larger than 1 GiB.
	ErrTooLarge = Code("too_large")
	// What was asked is not available in this version or build.
	ErrUnsupported = Code("unsupported")
	// Text is not JSON.
	ErrJSONSyntax = Code("json_syntax")
	// JSON is nested deeper than 128.
	ErrJSONDepth = Code("json_depth")
	// An object has a member that is not known here.
	ErrUnknownMember = Code("unknown_member")
	// A value has the wrong JSON type.
	ErrWrongType = Code("wrong_type")
	// A value is outside its bounds.
	ErrOutOfRange = Code("out_of_range")
	// A required member is missing.
	ErrMissingMember = Code("missing_member")
	// A name is not one of the known ones.
	ErrUnknownVariant = Code("unknown_variant")
	// There is no channel of this name.
	ErrUnknownChannel = Code("unknown_channel")
	// Members contradict each other.
	ErrConflict = Code("conflict")
	// A write to messages is null.
	ErrNullWrite = Code("null_write")
	// A message has no role or no content member.
	ErrMessageIncomplete = Code("message_incomplete")
	// A message's role or type is not known.
	ErrUnknownRole = Code("unknown_role")
	// A value is not a message in any accepted form.
	ErrNotAMessage = Code("not_a_message")
	// A member of a message has the wrong type.
	ErrMessageInvalid = Code("message_invalid")
	// A member that a message or one of its tool calls needs is missing.
	ErrMessageMember = Code("message_member")
	// The arguments text of a tool call is not JSON.
	ErrArgumentsSyntax = Code("arguments_syntax")
	// A message or one of its tool calls has a member that it may not have.
	ErrMessageExtra = Code("message_extra")
	// The removal of a message names an id that is not in the thread.
	ErrUnknownMessageID = Code("unknown_message_id")
	// Two writes put different sandboxes on one thread.
	ErrSandboxConflict = Code("sandbox_conflict")
	// An entry written to a channel lacks a member that its reducer needs.
	ErrEntryMember = Code("entry_member")
	// A value written to a channel has a type that its reducer cannot take.
	ErrEntryType = Code("entry_type")
	// Two writes of one step meet in a channel that takes one.
	ErrConflictingWrites = Code("conflicting_writes")
	// An assembly names a model or provider that is not configured.
	ErrUnknownModel = Code("unknown_model")
	// An assembly is inconsistent: two tools of one name, a schema that is none, a file that cannot be read.
	ErrAssemblyInvalid = Code("assembly_invalid")
	// There is no custom agent of this name.
	ErrUnknownAgent = Code("unknown_agent")
	// The authorization does not let this user have what the assembly needs.
	ErrNotAuthorized = Code("not_authorized")
	// The thread has a run in flight.
	ErrThreadBusy = Code("thread_busy")
	// There is no such checkpoint on this thread.
	ErrUnknownCheckpoint = Code("unknown_checkpoint")
	// The store failed to read or write.
	ErrStore = Code("store")
	// What the store holds cannot be read.
	ErrStoreCorrupt = Code("store_corrupt")
	// Another process changed the thread since it was opened.
	ErrThreadStale = Code("thread_stale")
	// The run used up its steps.
	ErrRecursionLimit = Code("recursion_limit")
	// The run was cancelled.
	ErrCancelled = Code("cancelled")
	// A hook of a middleware failed.
	ErrMiddleware = Code("middleware")
	// The assembly asks the host, but nobody listens: the run was started with queue 0.
	ErrNoQueue = Code("no_queue")
	// A host call was not answered before its deadline.
	ErrDeadlineExceeded = Code("deadline_exceeded")
	// The run's queue was freed while it was needed.
	ErrQueueClosed = Code("queue_closed")
	// What was handed in before has not been taken yet; try again later.
	ErrBehind = Code("behind")
	// The model endpoint refused the credentials.
	ErrModelAuth = Code("model_auth")
	// The model endpoint refused the request.
	ErrModelRequest = Code("model_request")
	// The model endpoint asks to slow down.
	ErrModelRateLimit = Code("model_rate_limit")
	// The model endpoint failed or is overloaded.
	ErrModelServer = Code("model_server")
	// The model endpoint could not be reached, or the connection broke.
	ErrModelConnection = Code("model_connection")
	// The model endpoint did not answer in time.
	ErrModelTimeout = Code("model_timeout")
	// The reply is not what the wire format says.
	ErrModelProtocol = Code("model_protocol")
	// The reply's stream ended before its end mark.
	ErrModelTruncated = Code("model_truncated")
	// A scripted model has no reply for this turn.
	ErrScriptExhausted = Code("script_exhausted")
	// The host answered its model call with an error.
	ErrModelHost = Code("model_host")
	// The model was not asked: its calls have failed so often of late that the circuit breaker waits a while.
	ErrModelUnavailable = Code("model_unavailable")
	// The model gave no answer that can be shown; a message of the thread stands in for it.
	ErrModelNoAnswer = Code("model_no_answer")
	// A broken invariant of the library.
	ErrInternal = Code("internal")
)
