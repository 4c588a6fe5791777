// Contexts: what their end looks like as an error, and waiting inside the library for as long as one lasts.

package fawn

import (
	"context"
	"encoding/json"

	"fawn/bindings/go/internal/cabi"
)

// sliceMS is how long a wait that nothing can interrupt sleeps before it looks at its context again.
const sliceMS = 10

// wait calls a function of the library that waits and cannot be interrupted (only queues can), until it has an answer or
// the context ends.
func wait(ctx context.Context, call func(timeoutMS int64) (int32, []byte)) (json.RawMessage, error) {
	timeout := int64(sliceMS)
	if ctx.Done() == nil {
		timeout = -1
	}
	for {
		if err := ended(ctx); err != nil {
			return nil, err
		}
		status, text := call(timeout)
		switch status {
		case cabi.Timeout:
		case cabi.Closed:
			return nil, &Error{Code: ErrClosed, Status: -107, Message: "the runtime was freed while waiting"}
		default:
			return answer(status, text)
		}
	}
}

// ended is nil while the context lasts. Then it is an error that is both the context's error and what cancelled it, if that
// is another: errors.Is finds context.Canceled as well as a cause of the program's own.
func ended(ctx context.Context) error {
	err := ctx.Err()
	if err == context.Canceled || err == context.DeadlineExceeded {
		if cause := context.Cause(ctx); cause != err {
			return &contextError{err, cause}
		}
	}
	return err
}

type contextError struct{ err, cause error }

func (e *contextError) Error() string { return e.err.Error() + ": " + e.cause.Error() }

func (e *contextError) Unwrap() []error { return []error{e.err, e.cause} }
