package fawn_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	fawn "fawn/bindings/go"
)

// A take that waits comes back when its context ends, at once and not at some tick.
func TestContextWakesTake(t *testing.T) {
	inBothModes(t, func(t *testing.T, rt *fawn.Runtime) {
		queue := newQueue(t, rt, nil)
		var fastest time.Duration = time.Hour
		for range 20 {
			ctx, cancel := context.WithCancel(t.Context())
			var cancelled time.Time
			time.AfterFunc(5*time.Millisecond, func() { cancelled = time.Now(); cancel() })
			_, err := queue.Take(ctx, 0)
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("take: %v", err)
			}
			fastest = min(fastest, time.Since(cancelled))
		}
		t.Logf("woken after %v at best", fastest)
		if fastest > 5*time.Millisecond {
			t.Errorf("woken after %v", fastest)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := queue.Take(ctx, 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("deadline: %v", err)
		}
		if events, err := queue.TryTake(0); events != nil || err != nil {
			t.Errorf("try: %v, %v", events, err)
		}
	})
}

// Many goroutines with contexts of their own take from one queue: each event goes to one, and each context ends its take
// only.
func TestManyTakers(t *testing.T) {
	inBothModes(t, func(t *testing.T, rt *fawn.Runtime) {
		queue := newQueue(t, rt, nil)
		agent := newAgent(t, rt, scripted(says("hi")))
		ctx, stop := context.WithCancel(t.Context())
		var mu sync.Mutex
		seen := map[string][]uint64{}
		ended := 0
		var takers sync.WaitGroup
		for n := range 8 {
			takers.Add(1)
			go func() {
				defer takers.Done()
				for ctx.Err() == nil {
					short, cancel := context.WithTimeout(ctx, time.Duration(n)*time.Millisecond)
					events, err := queue.Take(short, 3)
					cancel()
					if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("take: %v", err)
						return
					}
					mu.Lock()
					for _, e := range events {
						seen[e.RunID] = append(seen[e.RunID], e.Seq)
						if e.Type == fawn.EventRunEnd {
							ended++
						}
					}
					mu.Unlock()
				}
			}()
		}
		const runs = 40
		for range runs {
			run := must(agent.StartOn(t.Context(), queue, newThread(t, rt), fawn.Ask("go")))
			run.Close()
		}
		eventually(t, "all runs end", func() bool { mu.Lock(); defer mu.Unlock(); return ended == runs })
		stop()
		takers.Wait()
		for id, numbers := range seen {
			slices.Sort(numbers)
			for n, seq := range numbers {
				if seq != uint64(n+1) {
					t.Fatalf("run %s: %v", id, numbers)
				}
			}
		}
	})
}

func TestCloseWakesTake(t *testing.T) {
	inBothModes(t, func(t *testing.T, rt *fawn.Runtime) {
		for _, closes := range []func(*fawn.Queue){
			func(q *fawn.Queue) { q.Close() },
			func(*fawn.Queue) { must(rt.Shutdown(context.Background())) },
		} {
			queue := newQueue(t, rt, nil)
			time.AfterFunc(5*time.Millisecond, func() { closes(queue) })
			if _, err := queue.Take(t.Context(), 0); err != io.EOF && !errors.Is(err, fawn.ErrHandle) { // closed before it began
				t.Errorf("take: %v", err)
			}
			if err := firstErrorOf(queue); err != nil && !errors.Is(err, fawn.ErrHandle) {
				t.Errorf("range: %v", err)
			}
		}
	})
}

func firstErrorOf(queue *fawn.Queue) error {
	for _, err := range queue.Events(context.Background()) {
		return err
	}
	return nil
}

// Breaking out of a range loses no event, and what is left comes in order, to a take as to a range.
func TestBreakingOutOfEvents(t *testing.T) {
	inBothModes(t, func(t *testing.T, rt *fawn.Runtime) {
		queue := newQueue(t, rt, nil)
		agent := newAgent(t, rt, scripted(says("hi")))
		run := must(agent.StartOn(t.Context(), queue, newThread(t, rt), fawn.Ask("go")))
		defer run.Close()
		must(run.Wait(t.Context()))
		var seqs []uint64
		for ended := false; !ended; {
			for event, err := range queue.Events(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				seqs = append(seqs, event.Seq)
				ended = event.Type == fawn.EventRunEnd
				break
			}
			if ended {
				break
			}
			for _, event := range must(queue.TryTake(1)) {
				seqs = append(seqs, event.Seq)
				ended = event.Type == fawn.EventRunEnd
			}
		}
		for n, seq := range seqs {
			if seq != uint64(n+1) {
				t.Fatalf("%v", seqs)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for _, err := range queue.Events(ctx) {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("range: %v", err)
			}
		}
	})
}

// A program with a loop of its own is told when to take, and when there is nothing to come any more.
func TestWakeup(t *testing.T) {
	nothingLeft(t)
	rt := newRuntime(t, nil)
	queue := newQueue(t, rt, nil)
	first := must(queue.Wakeup())
	second := must(queue.Wakeup())
	if _, told := <-first; told {
		t.Error("a registration that was replaced told of something")
	}
	agent := newAgent(t, rt, scripted(says("hi")))
	for range 50 {
		run := must(agent.StartOn(t.Context(), queue, newThread(t, rt), fawn.Ask("go")))
		for ended := false; !ended; {
			<-second
			for _, event := range must(queue.TryTake(0)) {
				ended = event.Type == fawn.EventRunEnd
			}
		}
		run.Close()
	}
	if err := queue.StopWakeup(); err != nil {
		t.Error(err)
	}
	for range second { // what is left in it, and its end
	}
	third := must(queue.Wakeup())
	rt.Close()
	for range third {
	}
}

// Warnings of the library come to a queue that subscribed to them.
func TestLogEvents(t *testing.T) {
	inBothModes(t, func(t *testing.T, rt *fawn.Runtime) {
		queue := newQueue(t, rt, fawn.Object{"subscribe": []string{"log"}})
		agent := newAgent(t, rt, scripted(calls("nobody", fawn.Object{}), says("hi")))
		must(agent.Run(t.Context(), newThread(t, rt), fawn.Ask("go")))
		events := must(queue.Take(t.Context(), 0))
		if len(events) != 1 || events[0].Type != fawn.EventLog || events[0].RunID != "" {
			t.Fatalf("%+v", events)
		}
		warning, ok := events[0].Data().(*fawn.Log)
		if !ok || warning.Level != "warning" || warning.Code != "unknown_tool" || warning.RunID == "" {
			t.Errorf("%+v", warning)
		}
	})
}

// A lossy queue drops what is too much and says so.
func TestLossyQueue(t *testing.T) {
	nothingLeft(t)
	rt := newRuntime(t, nil)
	queue := newQueue(t, rt, fawn.Object{"lossy": true, "high_mark_events": 16})
	agent := newAgent(t, rt, scripted(calls("f", fawn.Object{}), says("hi")), tool("f", emitting(100)))
	run := must(agent.StartOn(t.Context(), queue, newThread(t, rt), custom("go")))
	defer run.Close()
	var dropped uint64
	for event, err := range queue.Events(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		switch data := event.Data().(type) {
		case *fawn.HostCall:
			if err := agent.Answer(t.Context(), data); err != nil {
				t.Error(err)
			}
		case *fawn.Gap:
			dropped += data.Dropped
		case *fawn.Result:
			if dropped == 0 || data.Status != fawn.StatusSuccess {
				t.Errorf("%d dropped, %s", dropped, data.Status)
			}
			return
		}
	}
}
