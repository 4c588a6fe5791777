package cabi

/*
#include <fawn.h>

extern void fawnGoWakeup(uintptr_t user_data);
extern void fawnGoDrop(uintptr_t user_data);
*/
import "C"

import "runtime/cgo"

// QueueWakeup is fawn_queue_set_wakeup with a channel for a function: the channel holds one value once an empty queue has
// something to take, and is closed when the registration has ended (replaced, cleared, or the queue or its runtime freed).
//
// The library keeps two function pointers of this process, always the same, and a number; never a pointer of Go.
func QueueWakeup(queue uint64) (<-chan struct{}, int32, []byte) {
	var buf C.fawn_buf
	ready := make(chan struct{}, 1)
	key := cgo.NewHandle(ready)
	status := C.fawn_queue_set_wakeup(C.fawn_queue(queue), C.fawn_wakeup_fn(C.fawnGoWakeup), C.uintptr_t(key),
		C.fawn_drop_fn(C.fawnGoDrop), &buf)
	if status != C.FAWN_OK {
		key.Delete() // nothing was registered, so nothing is dropped
		return nil, int32(status), out(&buf)
	}
	return ready, int32(status), nil
}

// QueueClearWakeup is fawn_queue_set_wakeup without a function.
func QueueClearWakeup(queue uint64) (int32, []byte) {
	var buf C.fawn_buf
	status := C.fawn_queue_set_wakeup(C.fawn_queue(queue), nil, 0, nil, &buf)
	return int32(status), out(&buf)
}

// Called on OS threads of the library, perhaps on several at once; must not block and must not call the library.
//
//export fawnGoWakeup
func fawnGoWakeup(key C.uintptr_t) {
	select {
	case cgo.Handle(key).Value().(chan struct{}) <- struct{}{}:
	default: // it holds one already
	}
}

// Called once, after the last wake-up has returned.
//
//export fawnGoDrop
func fawnGoDrop(key C.uintptr_t) {
	ready := cgo.Handle(key).Value().(chan struct{})
	cgo.Handle(key).Delete()
	close(ready)
}
