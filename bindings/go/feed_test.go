package fawn_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	fawn "fawn/bindings/go"
)

// custom asks for what tools emit, and for nothing else besides control events.
func custom(question string) fawn.Object {
	request := fawn.Ask(question)
	request["stream"] = []string{"custom"}
	return request
}

// emitting is a tool that emits so many numbers.
func emitting(n int) fawn.HostFunc {
	return func(ctx context.Context, _ json.RawMessage) (any, error) {
		for i := range n {
			if err := fawn.Emit(ctx, i); err != nil {
				return nil, err
			}
		}
		return n, nil
	}
}

// checkWhole checks that these are all the events of one run, in order.
func checkWhole(t *testing.T, events []fawn.Event) {
	t.Helper()
	for n, event := range events {
		if event.Seq != uint64(n+1) || event.RunID != events[0].RunID || time.Since(event.At) > time.Hour {
			t.Fatalf("event %d: %+v", n, event)
		}
	}
	if len(events) == 0 || events[0].Type != fawn.EventRunStart || events[len(events)-1].Type != fawn.EventRunEnd {
		t.Fatalf("%d events", len(events))
	}
}

func TestEventsOfARun(t *testing.T) {
	inBothModes(t, func(t *testing.T, rt *fawn.Runtime) {
		agent := newAgent(t, rt, scripted(calls("f", fawn.Object{"n": 1}), fawn.Object{
			"chunks": []string{"It ", "is ", "so."}, "chunk_delay_ms": 1, "usage": fawn.Object{"input_tokens": 3, "output_tokens": 2},
		}), tool("f", emitting(2)))
		request := fawn.Ask("go")
		request["stream"] = []string{"values", "updates", "messages", "custom"}
		thread := newThread(t, rt)
		run := start(t, t.Context(), agent, thread, request)
		var events []fawn.Event
		types := map[string]int{}
		text := ""
		for event, err := range run.Events() {
			if err != nil {
				t.Fatal(err)
			}
			events = append(events, event)
			types[event.Type]++
			switch data := event.Data().(type) {
			case *fawn.RunStart:
				if data.RecursionLimit != 100 {
					t.Errorf("%+v", data)
				}
			case *fawn.MessageDelta:
				text += data.Text
			case *fawn.MessageStored:
				if data.Node == "" || data.Message.ID == "" {
					t.Errorf("%+v", data)
				}
			case *fawn.Update:
				if data.Node == "" || data.Update["messages"] == nil {
					t.Errorf("%+v", data)
				}
			case *fawn.Values:
				if data.Values["messages"] == nil {
					t.Errorf("%+v", data)
				}
			case *fawn.UsageReport:
				if data.Usage != (fawn.Usage{3, 2, 5}) || data.Total != data.Usage {
					t.Errorf("%+v", data)
				}
			case *fawn.Checkpoint:
				if data.CheckpointID == "" || data.Source == "" {
					t.Errorf("%+v", data)
				}
			case *fawn.HostCall:
				if data.Name != "f" || string(data.Args) != `{"n":1}` || data.ToolCallID == "" || data.IdempotencyKey == "" {
					t.Errorf("%+v", data)
				}
			case *fawn.Custom:
				if data.ToolCallID == "" || len(data.Value) != 1 {
					t.Errorf("%+v", data)
				}
			case *fawn.Result:
				if data.Text() != "It is so." || data.JSON() == nil {
					t.Errorf("%+v", data)
				}
			default:
				t.Errorf("%s: %T", event.Type, data)
			}
		}
		checkWhole(t, events)
		for _, name := range []string{"run_start", "message_delta", "message", "update", "values", "usage", "checkpoint",
			"host_call", "custom", "run_end"} {
			if types[name] == 0 {
				t.Errorf("no %s", name)
			}
		}
		if text != "It is so." {
			t.Errorf("deltas: %q", text)
		}
		result, err := run.Wait(t.Context())
		if err != nil || result.Status != fawn.StatusSuccess || result.Text() != "It is so." || result.Steps != 3 {
			t.Errorf("%+v, %v", result, err)
		}
		if again, err := run.Wait(t.Context()); err != nil || again.RunID != result.RunID || result.RunID != events[0].RunID {
			t.Errorf("%+v, %v", again, err)
		}
		for range run.Events() {
			t.Error("an event after the end")
		}
	})
}

