package fawn_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	fawn "fawn/bindings/go"
)

// A thousand runs at once, each with a tool of the host that is slow, some with a reader and some without: all end well,
// at the cost of goroutines and not of OS threads, and twice in a row takes no more memory than once.
func TestAThousandRunsAtOnce(t *testing.T) {
	inBothModes(t, func(t *testing.T, rt *fawn.Runtime) {
		const runs = 1000
		var calls, goroutines, threads atomic.Int64
		slow := func(ctx context.Context, args json.RawMessage) (any, error) {
			if calls.Add(1)%runs == 0 { // all of them are in here
				goroutines.Store(max(goroutines.Load(), int64(runtime.NumGoroutine())))
				threads.Store(max(threads.Load(), int64(status("Threads"))))
			}
			select {
			case <-time.After(50 * time.Millisecond):
				return string(args), nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		agent := newAgent(t, rt, scripted(fawn.Object{"tool_calls": []any{
			fawn.Object{"name": "f", "args": fawn.Object{"n": 1}}, fawn.Object{"name": "f", "args": fawn.Object{"n": 2}},
		}}, says("done")), tool("f", slow))
		round := func() {
			var all sync.WaitGroup
			for n := range runs {
				all.Add(1)
				go func() {
					defer all.Done()
					if err := oneOfAThousand(t.Context(), rt, agent, n); err != nil {
						t.Error(err)
					}
				}()
			}
			all.Wait()
		}
		heap := func() int {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int(m.HeapAlloc >> 10)
		}
		begin := time.Now()
		round()
		took := time.Since(begin)
		round()
		heapBefore, residentBefore := heap(), status("VmRSS")
		for range 3 {
			round()
		}
		heapAfter, residentAfter := heap(), status("VmRSS")
		t.Logf("%d runs in %v; at most %d goroutines and %d OS threads; KiB of Go heap and resident: %d and %d, after 3 more rounds %d and %d",
			runs, took, goroutines.Load(), threads.Load(), heapBefore, residentBefore, heapAfter, residentAfter)
		if calls.Load() != 5*2*runs {
			t.Errorf("%d calls", calls.Load())
		}
		// Per run: who waits for it, its feed, two tools; and little besides.
		if goroutines.Load() > 4*runs+100 {
			t.Errorf("%d goroutines", goroutines.Load())
		}
		// Go starts OS threads for calls that a busy machine keeps waiting, but far fewer than there are runs.
		if threads.Load() > runs/4 {
			t.Errorf("%d OS threads", threads.Load())
		}
		// The C allocator has an arena for each of those, so what is resident goes up and down. Under the race detector most of it is
		// the detector's, which remembers more with each goroutine.
		if heapAfter > heapBefore+1<<10 || !underRace && residentAfter > residentBefore+64<<10 {
			t.Errorf("memory grows")
		}
	})
}

func oneOfAThousand(ctx context.Context, rt *fawn.Runtime, agent *fawn.Assembly, n int) error {
	id := fawn.Object{"thread_id": fmt.Sprint("thread ", n)}
	thread, err := rt.OpenThread(ctx, id)
	if err != nil {
		return err
	}
	defer thread.Close()
	run, err := agent.Start(ctx, thread, fawn.Ask("go"))
	if err != nil {
		return err
	}
	defer run.Close()
	if n%2 == 0 {
		seq := uint64(0)
		for event, err := range run.Events() {
			if seq++; err != nil || event.Seq != seq {
				return fmt.Errorf("event %d after %d: %v", event.Seq, seq-1, err)
			}
		}
	}
	result, err := run.Wait(ctx)
	if err != nil {
		return err
	}
	if result.Text() != "done" {
		return fmt.Errorf("result %+v", result)
	}
	// The store of this runtime is memory, which must not be counted.
	_, err = rt.Submit(ctx, fawn.Object{"op": "delete_thread", "thread_id": id["thread_id"]})
	return err
}

// Everything at once from many goroutines on shared objects, some of which go away meanwhile: for the race detector.
func TestConcurrentUse(t *testing.T) {
	inBothModes(t, func(t *testing.T, rt *fawn.Runtime) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		agent := newAgent(t, rt, scripted(calls("f", fawn.Object{}), says("done")), tool("f", emitting(3)))
		thread := newThread(t, rt)
		queue := newQueue(t, rt, nil)
		shared := start(t, ctx, newAgent(t, rt, hanging()), newThread(t, rt), fawn.Ask("go"))
		var all sync.WaitGroup
		loop := func(use func()) {
			for range 2 {
				all.Add(1)
				go func() {
					defer all.Done()
					for ctx.Err() == nil {
						use()
					}
				}()
			}
		}
		loop(func() { _, _ = thread.State(ctx, nil); _, _ = thread.History(ctx, nil) })
		loop(func() { _, _ = thread.Update(ctx, fawn.Object{"values": fawn.Object{"title": "x"}}) })
		loop(func() { _, _ = agent.Run(ctx, thread, fawn.Ask("go")) })
		loop(func() { _, _ = rt.Stats(); _, _ = fawn.Describe("handles"); _, _ = agent.Descriptor() })
		loop(func() {
			short, cancel := context.WithTimeout(ctx, time.Millisecond)
			defer cancel()
			_, _ = queue.Take(short, 1)
			_, _ = queue.TryTake(0)
		})
		loop(func() {
			if run, err := agent.StartOn(ctx, queue, thread, custom("go")); err == nil {
				_ = run.Cancel("x")
				run.Close()
			}
		})
		loop(func() {
			other, err := rt.NewQueue(nil)
			if err != nil {
				t.Error(err)
				return
			}
			wake, err := other.Wakeup()
			if err != nil {
				t.Error(err)
			}
			go other.Close()
			for range wake {
			}
		})
		loop(func() {
			short, cancel := context.WithTimeout(ctx, time.Millisecond)
			defer cancel()
			_, _ = shared.Wait(short)
			for range shared.Events() {
				break
			}
		})
		all.Wait()
	})
}
