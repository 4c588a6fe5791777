// Package fawn runs agents inside a Go program: it is the Go binding of libfawn, an agent harness that you link.
//
// A [Runtime] holds configuration, store and models. [Runtime.NewAssembly] composes an agent from a model, a prompt and
// tools, which are Go functions; [Runtime.OpenThread] opens a conversation; [Assembly.Start] sets the agent to work on it.
// The [Run] tells what happens by [Run.Events] and how it ended by [Run.Wait].
//
// # Documents
//
// Options, requests and writes are JSON documents, with schemas that [Describe] answers. Wherever a document is wanted you
// may pass anything that encoding/json can marshal: a struct, an [Object], a map. A string, a []byte or an
// [encoding/json.RawMessage] is taken to be JSON already and passed on byte for byte. Nil is the empty object. Answers are
// JSON texts that you own; what programs look at most has types: [Event], [Result], [Message].
//
// # Errors
//
// What the library refuses comes back as an [*Error], with a code and the place in the document that was at fault. Compare
// codes with errors.Is:
//
//	if errors.Is(err, fawn.ErrThreadBusy) { ... }
//
// # Contexts
//
// What waits or runs takes a context. A cancelled context ends a wait within milliseconds, and cancels the run that was
// started with it. The error is both the context's and its cause: errors.Is finds either. Methods that read or write the store take one too; it is looked at before the store is, and not
// during: with SQLite such a call ends by itself, after 10 seconds at the latest if another process holds the file.
//
// # Closing
//
// Objects hold memory outside the Go heap, so each has a Close, which may be called twice, from any goroutine, in any order.
// What you use after closing it answers an error that is [ErrHandle]. An object that is forgotten is freed by the garbage
// collector some day, and the logger of [SetLogger] is told. Close the runtime and everything that belongs to it is out of
// use; the rest still wants closing.
//
// # Concurrency
//
// Everything may be used from many goroutines at once. A run in flight costs a goroutine, not an OS thread; an OS thread is
// parked for each runtime with "workers": 0 that has runs, and for each [Queue.Take] that waits, or [Run.Wait] of a run that [Assembly.StartOn] began.
package fawn