// A reader that breaks out and comes back, several readers at once, and one who comes late: nobody misses an event.
func TestReadersShareEvents(t *testing.T) {
	inBothModes(t, func(t *testing.T, rt *fawn.Runtime) {
		agent := newAgent(t, rt, scripted(calls("f", fawn.Object{}), says("done")), tool("f", emitting(300)))
		run := start(t, t.Context(), agent, newThread(t, rt), custom("go"))
		var mu sync.Mutex
		seen := map[uint64]int{}
		var readers sync.WaitGroup
		for range 4 {
			readers.Add(1)
			go func() {
				defer readers.Done()
				for more := true; more; {
					more = false
					for event, err := range run.Events() {
						if err != nil {
							t.Error(err)
							return
						}
						mu.Lock()
						seen[event.Seq]++
						mu.Unlock()
						if more = event.Seq%7 == 0; more {
							break
						}
					}
				}
			}()
		}
		readers.Wait()
		for seq := range uint64(len(seen)) {
			if seen[seq+1] != 1 {
				t.Fatalf("event %d came %d times of %d", seq+1, seen[seq+1], len(seen))
			}
		}
		if len(seen) < 305 {
			t.Errorf("%d events", len(seen))
		}
	})
}

// A reader that does not keep up holds back its own run, and no other; nothing is lost to it.
func TestSlowReaderHoldsBackItsRunOnly(t *testing.T) {
	inBothModes(t, func(t *testing.T, rt *fawn.Runtime) {
		const pieces = 20000
		var emitted atomic.Int64
		model := fawn.Model{Func: func(ctx context.Context, _ json.RawMessage) (any, error) {
			for n := range pieces { // of two kinds, since those of one kind merge
				piece := fawn.Delta{Text: "a"}
				if n%2 == 1 {
					piece = fawn.Delta{Reasoning: "b"}
				}
				if err := fawn.Emit(ctx, piece); err != nil {
					return nil, err
				}
				emitted.Add(1)
			}
			return "done", nil
		}}
		slow := start(t, t.Context(), newAgent(t, rt, nil, model), newThread(t, rt), fawn.Ask("go"))
		eventually(t, "the model has said all", func() bool { return emitted.Load() == pieces })
		for range 5 { // others come and go while nobody reads the first
			if _, err := newAgent(t, rt, scripted(says("hi"))).Run(t.Context(), newThread(t, rt), fawn.Ask("go")); err != nil {
				t.Error(err)
			}
		}
		if stats := unmarshal[struct{ Runs struct{ Active int } }](t, must(rt.Stats())); stats.Runs.Active != 1 {
			t.Errorf("%d runs are active: the slow one did not wait for its reader", stats.Runs.Active)
		}
		var all []fawn.Event
		for event, err := range slow.Events() {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, event)
		}
		checkWhole(t, all)
		if len(all) < 2000 { // the last of those that wait to be passed on merge
			t.Errorf("%d events", len(all))
		}
	})
}

// What tools emit does not wait for the reader, but is not lost either.
func TestManyCustomEvents(t *testing.T) {
	inBothModes(t, func(t *testing.T, rt *fawn.Runtime) {
		const pieces = 20000
		agent := newAgent(t, rt, scripted(calls("f", fawn.Object{}), says("done")), tool("f", emitting(pieces)))
		run := start(t, t.Context(), agent, newThread(t, rt), custom("go"))
		var all []fawn.Event
		for event, err := range run.Events() {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, event)
		}
		if checkWhole(t, all); len(all) < pieces {
			t.Errorf("%d events", len(all))
		}
	})
}

