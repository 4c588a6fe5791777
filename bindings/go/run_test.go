package fawn_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	fawn "fawn/bindings/go"
)

// hanging is an agent whose model says a word and then nothing more.
func hanging() fawn.Object {
	return scripted(fawn.Object{"chunks": []string{"Well"}, "hang": true})
}

func TestCancelledContextCancelsRun(t *testing.T) {
	inBothModes(t, func(t *testing.T, rt *fawn.Runtime) {
		agent := newAgent(t, rt, hanging())
		thread := newThread(t, rt)
		reason := errors.New("the user has left")
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		run := start(t, ctx, agent, thread, fawn.Ask("go"))
		var events []fawn.Event
		for event, err := range run.Events() {
			if err != nil {
				t.Fatal(err)
			}
			events = append(events, event)
			if event.Type == fawn.EventMessageDelta {
				cancel(reason)
			}
		}
		checkWhole(t, events)
		result, err := run.Wait(t.Context())
		if result == nil || result.Status != fawn.StatusInterrupted || result.CancelReason != reason.Error() {
			t.Fatalf("%+v", result)
		}
		if !errors.Is(err, fawn.ErrCancelled) || !errors.Is(err, reason) || !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		// What had arrived is kept.
		if messages := must(thread.Messages(t.Context(), 1)); messages[0].Text() != "Well" {
			t.Errorf("%+v", messages)
		}
		// A deadline does the same, and Run comes back when the thread is free again.
		short, stop := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer stop()
		if result, err := agent.Run(short, thread, fawn.Ask("go")); result == nil || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%+v, %v", result, err)
		}
		if _, err := thread.Update(t.Context(), fawn.Object{"values": fawn.Object{"title": "x"}}); err != nil {
			t.Errorf("the thread is not free: %v", err)
		}
		if _, err := agent.Start(short, thread, fawn.Ask("go")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a run with a dead context: %v", err)
		}
	})
}

// Whatever a context ends says both that it ended and why.
func TestWhyAContextEnded(t *testing.T) {
	nothingLeft(t)
	rt := newRuntime(t, modes["driven"])
	agent, thread, queue := newAgent(t, rt, hanging()), newThread(t, rt), newQueue(t, rt, nil)
	reason := errors.New("the user has left")
	ctx, cancel := context.WithCancelCause(t.Context())
	late, stop := context.WithTimeoutCause(t.Context(), 0, reason)
	defer stop()
	run := must(agent.StartOn(ctx, nil, thread, fawn.Ask("go")))
	defer run.Close()
	other := start(t, t.Context(), agent, newThread(t, rt), fawn.Ask("go"))
	cancel(reason)
	for name, use := range map[string]func(context.Context) error{
		"Wait":   func(ctx context.Context) error { _, err := other.Wait(ctx); return err },
		"Take":   func(ctx context.Context) error { _, err := queue.Take(ctx, 0); return err },
		"State":  func(ctx context.Context) error { _, err := thread.State(ctx, nil); return err },
		"Open":   func(ctx context.Context) error { _, err := rt.OpenThread(ctx, nil); return err },
		"Start":  func(ctx context.Context) error { _, err := agent.Start(ctx, thread, nil); return err },
		"Submit": func(ctx context.Context) error { _, err := rt.Submit(ctx, nil); return err },
	} {
		if err := use(ctx); !errors.Is(err, context.Canceled) || !errors.Is(err, reason) {
			t.Errorf("%s: %v", name, err)
		}
		if err := use(late); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, reason) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if result, err := run.Wait(t.Context()); result == nil || !errors.Is(err, context.Canceled) || !errors.Is(err, reason) {
		t.Errorf("%v, %v", result, err)
	}
}

// Ids are there from the beginning and to the end, and are those of the events.
func TestIDs(t *testing.T) {
	inBothModes(t, func(t *testing.T, rt *fawn.Runtime) {
		agent := newAgent(t, rt, scripted(says("hi")))
		named := must(rt.OpenThread(t.Context(), fawn.Object{"thread_id": "a \"b\""}))
		thread := newThread(t, rt)
		if named.ID() != "a \"b\"" || len(thread.ID()) != 36 {
			t.Errorf("%q, %q", named.ID(), thread.ID())
		}
		run := start(t, t.Context(), agent, named, fawn.Ask("go"))
		on := must(agent.StartOn(t.Context(), nil, thread, fawn.Ask("go")))
		for event := range run.Events() {
			if event.RunID != run.ID() || event.ThreadID != named.ID() {
				t.Errorf("%v", event)
			}
		}
		if result := must(on.Wait(t.Context())); result.RunID != on.ID() || result.ThreadID != thread.ID() || on.ID() == "" {
			t.Errorf("%v", result)
		}
		id := run.ID()
		for _, object := range []io.Closer{named, run, on} {
			object.Close()
		}
		if named.ID() == "" || run.ID() != id || on.ID() == "" {
			t.Error("closing took an id")
		}
	})
}

