// The feed of a run: a goroutine that takes the run's events, calls host functions, and keeps the rest for the reader.
//
// Each run has a queue of its own, so that a slow reader holds back its own run and no other. The queue's wake-up hook
// tells the goroutine when to take, so a thousand runs park no OS thread.

package fawn

import (
	"context"
	"errors"
	"sync"
	"time"

	"fawn/bindings/go/internal/cabi"
)

// feedMark is how many events may wait for the reader in Go before the goroutine stops taking, and how many it takes at
// once, so fewer than twice as many wait. Then the queue fills, and the run waits once that is full too.
const feedMark = 512

const feedQueue = `{"high_mark_events":512,"high_mark_bytes":1048576}`

// pollPause is the rhythm of looking for events when nothing tells of them any more.
const pollPause = 2 * time.Millisecond

type feed struct {
	runtime *Runtime // held, so that it is not collected while the run is in flight
	funcs   *funcs
	queue   uint64
	run     uint64
	ready   <-chan struct{}
	ctx     context.Context
	unhook  func() bool
	// Closed when the run has ended.
	done chan struct{}
	// Hold a value when there is something to read, and when there may be room.
	arrived, room chan struct{}

	mu        sync.Mutex
	events    []Event
	readers   int
	waiters   int
	closed    bool // by the user
	cancelled bool // by the context
	ended     bool
	result    []byte
	err       error // why there is no result
	calls     map[uint64]context.CancelCauseFunc
}

// startFeed starts a run and the goroutine that serves it.
func startFeed(ctx context.Context, a *Assembly, thread uint64, request string) (*feed, error) {
	f := &feed{
		runtime: a.runtime,
		funcs:   &a.funcs,
		ctx:     ctx,
		done:    make(chan struct{}),
		arrived: make(chan struct{}, 1),
		room:    make(chan struct{}, 1),
	}
	var status int32
	var object []byte
	if f.queue, status, object = cabi.QueueNew(a.runtime.handle, feedQueue); status != cabi.OK {
		return nil, failure(status, object)
	}
	if f.ready, status, object = cabi.QueueWakeup(f.queue); status == cabi.OK {
		f.run, status, object = cabi.RunStart(a.handle, thread, f.queue, request)
	}
	if status != cabi.OK {
		cabi.QueueFree(f.queue)
		return nil, failure(status, object)
	}
	f.unhook = context.AfterFunc(ctx, f.cancel)
	go f.serve()
	return f, nil
}

// cancel is what the end of the run's context does. The run is told before the host functions are.
func (f *feed) cancel() {
	cancelRun(f.run, f.ctx)
	f.mu.Lock()
	f.cancelled = true
	f.mu.Unlock()
	f.endCalls(ended(f.ctx))
	signal(f.room)
}

// release is what closing the Run does, or forgetting it.
func (f *feed) release(uint64) {
	f.mu.Lock()
	f.closed = true
	f.events = nil
	ended := f.ended
	f.mu.Unlock()
	signal(f.room)
	if ended {
		cabi.RunFree(f.run)
	}
}

// serve runs from the start of the run to its end.
func (f *feed) serve() {
	for more, goesOn := false, true; goesOn; {
		if !more {
			f.await()
		}
		more, goesOn = f.take()
	}
	f.unhook()
	f.endCalls(errors.New("the run has ended"))
	cabi.QueueFree(f.queue)
	f.mu.Lock()
	f.ended = true
	closed := f.closed
	f.mu.Unlock()
	close(f.done)
	if closed {
		cabi.RunFree(f.run)
	}
}

// await returns when there may be something to take.
func (f *feed) await() {
	if _, told := <-f.ready; !told {
		// The runtime was freed. What its runs still say is in the queue, or comes until the queue is closed.
		time.Sleep(pollPause)
	}
}

// take takes what is there, up to the mark. It answers whether there may be more, and whether the run goes on. (The hook
// tells of the first event in an empty queue only.)
func (f *feed) take() (more, goesOn bool) {
	status, batch := cabi.QueueTake(f.queue, 0, feedMark)
	switch status {
	case cabi.OK:
	case cabi.Timeout, cabi.Interrupted:
		return false, true
	default:
		f.lose(status, batch)
		return false, false
	}
	events, err := splitBatch(batch)
	if err != nil {
		f.err = err // cannot be; the run is of no use without its events
		return false, false
	}
	for n := range events {
		switch e := &events[n]; e.Type {
		case EventHostCall:
			f.call(e)
		case EventHostCallCancelled:
			f.callOver(e)
		case EventRunEnd:
			f.result = e.data
		}
	}
	f.offer(events)
	return len(events) == feedMark, f.result == nil
}

