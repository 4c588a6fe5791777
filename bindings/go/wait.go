// Waiting inside the library for as long as a context lasts.

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
		if err := ctx.Err(); err != nil {
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