func TestCancelAndBusyThread(t *testing.T) {
	inBothModes(t, func(t *testing.T, rt *fawn.Runtime) {
		agent := newAgent(t, rt, hanging())
		thread := newThread(t, rt)
		run := start(t, t.Context(), agent, thread, fawn.Ask("go"))
		_, err := agent.Start(t.Context(), thread, fawn.Ask("go"))
		var e *fawn.Error
		if !errors.Is(err, fawn.ErrThreadBusy) || !errors.As(err, &e) || e.Status != -401 {
			t.Errorf("%v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer cancel()
		if result, err := run.Wait(ctx); result != nil || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("waiting: %+v, %v", result, err)
		}
		if err := run.Cancel("enough"); err != nil {
			t.Error(err)
		}
		result, err := run.Wait(t.Context())
		if result == nil || result.CancelReason != "enough" || !errors.Is(err, fawn.ErrCancelled) || errors.Is(err, context.Canceled) {
			t.Errorf("%+v, %v", result, err)
		}
		if answer, err := run.Submit(`{"op":"cancel"}`); err != nil || string(answer) != `{"cancelled":false}` {
			t.Errorf("cancelling again: %s, %v", answer, err)
		}
		if _, err := run.Submit(`{"op":"resume"}`); !errors.Is(err, fawn.ErrUnsupported) {
			t.Errorf("%v", err)
		}
	})
}

func TestFailedRun(t *testing.T) {
	inBothModes(t, func(t *testing.T, rt *fawn.Runtime) {
		agent := newAgent(t, rt, scripted(fawn.Object{"error": fawn.Object{"code": "model_auth", "message": "no such key"}}))
		result, err := agent.Run(t.Context(), newThread(t, rt), fawn.Ask("go"))
		if result == nil || result.Status != fawn.StatusError || !errors.Is(err, fawn.ErrModelAuth) {
			t.Errorf("%+v, %v", result, err)
		}
	})
}

// Runs whose events go to a queue of the program's own, or to nobody.
func TestStartOn(t *testing.T) {
	inBothModes(t, func(t *testing.T, rt *fawn.Runtime) {
		ctx := t.Context()
		silent := newAgent(t, rt, scripted(says("hi")))
		run := must(silent.StartOn(ctx, nil, newThread(t, rt), fawn.Ask("go")))
		if result, err := run.Wait(ctx); err != nil || result.Text() != "hi" {
			t.Errorf("%+v, %v", result, err)
		}
		if err := firstError(run); !errors.Is(err, fawn.ErrUnsupported) {
			t.Errorf("%v", err)
		}
		run.Close()

		agent := newAgent(t, rt, scripted(calls("f", fawn.Object{"n": 1}), says("done")), tool("f",
			func(_ context.Context, args json.RawMessage) (any, error) { return string(args), nil }))
		if _, err := agent.StartOn(ctx, nil, newThread(t, rt), nil); !errors.Is(err, fawn.ErrNoQueue) {
			t.Errorf("%v", err)
		}
		queue := newQueue(t, rt, nil)
		thread := newThread(t, rt)
		run = must(agent.StartOn(ctx, queue, thread, fawn.Ask("go")))
		defer run.Close()
		for event, err := range queue.Events(ctx) {
			if err != nil {
				t.Fatal(err)
			}
			if call, ok := event.Data().(*fawn.HostCall); ok {
				if err := silent.Answer(ctx, call); !errors.Is(err, fawn.ErrUnsupported) {
					t.Errorf("another agent's function: %v", err)
				}
				if err := agent.Answer(ctx, call); err != nil {
					t.Error(err)
				}
				if err := agent.Answer(ctx, call); !errors.Is(err, fawn.ErrGone) {
					t.Errorf("answered twice: %v", err)
				}
			}
			if event.Type == fawn.EventRunEnd {
				break
			}
		}
		if messages := must(thread.Messages(ctx, 2)); messages[0].Text() != `{"n":1}` {
			t.Errorf("%+v", messages)
		}
	})
}

// A tool without a function is answered by whoever reads the events, in its own time.
func TestAnsweringLater(t *testing.T) {
	inBothModes(t, func(t *testing.T, rt *fawn.Runtime) {
		agent := newAgent(t, rt, scripted(calls("approve", fawn.Object{}), says("done")), fawn.Tool{Name: "approve"})
		thread := newThread(t, rt)
		run := start(t, t.Context(), agent, thread, fawn.Ask("go"))
		answered := make(chan struct{})
		for event := range run.Events() {
			if call, ok := event.Data().(*fawn.HostCall); ok {
				time.AfterFunc(10*time.Millisecond, func() {
					defer close(answered)
					if err := rt.Emit(call.CallID, fawn.Object{"half": "done"}); err != nil {
						t.Error(err)
					}
					if err := rt.Finish(call.CallID, fawn.Object{"okay": 1}); !errors.Is(err, fawn.ErrUnknownMember) {
						t.Errorf("%v", err)
					}
					if err := rt.Finish(call.CallID, fawn.Object{"ok": "yes"}); err != nil {
						t.Error(err)
					}
					if err := rt.Finish(call.CallID, fawn.Object{"ok": "yes"}); !errors.Is(err, fawn.ErrGone) {
						t.Errorf("%v", err)
					}
				})
			}
		}
		<-answered
		if messages := must(thread.Messages(t.Context(), 2)); messages[0].Text() != "yes" {
			t.Errorf("%+v", messages)
		}
	})
}

// A context ends the wait for a run that nobody listens to, and the run with it.
func TestWaitOfAQueuelessRunEndsWithItsContext(t *testing.T) {
	inBothModes(t, func(t *testing.T, rt *fawn.Runtime) {
		ctx, cancel := context.WithCancel(t.Context())
		run := must(newAgent(t, rt, hanging()).StartOn(ctx, nil, newThread(t, rt), fawn.Ask("go")))
		defer run.Close()
		short, stop := context.WithTimeout(ctx, 20*time.Millisecond)
		defer stop()
		if _, err := run.Wait(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		cancel()
		if result, err := run.Wait(t.Context()); result == nil || !errors.Is(err, fawn.ErrCancelled) {
			t.Errorf("%+v, %v", result, err)
		}
	})
}

func TestShutdown(t *testing.T) {
	inBothModes(t, func(t *testing.T, rt *fawn.Runtime) {
		queue := newQueue(t, rt, nil)
		run := start(t, t.Context(), newAgent(t, rt, hanging()), newThread(t, rt), fawn.Ask("go"))
		answer := must(rt.Shutdown(t.Context()))
		if string(answer) != `{"runs_cancelled":1}` {
			t.Errorf("%s", answer)
		}
		if result, err := run.Wait(t.Context()); result == nil || !errors.Is(err, fawn.ErrCancelled) {
			t.Errorf("%+v, %v", result, err)
		}
		if _, err := queue.Take(t.Context(), 0); err != io.EOF {
			t.Errorf("%v", err)
		}
		if _, err := rt.OpenThread(t.Context(), nil); !errors.Is(err, fawn.ErrClosed) {
			t.Errorf("%v", err)
		}
	})
}

// What a thread holds is there for the next process, and can be read while it is written.
func TestDurableThread(t *testing.T) {
	nothingLeft(t)
	ctx := t.Context()
	config := fawn.Object{"database": fawn.Object{"backend": "sqlite", "sqlite_dir": t.TempDir()}}
	question := fawn.Object{"thread_id": "durable \"ünï\""}
	for start := range 3 {
		rt := must(fawn.NewRuntime(config))
		agent := must(rt.NewAssembly(scripted(calls("f", fawn.Object{}), says("done")), tool("f",
			func(context.Context, json.RawMessage) (any, error) { return "answer", nil })))
		thread := must(rt.OpenThread(ctx, question))
		if before := must(thread.Messages(ctx, -1)); len(before) != 4*start {
			t.Fatalf("start %d: %d messages", start, len(before))
		}
		must(agent.Run(ctx, thread, fawn.Ask("go")))
		set := string(must(thread.Goal(ctx, fawn.Object{"op": "set", "objective": "go on"})))
		if got := string(must(thread.Goal(ctx, nil))); !strings.Contains(got, `"objective":"go on"`) || len(set) != len(got) {
			t.Errorf("%s after %s", got, set)
		}
		must(thread.Goal(ctx, fawn.Object{"op": "command", "argument": "off"}))
		if history := unmarshal[[]json.RawMessage](t, must(thread.History(ctx, nil))); len(history) != 6*(start+1) {
			t.Errorf("start %d: %d checkpoints", start, len(history))
		}
		if messages := must(thread.Messages(ctx, 2)); messages[0].Text() != "answer" || messages[1].Text() != "done" {
			t.Errorf("%+v", messages)
		}
		for _, object := range []io.Closer{rt, thread, agent} {
			object.Close()
		}
	}
	rt := newRuntime(t, config)
	for range 2 {
		must(rt.Submit(ctx, fawn.Object{"op": "delete_thread", "thread_id": question["thread_id"]}))
	}
	thread := must(rt.OpenThread(ctx, question))
	defer thread.Close()
	if messages := must(thread.Messages(ctx, -1)); len(messages) != 0 {
		t.Errorf("%+v", messages)
	}
	dead, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := thread.State(dead, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