// lose keeps why there are no more events though the run was not seen to end; perhaps it has a result all the same.
func (f *feed) lose(status int32, object []byte) {
	end, text := cabi.RunWait(f.run, 0)
	switch {
	case end == cabi.OK:
		f.result = text
		f.err = closedEarly()
	case status == cabi.Closed:
		f.err = closedEarly()
	default:
		f.err = failure(status, object)
	}
}

func closedEarly() error {
	return &Error{Code: ErrClosed, Status: -107, Message: "the runtime was closed before the run ended"}
}

// offer hands events to the reader, and waits while there are too many that nobody has read.
func (f *feed) offer(events []Event) {
	for {
		f.mu.Lock()
		// A run that nobody reads must not wait for a reader when somebody waits for the run, or it is to end.
		unread := f.readers == 0 && (f.waiters > 0 || f.cancelled)
		switch {
		case f.closed:
			events = nil
		case len(f.events) < feedMark || f.result != nil:
		case unread:
			f.events = nil
		default:
			f.mu.Unlock()
			<-f.room
			continue
		}
		if len(f.events) == 0 {
			f.events = events
		} else {
			f.events = append(f.events, events...)
		}
		f.mu.Unlock()
		signal(f.arrived)
		return
	}
}

// read is a range over the events.
func (f *feed) read(yield func(Event, error) bool) {
	f.mu.Lock()
	f.readers++
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.readers--
		f.mu.Unlock()
		signal(f.room)
	}()
	for {
		f.mu.Lock()
		events, ended := f.events, f.ended
		f.events = nil
		f.mu.Unlock()
		signal(f.room)
		for n := range events {
			if !yield(events[n], nil) {
				f.putBack(events[n+1:])
				return
			}
		}
		switch {
		case len(events) > 0:
		case !ended:
			select {
			case <-f.arrived:
			case <-f.done:
			}
		case f.err != nil:
			yield(Event{}, f.err)
			return
		default:
			return
		}
	}
}

func (f *feed) putBack(events []Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(events) > 0 && !f.closed {
		f.events = append(events[:len(events):len(events)], f.events...)
	}
}

// wait is Run.Wait.
func (f *feed) wait(ctx context.Context) (*Result, error) {
	f.mu.Lock()
	f.waiters++
	f.mu.Unlock()
	signal(f.room)
	defer func() {
		f.mu.Lock()
		f.waiters--
		f.mu.Unlock()
	}()
	select {
	case <-f.done:
	default:
		select {
		case <-f.done:
		case <-ctx.Done():
			return nil, ended(ctx)
		}
	}
	if f.result == nil {
		return nil, f.err
	}
	return resultOf(f.result, ended(f.ctx))
}

// call starts the host function that a call is for. Calls that have none are the reader's to answer.
func (f *feed) call(e *Event) {
	call, ok := e.Data().(*HostCall)
	if !ok {
		return
	}
	function := f.funcs.of(call)
	if function == nil {
		return
	}
	// The run's context does not end the call's by itself: see cancel.
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(f.ctx))
	f.mu.Lock()
	if f.calls == nil {
		f.calls = make(map[uint64]context.CancelCauseFunc)
	}
	f.calls[call.CallID] = cancel
	late := f.cancelled
	f.mu.Unlock()
	if late {
		cancel(&overError{ended(f.ctx)})
	}
	go func() {
		defer f.forget(call.CallID)
		ctx, stop := context.WithTimeoutCause(ctx, time.Duration(call.DeadlineMS)*time.Millisecond, errTooLate)
		defer stop()
		_ = serve(ctx, f.runtime, function, call) // what is worth telling was reported
	}()
}

// callOver ends the context of a call whose answer nobody wants any more.
func (f *feed) callOver(e *Event) {
	over, ok := e.Data().(*HostCallCancelled)
	if !ok {
		return
	}
	f.mu.Lock()
	cancel := f.calls[over.CallID]
	f.mu.Unlock()
	if cancel == nil {
		return
	}
	if Code(over.Reason) == ErrDeadlineExceeded {
		cancel(errTooLate)
	} else {
		cancel(&overError{Code(over.Reason)})
	}
}

func (f *feed) forget(call uint64) {
	f.mu.Lock()
	cancel := f.calls[call]
	delete(f.calls, call)
	f.mu.Unlock()
	if cancel != nil {
		cancel(nil)
	}
}

// endCalls ends the contexts of all calls.
func (f *feed) endCalls(cause error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, cancel := range f.calls {
		cancel(&overError{cause})
	}
}

// signal puts a value into a channel that holds one, unless it has one.
func signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}
