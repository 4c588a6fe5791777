// Command conformance runs a conformance script (tests/golden/README.md) through the binding and prints what the library
// answers, byte for byte. The runners of other languages print the same.
//
//	conformance SCRIPT
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	fawn "fawn/bindings/go"
)

// runner is what a script works on. A freed object stays in its place, so that its later use reaches the library.
type runner struct {
	runtime  *fawn.Runtime
	assembly *fawn.Assembly
	thread   *fawn.Thread
	queue    *fawn.Queue
	// Whether a queue was ever made; without one, runs have no listener.
	listens bool

	script string
	out    *bufio.Writer
}

var background = context.Background()

func main() {
	if len(os.Args) != 2 {
		fail(errors.New("usage: conformance SCRIPT"))
	}
	script, err := os.ReadFile(os.Args[1])
	if err != nil {
		fail(err)
	}
	r := runner{
		// Objects that were not made yet: the library says so.
		runtime: new(fawn.Runtime), assembly: new(fawn.Assembly), thread: new(fawn.Thread),
		script: string(script), out: bufio.NewWriter(os.Stdout),
	}
	for verb, text, ok := r.next(); ok; verb, text, ok = r.next() {
		r.command(verb, text)
	}
	if r.listens {
		r.queue.Close()
	}
	r.thread.Close()
	r.assembly.Close()
	r.runtime.Close()
	if err := r.out.Flush(); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "conformance:", err)
	os.Exit(1)
}

// next reads the next line that is neither empty nor a remark.
func (r *runner) next() (verb, text string, ok bool) {
	for r.script != "" {
		var line string
		line, r.script, _ = strings.Cut(r.script, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		verb, text, _ = strings.Cut(line, " ")
		return verb, text, true
	}
	return "", "", false
}

func (r *runner) command(verb, text string) {
	switch verb {
	case "runtime":
		replace(r, &r.runtime)(fawn.NewRuntime(text))
	case "assembly":
		replace(r, &r.assembly)(r.runtime.NewAssembly(text))
	case "thread":
		replace(r, &r.thread)(r.runtime.OpenThread(background, text))
	case "queue":
		made, err := r.runtime.NewQueue(text)
		if err != nil {
			r.sayError(err)
			return
		}
		if r.listens {
			r.queue.Close()
		}
		r.queue, r.listens = made, true
		r.say("ok", nil)
	case "free":
		r.free(text)
	case "run":
		r.run(text)
	case "describe":
		r.sayAnswer(fawn.Describe(text))
	case "reduce":
		channel, document, _ := strings.Cut(text, " ")
		r.sayAnswer(fawn.Reduce(channel, document))
	case "convert":
		r.sayAnswer(fawn.ConvertMessages(text))
	case "update":
		r.sayAnswer(r.thread.Update(background, text))
	case "state":
		r.sayAnswer(r.thread.State(background, text))
	case "history":
		r.sayAnswer(r.thread.History(background, text))
	case "goal":
		r.sayAnswer(r.thread.Goal(background, text))
	case "submit":
		r.sayAnswer(r.runtime.Submit(background, text))
	case "descriptor":
		r.sayAnswer(r.assembly.Descriptor())
	case "stats":
		r.sayAnswer(r.runtime.Stats())
	case "shutdown":
		r.sayAnswer(r.runtime.Shutdown(background))
	default:
		fail(fmt.Errorf("unknown command %s", verb))
	}
}

// replace puts a new object into the place of the current one, which is closed.
func replace[T interface{ Close() error }](r *runner, current *T) func(T, error) {
	return func(made T, err error) {
		if err != nil {
			r.sayError(err)
			return
		}
		(*current).Close()
		*current = made
		r.say("ok", nil)
	}
}

func (r *runner) free(what string) {
	switch what {
	case "runtime":
		r.runtime.Close()
	case "assembly":
		r.assembly.Close()
	case "thread":
		r.thread.Close()
	case "queue":
		if r.listens {
			r.queue.Close()
		}
	default:
		fail(fmt.Errorf("no object to free: %s", what))
	}
	r.say("ok", nil)
}

// run carries out a run; the lines up to "end" answer its host calls.
func (r *runner) run(request string) {
	run, err := r.assembly.StartOn(background, r.queue, r.thread, request)
	if err != nil {
		r.sayError(err)
	} else {
		for ended := !r.listens; !ended; {
			events, err := r.queue.Take(background, 1)
			if err != nil {
				fail(err)
			}
			event := &events[0]
			r.say("event", event.Raw)
			switch data := event.Data().(type) {
			case *fawn.HostCall:
				r.answer(run, data.CallID)
			case *fawn.Result:
				ended = true
			}
		}
		result, err := run.Wait(background)
		if result == nil {
			fail(err)
		}
		r.say("result", result.JSON())
		run.Close()
	}
	for verb, _, ok := r.next(); ok && verb != "end"; verb, _, ok = r.next() {
	}
}

// answer carries out the lines up to the one that answers a host call.
func (r *runner) answer(run *fawn.Run, call uint64) {
	for verb, text, ok := r.next(); ok; verb, text, ok = r.next() {
		switch verb {
		case "emit":
			r.sayAction(r.runtime.Emit(call, text))
		case "finish":
			r.sayAction(r.runtime.Finish(call, text))
			return
		case "cancel":
			_, err := run.Submit(`{"op":"cancel","reason":"golden"}`)
			r.sayAction(err)
			return
		default:
			r.command(verb, text)
		}
	}
	fail(errors.New("the script has no answer for a host call"))
}

func (r *runner) say(what string, text json.RawMessage) {
	r.out.WriteString(what)
	if text != nil {
		r.out.WriteByte(' ')
		r.out.Write(text)
	}
	r.out.WriteByte('\n')
}

func (r *runner) sayError(err error) {
	var e *fawn.Error
	if !errors.As(err, &e) || e.JSON() == nil {
		fail(err)
	}
	r.say("error", e.JSON())
}

func (r *runner) sayAnswer(text json.RawMessage, err error) {
	if err != nil {
		r.sayError(err)
		return
	}
	r.say("ok", text)
}

// sayAction tells how an answer to a host call went: nothing if it arrived.
func (r *runner) sayAction(err error) {
	switch {
	case err == nil:
	case errors.Is(err, fawn.ErrGone):
		r.say("gone", nil)
	default:
		r.sayError(err)
	}
}
