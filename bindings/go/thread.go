// Threads: one conversation and its state.

package fawn

import (
	"context"
	"encoding/json"
	"runtime"

	"fawn/bindings/go/internal/cabi"
)

// Thread is one conversation and its state, which the runtime's store keeps.
type Thread struct {
	object
	runtime *Runtime
	id      string
}

// ID is the thread's id in the store: the one that it was opened with, or the random one that it was begun with. It stays
// when the thread is closed.
func (t *Thread) ID() string { return t.id }

// OpenThread opens a thread of the store, or begins one: {"thread_id": "..."} (schema "thread_open"). Nil begins one with a
// fresh random id.
func (r *Runtime) OpenThread(ctx context.Context, which any) (*Thread, error) {
	defer runtime.KeepAlive(r)
	text, err := encode(which)
	if err != nil {
		return nil, err
	}
	if err := ended(ctx); err != nil {
		return nil, err
	}
	handle, status, object := cabi.ThreadOpen(r.handle, text)
	if status != cabi.OK {
		return nil, failure(status, object)
	}
	t := &Thread{runtime: r, id: threadID(handle)}
	t.keep("thread", handle, caller(), cabi.ThreadFree)
	return t, nil
}

// number is the handle, or 0, which is none, where there is no thread.
func (t *Thread) number() uint64 {
	if t == nil {
		return 0
	}
	return t.handle
}

// threadID asks the library which thread a handle stands for. The answer comes from memory, and has no channels.
func threadID(thread uint64) string {
	_, text := cabi.ThreadState(thread, `{"channels":[]}`)
	var state struct {
		ThreadID string `json:"thread_id"`
	}
	_ = json.Unmarshal(text, &state) // no id, then, and the next use of the thread says why
	return state.ThreadID
}

// Update writes to the channels of the thread, as one step and one checkpoint: all of it or nothing (schema
// "thread_update"). The answer names the new checkpoint and has the warnings of the reducers.
func (t *Thread) Update(ctx context.Context, writes any) (json.RawMessage, error) {
	return t.ask(ctx, writes, cabi.ThreadUpdate)
}

// State reads the thread's channels, of its newest checkpoint or of a named one (schema "thread_state_query"). Nil reads
// all channels of the newest. May be called while a run is in flight.
func (t *Thread) State(ctx context.Context, query any) (json.RawMessage, error) {
	return t.ask(ctx, query, cabi.ThreadState)
}

// History lists the thread's checkpoints, newest first (schema "thread_history_query"). Nil lists all.
func (t *Thread) History(ctx context.Context, query any) (json.RawMessage, error) {
	return t.ask(ctx, query, cabi.ThreadHistory)
}

// Goal reads, sets or clears the thread's goal (schema "goal_op"): {"op": "set", "objective": "..."}. Nil reads it, which may
// be done while a run is in flight.
func (t *Thread) Goal(ctx context.Context, op any) (json.RawMessage, error) {
	if op == nil {
		op = Object{"op": "get"}
	}
	return t.ask(ctx, op, cabi.ThreadGoal)
}

// Messages are the thread's messages, oldest first; at most the last so many if last is not negative.
func (t *Thread) Messages(ctx context.Context, last int) ([]Message, error) {
	query := Object{"channels": []string{"messages"}}
	if last >= 0 {
		query["last_messages"] = last
	}
	text, err := t.State(ctx, query)
	if err != nil {
		return nil, err
	}
	var state struct {
		Values struct {
			Messages []Message `json:"messages"`
		} `json:"values"`
	}
	err = json.Unmarshal(text, &state)
	return state.Values.Messages, err
}

func (t *Thread) ask(ctx context.Context, document any, call func(uint64, string) (int32, []byte)) (json.RawMessage, error) {
	text, err := encode(document)
	if err != nil {
		return nil, err
	}
	if err := ended(ctx); err != nil {
		return nil, err
	}
	status, out := call(t.handle, text)
	runtime.KeepAlive(t)
	return answer(status, out)
}

// Close lets go of the thread's handle. What the store holds stays, and a run in flight goes on.
func (t *Thread) Close() error { return t.object.Close() }
