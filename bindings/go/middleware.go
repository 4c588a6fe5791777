// Middlewares that a program is: functions that are asked at the hooks of a run and give verdicts.

package fawn

import (
	"encoding/json"
	"time"
)

// Middleware is a middleware that the program is. At each of its hooks Func gets a [MiddlewareQuestion] and answers with a
// [Verdict]; see "The host as a middleware" in the README. An error counts as no answer: OnTimeout says what follows.
//
// It joins the document's "extra_middleware" if the factory has one and the document no "middleware", else its "middleware".
type Middleware struct {
	// Name is unique in the chain: 1 to 64 characters of A-Z a-z 0-9 _ -.
	Name string
	// Hooks are where it is asked: before_agent, before_model, wrap_model_call, after_model, wrap_tool_call, after_agent.
	Hooks []string
	// Tools limits wrap_tool_call to calls of these tools. Nil: all.
	Tools []string
	// When says whether it is asked "before" a tool call, "after" it, or "both". Empty: before.
	When string
	// Reads are channels whose values come with each question.
	Reads []string
	// Messages is how many of the newest messages come with each question. Nil: one.
	Messages *int
	// Timeout is how long a verdict may take. 0: ten minutes.
	Timeout time.Duration
	// OnTimeout is what counts without a verdict: "continue", "deny" or "fail". Empty: fail.
	OnTimeout string
	// After and Before are anchors, for "extra_middleware": the middleware beside which it stands. At most one.
	After, Before string
	// Func decides. Nil: questions come as events, to be answered by [Runtime.Finish].
	Func HostFunc
}

func (m Middleware) addTo(c *composition) error {
	host := Object{"hooks": m.Hooks}
	add := func(to Object, name string, value any, given bool) {
		if given {
			to[name] = value
		}
	}
	add(host, "tools", m.Tools, m.Tools != nil)
	add(host, "when", m.When, m.When != "")
	add(host, "reads", m.Reads, m.Reads != nil)
	add(host, "messages", m.Messages, m.Messages != nil)
	add(host, "timeout_ms", milliseconds(m.Timeout), m.Timeout != 0)
	add(host, "on_timeout", m.OnTimeout, m.OnTimeout != "")
	entry := Object{"name": m.Name, "host": host}
	add(entry, "after", m.After, m.After != "")
	add(entry, "before", m.Before, m.Before != "")
	if m.Func != nil {
		put(&c.funcs.middlewares, m.Name, m.Func)
	}
	text, err := json.Marshal(entry)
	if err != nil {
		return err
	}
	return c.addMiddleware(text)
}

// addMiddleware adds an entry to the chain of the document.
func (c *composition) addMiddleware(entry json.RawMessage) error {
	var factory string
	if given, ok := c.document["factory"]; ok && json.Unmarshal(given, &factory) != nil {
		return nil // no text: the library says so better
	}
	member := "extra_middleware"
	given, isWhole := c.document["middleware"]
	if isWhole || factory == "" || factory == "custom" {
		member = "middleware"
	}
	chain := []json.RawMessage{}
	switch {
	case member == "middleware" && (!isWhole || string(given) == "null"):
		// What a chain is that is not given.
		chain = append(chain, json.RawMessage(`"dangling_tool_call"`))
	case len(c.document[member]) > 0:
		if json.Unmarshal(c.document[member], &chain) != nil {
			return nil
		}
	}
	list, err := json.Marshal(append(chain, entry))
	c.document[member] = list
	return err
}

// MiddlewareQuestion is what a [Middleware] is asked about; the hook decides which members there are.
type MiddlewareQuestion struct {
	// Hook is where in the run.
	Hook string `json:"hook"`
	// Phase is "before" or "after", of wrap_tool_call.
	Phase    string `json:"phase"`
	RunID    string `json:"run_id"`
	ThreadID string `json:"thread_id"`
	// MessageCount is how many messages there are, Messages the newest of them.
	MessageCount int       `json:"message_count"`
	Messages     []Message `json:"messages"`
	// Channels has those of Reads that have a value.
	Channels map[string]json.RawMessage `json:"channels"`
	// Tools and SystemHash are of wrap_model_call.
	Tools      []string `json:"tools"`
	SystemHash string   `json:"system_hash"`
	// MessageID is the message whose call is asked about, Call the call, of wrap_tool_call.
	MessageID string `json:"message_id"`
	Call      struct {
		ID   string          `json:"id"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"call"`
	// Result is what the call came to, in the phase "after".
	Result struct {
		Content  json.RawMessage `json:"content"`
		Status   string          `json:"status"`
		Artifact json.RawMessage `json:"artifact"`
	} `json:"result"`
}

// Verdict is what a [Middleware] answers (schema "middleware_verdict"); the hook decides which members there may be.
type Verdict struct {
	// Verdict is continue, change, deny, end or pause.
	Verdict string `json:"verdict"`
	// Reason is why, of deny and pause.
	Reason string `json:"reason,omitempty"`
	// Message is what the agent says last, of end.
	Message string `json:"message,omitempty"`
	// Update and JumpTo are changes of the hooks before and after.
	Update any    `json:"update,omitempty"`
	JumpTo string `json:"jump_to,omitempty"`
	// Append, WithoutTools and Reply are changes of wrap_model_call.
	Append       []string `json:"append,omitempty"`
	WithoutTools []string `json:"without_tools,omitempty"`
	Reply        any      `json:"reply,omitempty"`
	// Args and Result are changes before a tool call, Content is one after it.
	Args    any `json:"args,omitempty"`
	Result  any `json:"result,omitempty"`
	Content any `json:"content,omitempty"`
}

// GoOn is the verdict that changes nothing.
var GoOn = Verdict{Verdict: "continue"}

// Deny is the verdict that refuses, for a reason.
func Deny(reason string) Verdict { return Verdict{Verdict: "deny", Reason: reason} }

// Pause is the verdict that interrupts the run until somebody has decided; a run without input asks again.
func Pause(reason string) Verdict { return Verdict{Verdict: "pause", Reason: reason} }
