// Host calls: running a function of the program when the agent asks for it, and answering whatever becomes of it.

package fawn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"time"

	"fawn/bindings/go/internal/cabi"
)

// funcs are the functions that an assembly's calls go to, or that a runtime has for those of its assemblies.
type funcs struct {
	tools       map[string]HostFunc
	models      map[string]HostFunc
	model       HostFunc // of models that have none by their name
	guardrail   HostFunc
	middlewares map[string]HostFunc
	sandbox     map[string]HostFunc
	memory      map[string]HostFunc
	// The runtime's, for what is not here; of tools, only of lead agents.
	runtime *funcs
	isLead  bool
}

// of is the function that answers a call; nil if there is none.
func (f *funcs) of(call *HostCall) HostFunc {
	var own HostFunc
	switch call.Kind {
	case "tool":
		own = f.tools[call.Name]
	case "model":
		if own = f.models[call.Name]; own == nil {
			own = f.model
		}
	case "guardrail":
		return f.guardrail
	case "middleware":
		return f.middlewares[call.Name]
	case "sandbox":
		return f.sandbox[call.Name]
	case "memory":
		return f.memory[call.Name]
	default:
		return nil // of a later version
	}
	if own == nil && f.runtime != nil && (call.Kind != "tool" || f.isLead) {
		return f.runtime.of(call)
	}
	return own
}

type callKey struct{}

// callInFlight is what the context of a host function carries.
type callInFlight struct {
	runtime *Runtime
	call    *HostCall
}

// Answer runs the function that a host call of this assembly is for, and sends what it answers. It is for those who take
// events from a queue of their own ([Assembly.StartOn]); calls of runs that [Assembly.Start] began are answered without.
//
// It returns when the answer was sent, whatever it was; so call it on a goroutine of its own, since what the function emits
// gets nowhere while nobody takes from the queue. [ErrGone]: too late. [ErrUnsupported]: the assembly has no function for
// this call.
func (a *Assembly) Answer(ctx context.Context, call *HostCall) error {
	defer runtime.KeepAlive(a)
	if call == nil {
		return &Error{Code: ErrArgument, Status: -101, Message: "there is no call"}
	}
	f := a.funcs.of(call)
	if f == nil {
		return &Error{Code: ErrUnsupported, Status: -110, Message: fmt.Sprintf("no function for the %s %q", call.Kind, call.Name)}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(call.DeadlineMS)*time.Millisecond, errTooLate)
	defer cancel()
	return serve(ctx, a.runtime, f, call)
}

// overError is why the context of a call ends when the library has ended the call, or is about to.
type overError struct{ cause error }

func (e *overError) Error() string { return "fawn: the host call is over: " + e.cause.Error() }

func (e *overError) Unwrap() error { return e.cause }

// errTooLate is why the context of a call ends at its deadline.
var errTooLate error = &overError{context.DeadlineExceeded}

// isOver asks the cause itself and nothing that it wraps, which may be an error of the program's with methods of its own.
func isOver(ctx context.Context) bool {
	_, over := context.Cause(ctx).(*overError)
	return over
}

// serve runs a host function and answers the call, once, whatever the program's code does: the function, the methods of
// the error or value that it returns, and those of what it panics with. All of that runs before the last of the deferred
// functions, which answers, and which neither a panic nor runtime.Goexit keeps from running.
func serve(ctx context.Context, r *Runtime, f HostFunc, call *HostCall) (err error) {
	ctx = context.WithValue(ctx, callKey{}, &callInFlight{r, call})
	var (
		reply  string // the answer, if there is one
		failed = call.Name + " ended without an answer"
		unfit  error // why what was returned is no answer
		doing  string
	)
	defer func() {
		_ = recover() // from the text of a panic, which panicked as well
		err = conclude(ctx, r, call, reply, failed, unfit)
	}()
	defer func() {
		if problem := recover(); problem != nil {
			stack := string(debug.Stack())
			failed = call.Name + " panicked" + doing
			defer func() {
				_ = recover()
				tell(slog.LevelError, "fawn: a host function panicked", "name", call.Name, "panic", failed, "stack", stack)
			}()
			failed = fmt.Sprintf("%s: %v", failed, problem)
		}
	}()
	value, problem := f(ctx, call.Args)
	if problem != nil {
		doing = " when its error was asked for its text"
		failed = problem.Error()
		return
	}
	doing = " when its answer was to become JSON"
	var text string
	if text, unfit = approval(call, value); unfit != nil {
		failed = unfit.Error()
		return
	}
	reply = text
	return
}

// conclude answers a call, with the reply or, if there is none, with why not.
func conclude(ctx context.Context, r *Runtime, call *HostCall, reply, failed string, unfit error) (err error) {
	if reply != "" {
		err := finish(r, call, reply)
		if err == nil || isCode(err, ErrGone) || isCode(err, ErrHandle) || isCode(err, ErrClosed) {
			return err
		}
		unfit, failed = err, err.Error()
	}
	if unfit == nil {
		return fail(ctx, r, call, failed)
	}
	// The library did not take the answer and the call is still open: the model hears what was wrong.
	defer func() {
		err = errors.Join(unfit, fail(ctx, r, call, "the answer of "+call.Name+" was refused: "+failed))
	}()
	tell(slog.LevelWarn, "fawn: the answer of a host function was refused", "name", call.Name, "error", failed)
	return nil
}

// fail answers a call with an error.
func fail(ctx context.Context, r *Runtime, call *HostCall, failed string) error {
	if isOver(ctx) {
		// Most likely that the context ended is what failed. Sent now it might still be taken for the tool's answer, and
		// kept, so that the tool is not asked again when the thread goes on.
		return &Error{Code: ErrGone, Status: cabi.Gone, Message: failed}
	}
	return finish(r, call, refusal(failed))
}

// approval is the call_answer document for what a function returned. A tool's value is wrapped, so that no value is
// mistaken for an Answer because it happens to have a member named "content".
func approval(call *HostCall, value any) (string, error) {
	if call.Kind == "tool" {
		switch given := value.(type) {
		case Answer:
			value = given
		case *Answer:
			if given == nil {
				given = &Answer{}
			}
			value = given
		default:
			value = Answer{Content: value}
		}
	}
	text, err := json.Marshal(struct {
		OK any `json:"ok"`
	}{value})
	return view(text), err
}

func refusal(message string) string {
	text, err := json.Marshal(map[string]map[string]string{"error": {"message": message}})
	if err != nil {
		return `{"error":{"message":"failed"}}` // cannot be: text always becomes JSON
	}
	return view(text)
}

func finish(r *Runtime, call *HostCall, reply string) error {
	err := check(cabi.CallFinish(r.handle, call.CallID, reply))
	runtime.KeepAlive(r)
	if isCode(err, ErrGone) {
		tell(slog.LevelDebug, "fawn: an answer came too late", "name", call.Name, "call_id", call.CallID)
	}
	return err
}
