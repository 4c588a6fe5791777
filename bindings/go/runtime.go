// Runtimes: configuration, store, models, and what all objects belong to.

package fawn

import (
	"context"
	"encoding/json"
	"runtime"
	"sync"

	"fawn/bindings/go/internal/cabi"
)

// Runtime is configuration, store and capacity. Threads, assemblies, queues and runs belong to one.
type Runtime struct {
	object
	driven bool // by whoever is inside a Take or a Wait: "workers" is 0
	drive  sync.Once
	funcs  funcs
	scope  *scope // nil: not known
}

// NewRuntime makes a runtime (schema "runtime_config"). Nil keeps threads in memory and drives runs with two OS threads of
// the library's own.
//
// A [Model] is added to the document's "models" under its Name, or is the function of one that is there; it answers for every
// assembly that comes to it, by whatever way: as its model, in place of another, for titles and summaries. A [Tool] is added to
// the document's "tools", or is the function of one; lead agents have it.
func NewRuntime(config any, host ...RuntimeHost) (*Runtime, error) {
	text, err := encode(config)
	if err != nil {
		return nil, err
	}
	r := &Runtime{}
	if len(host) > 0 {
		if text, err = composeRuntime(text, host, &r.funcs); err != nil {
			return nil, err
		}
	}
	handle, status, object := cabi.RuntimeNew(text)
	if status != cabi.OK {
		return nil, failure(status, object)
	}
	if r.scope = scopeOf(text); r.scope != nil {
		if err := r.funcs.checkModels(r.scope.hostModels(r.scope.entries...)); err != nil {
			cabi.RuntimeFree(handle)
			return nil, err
		}
	}
	r.driven = isDriven(handle)
	r.keep("runtime", handle, caller(), cabi.RuntimeFree)
	return r, nil
}

// composeRuntime adds what the host brings to the document of a runtime, and keeps the functions.
func composeRuntime(text string, host []RuntimeHost, to *funcs) (string, error) {
	c, err := newComposition(text, to, parts(host))
	if c == nil || err != nil {
		return text, err // no JSON object: the library says so better
	}
	for _, part := range host {
		if err := part.addToRuntime(c); err != nil {
			return "", err
		}
	}
	return c.text()
}

// Submit does something that is rarely needed: {"op": "delete_thread", "thread_id": "..."}.
func (r *Runtime) Submit(ctx context.Context, op any) (json.RawMessage, error) {
	defer runtime.KeepAlive(r)
	text, err := encode(op)
	if err != nil {
		return nil, err
	}
	if err := ended(ctx); err != nil {
		return nil, err
	}
	return answer(cabi.RuntimeSubmit(r.handle, text))
}

// Stats are facts and figures: runs, queues, host calls that wait, living handles. Works after a shutdown too.
func (r *Runtime) Stats() (json.RawMessage, error) {
	defer runtime.KeepAlive(r)
	return answer(cabi.RuntimeStats(r.handle))
}

// Shutdown cancels the runtime's runs, ends open host calls, saves what is to be saved, closes its queues, and waits for all
// that. The answer counts the runs that it has ended, over all calls. When the context ends first its error is returned, and
// the runtime goes on going down. From the first call on
// everything else answers [ErrClosed], but for reading what is left.
func (r *Runtime) Shutdown(ctx context.Context) (json.RawMessage, error) {
	defer runtime.KeepAlive(r)
	return wait(ctx, func(timeoutMS int64) (int32, []byte) { return cabi.RuntimeShutdown(r.handle, timeoutMS) })
}

// Close frees the runtime. It does not wait: runs that are in flight are cancelled behind the scenes. Threads, assemblies,
// queues and runs answer [ErrClosed] from now on, and still want closing.
func (r *Runtime) Close() error { return r.object.Close() }

// Emit adds to the answer of a host call before it is finished. It is for calls that you answer yourself, see
// [Runtime.Finish]; a [HostFunc] calls [Emit]. It does not wait: [ErrBehind] says that the run has not taken what came
// before, and to try again later.
func (r *Runtime) Emit(callID uint64, part any) error {
	defer runtime.KeepAlive(r)
	text, err := encode(part)
	if err != nil {
		return err
	}
	return check(cabi.CallEmit(r.handle, callID, text))
}

// Finish answers a host call, now or in an hour: {"ok": ...} or {"error": {"message": "..."}} (schema "call_answer"). It is
// for calls of tools that have no Func, which come as events of type host_call. [ErrGone]: the call is over.
func (r *Runtime) Finish(callID uint64, reply any) error {
	defer runtime.KeepAlive(r)
	text, err := encode(reply)
	if err != nil {
		return err
	}
	return check(cabi.CallFinish(r.handle, callID, text))
}

// isDriven asks the library whether a runtime has no OS threads of its own.
func isDriven(runtime uint64) bool {
	status, text := cabi.RuntimeStats(runtime)
	stats := struct {
		Workers int `json:"workers"`
	}{Workers: -1}
	return status == cabi.OK && json.Unmarshal(text, &stats) == nil && stats.Workers == 0
}

// startDriving gives the library one OS thread to work on, which a runtime with "workers": 0 needs as long as nobody is
// inside a Take or a Wait.
func (r *Runtime) startDriving() {
	r.drive.Do(func() {
		queue, status, _ := cabi.QueueNew(r.handle, "{}")
		if status != cabi.OK {
			return // closed; the start that asked for driving is going to fail
		}
		// The goroutine must not hold the runtime, or a forgotten one would never be collected. It ends with the runtime.
		go func() {
			for status := int32(cabi.OK); status == cabi.OK || status == cabi.Interrupted; {
				status, _ = cabi.QueueTake(queue, -1, 0)
			}
			cabi.QueueFree(queue)
		}()
	})
}
