// What all objects of the library have in common: a handle, a Close, and a net below those who forget it.

package fawn

import (
	"context"
	"log/slog"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
)

var logger atomic.Pointer[slog.Logger]

// SetLogger says where the binding reports what nobody else is told: objects that were forgotten instead of closed
// (level warn; but not runs that have ended), host functions that panicked (error, with the stack) or whose answer was refused (warn), and answers that
// came too late to be of use (debug). Nil, the default, reports nothing: a library does not write to its host's output
// unasked.
//
// Warnings of the library itself are events of type log; see [Runtime.NewQueue].
func SetLogger(to *slog.Logger) { logger.Store(to) }

// tell reports something. A handler that panics is the program's, and has nobody here to be told.
func tell(level slog.Level, message string, args ...any) {
	if to := logger.Load(); to != nil {
		defer func() { _ = recover() }()
		to.Log(context.Background(), level, message, args...)
	}
}

// object is a handle of the library together with how to let go of it. It is embedded in what users hold, never copied.
type object struct {
	handle  uint64
	closed  atomic.Bool
	net     runtime.Cleanup
	release func(handle uint64)
}

// keep takes charge of a handle. release must not refer to the value that users hold and that embeds the object, which
// would then never be collected. made is where in the user's program the object was made.
func (o *object) keep(kind string, handle uint64, made uintptr, release func(handle uint64)) {
	o.handle = handle
	o.release = release
	// A cleanup hangs on the object, which is part of the owner and lives as long.
	o.net = runtime.AddCleanup(o, forgotten, lost{kind, handle, made, release})
}

type lost struct {
	kind    string
	handle  uint64
	made    uintptr
	release func(handle uint64)
}

// forgotten runs when the garbage collector found an object that nobody closed.
func forgotten(l lost) {
	// A run that has ended holds next to nothing, and its end is what programs wait for.
	quiet := l.kind == "run" && hasEnded(l.handle)
	l.release(l.handle)
	if !quiet {
		tell(slog.LevelWarn, "fawn: an object was not closed", "kind", l.kind, "made", place(l.made))
	}
}

// Close lets go of the object. The second time it does nothing. It always returns nil, so that it fits io.Closer.
func (o *object) Close() error {
	if !o.closed.Swap(true) && o.release != nil {
		o.net.Stop()
		o.release(o.handle)
	}
	return nil
}

// caller is the place in the program that called the exported function which calls this.
func caller() uintptr {
	var pcs [1]uintptr
	runtime.Callers(3, pcs[:])
	return pcs[0]
}

func place(pc uintptr) string {
	frame, _ := runtime.CallersFrames([]uintptr{pc}).Next()
	file := frame.File[strings.LastIndexByte(frame.File, '/')+1:]
	return file + ":" + strconv.Itoa(frame.Line)
}
