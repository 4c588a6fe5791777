// Runs: one execution of an agent on a thread, from request to result.

package fawn

import (
	"context"
	"encoding/json"
	"iter"
	"runtime"

	"fawn/bindings/go/internal/cabi"
)

// Run is one execution of an assembly on a thread.
type Run struct {
	object
	runtime *Runtime
	id      string
	// What brings the events; nil for a run whose events go to a queue of the program's.
	feed *feed
	// Of a run without a feed: its context, and what stops the context's hold on it.
	ctx    context.Context
	unhook func() bool
}

// Ask is the request that puts a question to the agent: {"input": {"messages": [{"role": "user", "content": question}]}}.
func Ask(question string) Object {
	return Object{"input": Object{"messages": []Object{{"role": "user", "content": question}}}}
}

// ID is the run's id, which is also in its events and its result. It stays when the run is closed.
func (r *Run) ID() string { return r.id }

// Start sets the agent to work on a thread (schema "run_request") and returns at once.
//
// The context is the run's: when it ends the run is cancelled, and host functions have its values. Functions of the
// assembly's tools and model are called as the agent asks for them. [ErrThreadBusy]: another run is in flight.
//
// Events come by [Run.Events]. A run is held back by a reader that does not keep up: up to 1,000 events wait in Go and some
// 500 in the library, and then the run waits, this one only. If nobody reads, [Run.Wait] makes room by dropping events, and
// so do [Run.Close] and the end of the context.
func (a *Assembly) Start(ctx context.Context, thread *Thread, request any) (*Run, error) {
	defer runtime.KeepAlive(a)
	defer runtime.KeepAlive(thread)
	text, err := encode(request)
	if err != nil {
		return nil, err
	}
	if err := ended(ctx); err != nil {
		return nil, err
	}
	if a.runtime == nil {
		return nil, &Error{Code: ErrHandle, Status: -102, Message: "this assembly was never made"}
	}
	if a.runtime.driven {
		a.runtime.startDriving()
	}
	f, err := startFeed(ctx, a, thread.number(), text)
	if err != nil {
		return nil, err
	}
	run := &Run{runtime: a.runtime, feed: f}
	run.id, _ = runStatus(f.run)
	run.keep("run", f.run, caller(), f.release)
	return run, nil
}

// StartOn is Start with a queue of the program's own, to which the run's events go, its host calls among them; see
// [Assembly.Answer]. Many runs may share a queue; when nobody takes from it, all of them wait. Without a queue nobody
// listens, and [Run.Wait] has the result; [ErrNoQueue] if the assembly has tools or a model of the host.
func (a *Assembly) StartOn(ctx context.Context, queue *Queue, thread *Thread, request any) (*Run, error) {
	defer runtime.KeepAlive(a)
	defer runtime.KeepAlive(thread)
	defer runtime.KeepAlive(queue)
	text, err := encode(request)
	if err != nil {
		return nil, err
	}
	if err := ended(ctx); err != nil {
		return nil, err
	}
	var to uint64
	if queue != nil {
		to = queue.handle
	}
	handle, status, object := cabi.RunStart(a.handle, thread.number(), to, text)
	if status != cabi.OK {
		return nil, failure(status, object)
	}
	unhook := context.AfterFunc(ctx, func() { cancelRun(handle, ctx) })
	run := &Run{runtime: a.runtime, ctx: ctx, unhook: unhook}
	run.id, _ = runStatus(handle)
	run.keep("run", handle, caller(), func(handle uint64) {
		unhook()
		cabi.RunFree(handle)
	})
	return run, nil
}

// Events ranges over the run's events as they come, up to and including its run_end. It yields an error, last, if they end
// before that because the runtime was closed. Breaking out loses nothing: another range goes on from there.
//
// Of a run on a queue of the program's own it yields an error only.
func (r *Run) Events() iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		defer runtime.KeepAlive(r)
		switch {
		case r.feed == nil:
			yield(Event{}, &Error{Code: ErrUnsupported, Status: -110, Message: "the events of this run go to a queue"})
		case r.closed.Load():
			yield(Event{}, freedRun())
		default:
			r.feed.read(yield)
		}
	}
}

// Wait waits for the end of the run and gives its result. The error is that of the result, see [Result.Err], which is there
// all the same: nil only if the run succeeded. Without a result it is the context's, or says why there is none. The context
// ends the wait and not the run.
func (r *Run) Wait(ctx context.Context) (*Result, error) {
	defer runtime.KeepAlive(r)
	if r.feed == nil {
		text, err := wait(ctx, func(timeoutMS int64) (int32, []byte) { return cabi.RunWait(r.handle, timeoutMS) })
		if err != nil {
			return nil, err
		}
		r.unhook()
		return resultOf(text, ended(r.ctx))
	}
	if r.closed.Load() {
		return nil, freedRun()
	}
	return r.feed.wait(ctx)
}

// Cancel ends the run; what has arrived of a reply is kept. The run's end comes soon, by its event and by Wait. Cancelling
// a run that has ended does nothing.
func (r *Run) Cancel(reason string) error {
	_, err := r.Submit(Object{"op": "cancel", "reason": reason})
	return err
}

// Submit tells the run something (schema "run_op").
func (r *Run) Submit(op any) (json.RawMessage, error) {
	defer runtime.KeepAlive(r)
	text, err := encode(op)
	if err != nil {
		return nil, err
	}
	if r.feed != nil && r.closed.Load() {
		return nil, freedRun()
	}
	return answer(cabi.RunSubmit(r.handle, text))
}

// Close lets go of the run, which goes on; its events are dropped from now on. To end a run, cancel it or its context.
func (r *Run) Close() error { return r.object.Close() }

// freedRun is what the library would say. A feed still uses the handle when the user has closed the run.
func freedRun() error {
	return &Error{Code: ErrHandle, Status: -102, Message: "this run was closed"}
}

// runStatus asks the library which run a handle stands for, and whether it has ended; an empty id if there is none.
func runStatus(run uint64) (id string, ended bool) {
	status, text := cabi.RunSubmit(run, `{"op":"status"}`)
	var said struct {
		RunID string `json:"run_id"`
		Ended bool   `json:"ended"`
	}
	if status != cabi.OK || json.Unmarshal(text, &said) != nil {
		return "", false
	}
	return said.RunID, said.Ended
}

func hasEnded(run uint64) bool {
	_, ended := runStatus(run)
	return ended
}

// cancelRun tells a run that its context has ended, and why. This runs on a goroutine of its own, where a panic of the
// cause would end the process and the run would never hear of it.
func cancelRun(run uint64, ctx context.Context) {
	reason := "the context ended"
	defer func() {
		_ = recover()
		if op, err := encode(Object{"op": "cancel", "reason": reason}); err == nil {
			cabi.RunSubmit(run, op)
		}
	}()
	reason = context.Cause(ctx).Error()
}

// resultOf reads a result. because is why the run was cancelled, if it was and a context of ours did it.
func resultOf(text json.RawMessage, because error) (*Result, error) {
	result := &Result{raw: text}
	if err := json.Unmarshal(text, result); err != nil {
		return nil, err
	}
	err := result.Err()
	if e, ok := err.(*Error); ok && result.Status == StatusInterrupted {
		e.inner = because
	}
	return result, err
}
