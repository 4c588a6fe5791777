// Queues: where events arrive, for programs that take them themselves.

package fawn

import (
	"context"
	"io"
	"iter"
	"runtime"
	"sync"

	"fawn/bindings/go/internal/cabi"
)

// Queue is where events of runs, calls to the host and warnings arrive. Most programs need none, since [Assembly.Start]
// brings a run's events itself; one is for many runs read in one place ([Assembly.StartOn]) and for events of no run.
type Queue struct {
	object
	runtime *Runtime
	// Held by the one goroutine that is taking, so that no more than one OS thread waits, and an interrupt reaches the
	// take that it is meant for.
	taking chan struct{}
	left   struct {
		sync.Mutex
		events []Event
	}
}

// NewQueue makes a queue (schema "queue_config"). {"subscribe": ["log"]} makes it one that the library's warnings come to,
// as events of type log.
func (r *Runtime) NewQueue(config any) (*Queue, error) {
	defer runtime.KeepAlive(r)
	text, err := encode(config)
	if err != nil {
		return nil, err
	}
	handle, status, object := cabi.QueueNew(r.handle, text)
	if status != cabi.OK {
		return nil, failure(status, object)
	}
	q := &Queue{runtime: r, taking: make(chan struct{}, 1)}
	q.keep("queue", handle, caller(), cabi.QueueFree)
	return q, nil
}

// Take takes what is in the queue, oldest first and at most max events if max is not 0, or waits until there is something.
//
// While it waits it parks one OS thread, however many goroutines are in here; each event goes to one of them. In a runtime
// with "workers": 0 it is in here that runs make progress. The error is the context's when that ended; [io.EOF] when
// nothing will come any more, because the queue was closed or its runtime is down.
func (q *Queue) Take(ctx context.Context, max int) ([]Event, error) {
	defer runtime.KeepAlive(q)
	if err := ended(ctx); err != nil {
		return nil, err
	}
	select {
	case q.taking <- struct{}{}:
	case <-ctx.Done():
		return nil, ended(ctx)
	}
	defer func() { <-q.taking }()
	if events := q.leftOver(max); events != nil {
		return events, nil
	}
	handle := q.handle
	stop := context.AfterFunc(ctx, func() { cabi.QueueInterrupt(handle) })
	defer stop()
	for {
		status, batch := cabi.QueueTake(handle, -1, limit(max))
		switch status {
		case cabi.OK:
			return splitBatch(batch)
		case cabi.Closed:
			return nil, io.EOF
		case cabi.Interrupted:
			// By our context, or late by that of a take which was over already.
			if err := ended(ctx); err != nil {
				return nil, err
			}
		default:
			return nil, failure(status, batch)
		}
	}
}

// TryTake is Take without waiting: no events, and no error, when there are none.
func (q *Queue) TryTake(max int) ([]Event, error) {
	defer runtime.KeepAlive(q)
	select {
	case q.taking <- struct{}{}:
	default:
		return nil, nil // somebody waits, and gets what comes
	}
	defer func() { <-q.taking }()
	if events := q.leftOver(max); events != nil {
		return events, nil
	}
	for {
		status, batch := cabi.QueueTake(q.handle, 0, limit(max))
		switch status {
		case cabi.OK:
			return splitBatch(batch)
		case cabi.Timeout:
			return nil, nil
		case cabi.Closed:
			return nil, io.EOF
		case cabi.Interrupted: // late, by the context of an earlier take
		default:
			return nil, failure(status, batch)
		}
	}
}

// Events ranges over the events as they come, until the queue ends. It yields an error, last, when the context ends or the
// library refuses. Breaking out loses nothing: what was not ranged over comes with the next take.
func (q *Queue) Events(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for {
			events, err := q.Take(ctx, 0)
			if err == io.EOF {
				return
			}
			if err != nil {
				yield(Event{}, err)
				return
			}
			for n := range events {
				if !yield(events[n], nil) {
					q.putBack(events[n+1:])
					return
				}
			}
		}
	}
}

// Wakeup gives a channel that holds a value whenever the queue, having been empty, has something to take: for programs
// with an event loop of their own. Receive, then TryTake with 0 to have it all. The channel is closed when the registration
// has ended: a later Wakeup replaced it, or the queue or its runtime was closed.
//
// No OS thread is parked. With "workers": 0 nothing happens by itself, so nothing wakes up either.
func (q *Queue) Wakeup() (<-chan struct{}, error) {
	defer runtime.KeepAlive(q)
	ready, status, object := cabi.QueueWakeup(q.handle)
	if status != cabi.OK {
		return nil, failure(status, object)
	}
	return ready, nil
}

// StopWakeup ends the registration that Wakeup made.
func (q *Queue) StopWakeup() error {
	defer runtime.KeepAlive(q)
	return check(cabi.QueueClearWakeup(q.handle))
}

// Close frees the queue. What is in it is lost, its open host calls fail, and runs that need it end. A Take that waits gets
// io.EOF.
func (q *Queue) Close() error { return q.object.Close() }

// leftOver takes events that an earlier range did not come to.
func (q *Queue) leftOver(max int) []Event {
	q.left.Lock()
	defer q.left.Unlock()
	events := q.left.events
	if max > 0 && len(events) > max {
		events = events[:max:max]
	}
	q.left.events = q.left.events[len(events):]
	if len(events) == 0 {
		return nil
	}
	return events
}

func (q *Queue) putBack(events []Event) {
	q.left.Lock()
	defer q.left.Unlock()
	q.left.events = append(events[:len(events):len(events)], q.left.events...)
}

func limit(max int) uint32 {
	return uint32(min(uint(max), 1<<31))
}
