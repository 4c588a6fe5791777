// Host calls: running a function of the program when the agent asks for it, and answering whatever becomes of it.

package fawn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"fawn/bindings/go/internal/cabi"
)

// funcs are the functions that an assembly's calls go to.
type funcs struct {
	tools map[string]HostFunc
	model HostFunc
}

// of is the function that answers a call; nil if there is none.
func (f *funcs) of(call *HostCall) HostFunc {
	switch call.Kind {
	case "tool":
		return f.tools[call.Name]
	case "model":
		return f.model
	}
	return nil // of a later version
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
// It returns when the answer was sent, whatever it was. [ErrGone]: too late. [ErrUnsupported]: the assembly has no function
// for this call.
func (a *Assembly) Answer(ctx context.Context, call *HostCall) error {
	defer runtime.KeepAlive(a)
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

func isOver(ctx context.Context) bool {
	var over *overError
	return ctx.Err() != nil && errors.As(context.Cause(ctx), &over)
}

// serve runs a host function and answers the call, once, whatever the function does.
func serve(ctx context.Context, r *Runtime, f HostFunc, call *HostCall) (err error) {
	ctx = context.WithValue(ctx, callKey{}, &callInFlight{r, call})
	returned := false
	defer func() {
		if returned {
			return
		}
		// It panicked, or ended its goroutine with runtime.Goexit.
		problem := recover()
		failed := fmt.Errorf("%s panicked: %v", call.Name, problem)
		if problem == nil {
			failed = errors.New(call.Name + " ended without an answer")
		}
		report().Error("fawn: a host function panicked", "name", call.Name, "panic", problem, "stack", string(debug.Stack()))
		err = fail(ctx, r, call, failed)
	}()
	value, failed := f(ctx, call.Args)
	returned = true
	if failed != nil {
		return fail(ctx, r, call, failed)
	}
	reply, unfit := approval(call, value)
	if unfit == nil {
		unfit = finish(r, call, reply)
		if unfit == nil || isCode(unfit, ErrGone) || isCode(unfit, ErrHandle) || isCode(unfit, ErrClosed) {
			return unfit
		}
	}
	// The library did not take the answer and the call is still open: the model hears what was wrong.
	report().Warn("fawn: the answer of a host function was refused", "name", call.Name, "error", unfit)
	return errors.Join(unfit, fail(ctx, r, call, fmt.Errorf("the answer of %s was refused: %w", call.Name, unfit)))
}

// fail answers a call with an error.
func fail(ctx context.Context, r *Runtime, call *HostCall, failed error) error {
	if isOver(ctx) {
		// Most likely that the context ended is what failed. Sent now it might still be taken for the tool's answer, and
		// kept, so that the tool is not asked again when the thread goes on.
		return &Error{Code: ErrGone, Status: cabi.Gone, Message: failed.Error()}
	}
	return finish(r, call, refusal(failed.Error()))
}

// approval is the call_answer document for what a function returned. A tool's value is wrapped, so that no value is
// mistaken for an Answer because it happens to have a member named "content".
func approval(call *HostCall, value any) (string, error) {
	if call.Kind != "model" {
		switch given := value.(type) {
		case Answer:
			value = given
		case *Answer:
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
		report().Debug("fawn: an answer came too late", "name", call.Name, "call_id", call.CallID)
	}
	return err
}
