package fawn_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"

	fawn "fawn/bindings/go"
)

func TestUseAfterClose(t *testing.T) {
	inBothModes(t, func(t *testing.T, rt *fawn.Runtime) {
		ctx := t.Context()
		agent := newAgent(t, rt, scripted(says("hi")))
		thread := newThread(t, rt)
		queue := newQueue(t, rt, nil)
		subagents := must(rt.NewSubagents(nil))
		run := must(agent.Start(ctx, thread, fawn.Ask("go")))
		must(run.Wait(ctx))
		on := must(agent.StartOn(ctx, queue, thread, fawn.Ask("go")))
		must(on.Wait(ctx))
		for _, object := range []interface{ Close() error }{run, on, queue, thread, agent, subagents, rt} {
			for range 2 {
				if err := object.Close(); err != nil {
					t.Errorf("closing %T: %v", object, err)
				}
			}
		}
		uses := map[string]func() error{
			"run.Wait":           func() error { _, err := run.Wait(ctx); return err },
			"run.Cancel":         func() error { return run.Cancel("x") },
			"run.Events":         func() error { return firstError(run) },
			"StartOn run.Wait":   func() error { _, err := on.Wait(ctx); return err },
			"StartOn run.Cancel": func() error { return on.Cancel("x") },
			"queue.Take":         func() error { _, err := queue.Take(ctx, 0); return err },
			"queue.TryTake":      func() error { _, err := queue.TryTake(0); return err },
			"queue.Wakeup":       func() error { _, err := queue.Wakeup(); return err },
			"queue.StopWakeup":   func() error { return queue.StopWakeup() },
			"thread.State":       func() error { _, err := thread.State(ctx, nil); return err },
			"thread.Update":      func() error { _, err := thread.Update(ctx, nil); return err },
			"thread.History":     func() error { _, err := thread.History(ctx, nil); return err },
			"thread.Messages":    func() error { _, err := thread.Messages(ctx, 1); return err },
			"agent.Descriptor":   func() error { _, err := agent.Descriptor(); return err },
			"agent.Start":        func() error { _, err := agent.Start(ctx, thread, nil); return err },
			"agent.StartOn":      func() error { _, err := agent.StartOn(ctx, queue, thread, nil); return err },
			"agent.Run":          func() error { _, err := agent.Run(ctx, thread, nil); return err },
			"rt.NewAssembly":     func() error { _, err := rt.NewAssembly(nil); return err },
			"rt.NewSubagents":    func() error { _, err := rt.NewSubagents(nil); return err },
			"subagents.Start":    func() error { return subagents.Start() },
			"subagents.Stop":     func() error { return subagents.Stop(ctx) },
			"subagents.Stats":    func() error { _, err := subagents.Stats(); return err },
			"rt.OpenThread":      func() error { _, err := rt.OpenThread(ctx, nil); return err },
			"rt.NewQueue":        func() error { _, err := rt.NewQueue(nil); return err },
			"rt.Submit":          func() error { _, err := rt.Submit(ctx, nil); return err },
			"rt.Stats":           func() error { _, err := rt.Stats(); return err },
			"rt.Shutdown":        func() error { _, err := rt.Shutdown(ctx); return err },
			"rt.Emit":            func() error { return rt.Emit(1, 1) },
			"rt.Finish":          func() error { return rt.Finish(1, 1) },
		}
		for name, use := range uses {
			if err := use(); !errors.Is(err, fawn.ErrHandle) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := errors.Join(new(fawn.Runtime).Close(), new(fawn.Run).Close()); err != nil {
			t.Errorf("closing what was never made: %v", err)
		}
	})
}

func firstError(run *fawn.Run) error {
	for _, err := range run.Events() {
		if err != nil {
			return err
		}
	}
	return nil
}

// What belongs to a runtime that was closed says so, and is closed in any order.
func TestRuntimeClosedFirst(t *testing.T) {
	inBothModes(t, func(t *testing.T, rt *fawn.Runtime) {
		agent := newAgent(t, rt, scripted(says("hi")))
		thread := newThread(t, rt)
		rt.Close()
		if _, err := thread.State(t.Context(), nil); !errors.Is(err, fawn.ErrClosed) {
			t.Errorf("state: %v", err)
		}
		if _, err := agent.Start(t.Context(), thread, nil); !errors.Is(err, fawn.ErrHandle) && !errors.Is(err, fawn.ErrClosed) {
			t.Errorf("start: %v", err)
		}
	})
}

// An object that nobody closes is freed by the collector, and told of with the place where it was made.
func TestForgottenObjectsAreReported(t *testing.T) {
	nothingLeft(t)
	logs := catchLogs(t)
	running, cancel := context.WithCancel(context.Background())
	defer cancel()
	func() {
		ctx := context.Background()
		rt := must(fawn.NewRuntime(nil))
		agent := must(rt.NewAssembly(scripted(says("hi"))))
		thread := must(rt.OpenThread(ctx, nil))
		queue := must(rt.NewQueue(nil))
		// Runs that have ended are not worth a word.
		must(must(agent.Start(ctx, thread, fawn.Ask("go"))).Wait(ctx))
		must(must(agent.StartOn(ctx, queue, thread, fawn.Ask("go"))).Wait(ctx))
		hangs := must(rt.NewAssembly(hanging()))
		defer hangs.Close()
		must(hangs.Start(running, thread, fawn.Ask("go")))
		other := must(rt.OpenThread(ctx, nil))
		defer other.Close()
		must(hangs.StartOn(running, queue, other, fawn.Ask("go")))
	}()
	eventually(t, "both runs are reported", func() bool {
		runtime.GC()
		return strings.Count(logs.String(), "kind=run ") == 2
	})
	cancel() // a run in flight keeps its runtime
	for _, kind := range []string{"runtime", "assembly", "thread", "queue", "run"} {
		eventually(t, "the "+kind+" is reported", func() bool {
			runtime.GC()
			return strings.Contains(logs.String(), `level=WARN msg="fawn: an object was not closed" kind=`+kind+" made=object_test.go:")
		})
	}
	if n := strings.Count(logs.String(), "not closed"); n != 6 {
		t.Errorf("%d reports:\n%s", n, logs)
	}
}

// What is closed is not reported, and what is in use is not collected.
func TestClosedObjectsAreNotReported(t *testing.T) {
	inBothModes(t, func(t *testing.T, rt *fawn.Runtime) {
		logs := catchLogs(t)
		ready := make(chan struct{})
		answer := make(chan struct{})
		agent := newAgent(t, rt, scripted(calls("f", fawn.Object{}), says("hi")), tool("f",
			func(context.Context, json.RawMessage) (any, error) { close(ready); <-answer; return nil, nil }))
		run := start(t, t.Context(), agent, newThread(t, rt), fawn.Ask("go"))
		<-ready
		for range 3 {
			runtime.GC()
		}
		close(answer)
		if _, err := run.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		if logs.String() != "" {
			t.Errorf("%s", logs)
		}
	})
}