// Nobody reads, but somebody waits for the end: it comes, however many events there are.
func TestWaitNeedsNoReader(t *testing.T) {
	inBothModes(t, func(t *testing.T, rt *fawn.Runtime) {
		agent := newAgent(t, rt, scripted(calls("f", fawn.Object{}), says("done")), tool("f", emitting(20000)))
		thread := newThread(t, rt)
		if result, err := agent.Run(t.Context(), thread, custom("go")); err != nil || result.Text() != "done" {
			t.Errorf("%+v, %v", result, err)
		}
		// A reader that gives up, and then waits.
		run := start(t, t.Context(), agent, thread, custom("go"))
		for range run.Events() {
			break
		}
		if result, err := run.Wait(t.Context()); err != nil || result.Text() != "done" {
			t.Errorf("%+v, %v", result, err)
		}
	})
}

// Runs that are let go of, with their events unread, end and leave nothing behind.
func TestAbandonedRuns(t *testing.T) {
	inBothModes(t, func(t *testing.T, rt *fawn.Runtime) {
		agent := newAgent(t, rt, scripted(calls("f", fawn.Object{}), says("done")), tool("f", emitting(5000)))
		for range 10 {
			run := start(t, t.Context(), agent, newThread(t, rt), custom("go"))
			run.Close()
		}
		ctx, cancel := context.WithCancel(t.Context())
		for range 10 {
			start(t, ctx, agent, newThread(t, rt), custom("go"))
		}
		time.AfterFunc(20*time.Millisecond, cancel)
		eventually(t, "all runs end", func() bool {
			return unmarshal[struct{ Runs struct{ Active int } }](t, must(rt.Stats())).Runs.Active == 0
		})
	})
}

// The runtime goes away under runs that wait for their model, their tool, their reader: each ends, and its reader is told.
func TestRuntimeClosedUnderRuns(t *testing.T) {
	for name, end := range map[string]func(*fawn.Runtime){
		"close":    func(rt *fawn.Runtime) { rt.Close() },
		"shutdown": func(rt *fawn.Runtime) { must(rt.Shutdown(context.Background())); rt.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			inBothModes(t, func(t *testing.T, rt *fawn.Runtime) {
				called := make(chan struct{}, 10)
				hangs := newAgent(t, rt, scripted(fawn.Object{"hang": true, "chunks": []string{"a"}}))
				waits := newAgent(t, rt, scripted(calls("f", fawn.Object{})), tool("f",
					func(ctx context.Context, _ json.RawMessage) (any, error) {
						called <- struct{}{}
						<-ctx.Done()
						return nil, context.Cause(ctx)
					}))
				var runs []*fawn.Run
				for range 3 {
					runs = append(runs, start(t, t.Context(), hangs, newThread(t, rt), fawn.Ask("go")),
						start(t, t.Context(), waits, newThread(t, rt), fawn.Ask("go")))
					<-called
				}
				end(rt)
				for _, run := range runs {
					var last fawn.Event
					var failed error
					for event, err := range run.Events() {
						last, failed = event, err
					}
					if failed == nil && last.Type != fawn.EventRunEnd || failed != nil && !errors.Is(failed, fawn.ErrClosed) {
						t.Errorf("%s, %v", last.Type, failed)
					}
					if result, err := run.Wait(t.Context()); result != nil && result.Status != fawn.StatusInterrupted || err == nil {
						t.Errorf("%+v, %v", result, err)
					}
				}
			})
		})
	}
}

// A tool may close everything under itself, or shut the runtime down and wait for that.
func TestClosingFromInsideATool(t *testing.T) {
	for name, end := range map[string]func(*fawn.Runtime){
		"close":    func(rt *fawn.Runtime) { rt.Close() },
		"shutdown": func(rt *fawn.Runtime) { must(rt.Shutdown(context.Background())); rt.Close() },
	} {
		inBothModes(t, func(t *testing.T, rt *fawn.Runtime) {
			thread := newThread(t, rt)
			var agent *fawn.Assembly
			agent = newAgent(t, rt, scripted(calls("f", fawn.Object{}), says("done")), tool("f",
				func(context.Context, json.RawMessage) (any, error) {
					agent.Close()
					thread.Close()
					end(rt)
					return "done", nil
				}))
			result, err := agent.Run(t.Context(), thread, fawn.Ask("go"))
			if result != nil && result.Status != fawn.StatusInterrupted || err == nil {
				t.Errorf("%s: %+v, %v", name, result, err)
			}
		})
	}
}
