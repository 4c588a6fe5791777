// What a program does for an agent: its tools, its model if the program is the model too, its guardrail, and what else it is
// asked for.

package fawn

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"fawn/bindings/go/internal/cabi"
)

// HostFunc is a function of yours that an agent calls: a tool, the model, a guardrail, a middleware, a part of a sandbox or a
// memory.
//
// Each call runs on a goroutine of its own and may take as long as it wants. The context has the values of the one that
// the run was started with; it ends when the answer is of no use any more: the call's deadline has passed, or the run was
// cancelled or ended. The arguments are JSON and must not be changed.
//
// A tool's answer is what the model reads: text, a list of content blocks, anything that can become JSON, or an [Answer]. A
// model's answer is text or a [Reply], a middleware's a [Verdict]. An error is told to the model, as is a panic; the program goes on. What a function
// answers after its context has ended is kept if it did its work and the library can still take it; its errors are not.
type HostFunc func(ctx context.Context, args json.RawMessage) (any, error)

// Typed makes a HostFunc of a function whose arguments are a Go value. Arguments that do not fit it are an error, which the
// model reads.
func Typed[Args any](f func(ctx context.Context, args Args) (any, error)) HostFunc {
	return func(ctx context.Context, text json.RawMessage) (any, error) {
		var args Args
		if err := json.Unmarshal(text, &args); err != nil {
			return nil, fmt.Errorf("the arguments do not fit: %w", err)
		}
		return f(ctx, args)
	}
}

// Host is something that a program brings into an assembly: a [Tool], a [Model], a [Guardrail], a [Middleware], a [Sandbox], a
// [Memory] or a [Subagents].
type Host interface {
	addTo(c *composition) error
}

// RuntimeHost is something that a program brings into a runtime, for its assemblies: a [Model], or a [Tool] of lead agents.
type RuntimeHost interface {
	Host
	addToRuntime(c *composition) error
}

// Tool is a function that the agent may call. One with nothing but Name and Func, of a tool that the document or the
// configuration of a lead agent declares, is the function of that.
type Tool struct {
	// Name is what the model calls it: 1 to 64 characters of A-Z a-z 0-9 _ -.
	Name string
	// Description says what it does, for the model.
	Description string
	// Parameters is a JSON Schema of the arguments object, as a document. Nil: no arguments.
	Parameters any
	// Deadline is how long a call may take. 0: ten minutes.
	Deadline time.Duration
	// ReturnDirect says that the answer ends the run.
	ReturnDirect bool
	// Func does it. Nil: calls come as events, to be answered by [Runtime.Finish].
	Func HostFunc
}

func (t Tool) addTo(c *composition) error {
	declaration := Object{"name": t.Name}
	if t.Description != "" {
		declaration["description"] = t.Description
	}
	if text, given, err := marshal(t.Parameters); err != nil {
		return err
	} else if given {
		declaration["parameters"] = json.RawMessage(text)
	}
	if t.Deadline != 0 {
		declaration["deadline_ms"] = milliseconds(t.Deadline)
	}
	if t.ReturnDirect {
		declaration["return_direct"] = true
	}
	if t.Func != nil {
		put(&c.funcs.tools, t.Name, t.Func)
		if len(declaration) == 1 && slices.Contains(c.known, t.Name) {
			return nil
		}
	}
	text, err := json.Marshal(declaration)
	c.tools = append(c.tools, text)
	return err
}

func (t Tool) addToRuntime(c *composition) error { return t.addTo(c) }

// put keeps a function by its name.
func put(in *map[string]HostFunc, name string, f HostFunc) {
	if *in == nil {
		*in = make(map[string]HostFunc)
	}
	(*in)[name] = f
}

// Model is a model that the program itself is. Its function gets {"system", "messages", "tools", "tool_choice"}, with the
// messages in canonical form, and answers text or a [Reply]; what it passes to [Emit], a [Delta], streams.
//
// Where the document has a model already, and for a lead agent, whose models stand in the configuration, it answers for those of
// the provider "host".
type Model struct {
	// Name is told to the function's host call, so that one function can be several models. Of models in the configuration it
	// is what they have as "model" ("host" if they have none). Empty: all that no other Model answers for.
	Name string
	// Deadline is how long one reply may take. 0: ten minutes. A model in the configuration has its own there.
	Deadline time.Duration
	// Func answers.
	Func HostFunc
}

func (m Model) addTo(c *composition) error {
	_, isThere := c.document["model"]
	if isThere || c.isLead {
		return m.serve(c)
	}
	text, err := json.Marshal(m.declaration())
	c.document["model"] = text
	if err != nil {
		return err
	}
	m.Deadline = 0
	return m.serve(c)
}

// addToRuntime adds it to the models of the configuration, unless it answers for one that is there.
func (m Model) addToRuntime(c *composition) error {
	var models []json.RawMessage
	if given, ok := c.document["models"]; ok && json.Unmarshal(given, &models) != nil {
		return nil // the library says better what is wrong
	}
	is := func(text json.RawMessage) bool {
		var entry modelEntry
		if json.Unmarshal(text, &entry) != nil {
			return false
		}
		entry.resolve()
		return entry.provider == "host" && entry.key == m.Name
	}
	if m.Name != "" && !slices.ContainsFunc(models, is) {
		declaration := m.declaration()
		declaration["name"] = m.Name
		text, err := json.Marshal(declaration)
		if err != nil {
			return err
		}
		list, err := json.Marshal(append(models, text))
		if err != nil {
			return err
		}
		c.document["models"] = list
		m.Deadline = 0
	}
	return m.serve(c)
}

func (m Model) declaration() Object {
	declaration := Object{"provider": "host"}
	if m.Name != "" {
		declaration["model"] = m.Name
	}
	if m.Deadline != 0 {
		declaration["deadline_ms"] = milliseconds(m.Deadline)
	}
	return declaration
}

// serve keeps the function.
func (m Model) serve(c *composition) error {
	switch {
	case m.Deadline != 0:
		return wrongPart("the deadline of the Model %q stands where the model does, in the configuration", m.Name)
	case m.Func == nil:
		return nil
	case m.Name == "" && c.funcs.model != nil, c.funcs.models[m.Name] != nil:
		return wrongPart("there are two Models named %q", m.Name)
	case m.Name == "":
		c.funcs.model = m.Func
	default:
		put(&c.funcs.models, m.Name, m.Func)
	}
	return nil
}

// Guardrail decides about the tool calls of an agent whose configuration asks the host: "guardrails" of a lead agent's with
// {"provider": {"use": "host"}}, or the middleware "guardrail_provider". Its function gets a [GuardrailRequest] as JSON and
// answers a [GuardrailDecision]; an error says that it cannot tell, and then "fail_closed" decides.
type Guardrail struct {
	// Func decides.
	Func HostFunc
}

func (g Guardrail) addTo(c *composition) error {
	c.funcs.guardrail = g.Func
	return nil
}

// GuardrailRequest is a tool call that a [Guardrail] is asked about.
type GuardrailRequest struct {
	ToolName      string          `json:"tool_name"`
	ToolInput     json.RawMessage `json:"tool_input"`
	AgentID       string          `json:"agent_id"`
	ThreadID      string          `json:"thread_id"`
	RunID         string          `json:"run_id"`
	ToolCallID    string          `json:"tool_call_id"`
	IsSubagent    bool            `json:"is_subagent"`
	Timestamp     time.Time       `json:"timestamp"`
	UserID        string          `json:"user_id"`
	UserRole      string          `json:"user_role"`
	OAuthProvider string          `json:"oauth_provider"`
	OAuthID       string          `json:"oauth_id"`
	ChannelUserID string          `json:"channel_user_id"`
	IsInternal    bool            `json:"is_internal"`
	Attributes    json.RawMessage `json:"attributes"`
}

// GuardrailDecision says whether a call may be made. The model is told the first reason of a denial.
type GuardrailDecision struct {
	Allow    bool              `json:"allow"`
	Reasons  []GuardrailReason `json:"reasons,omitempty"`
	PolicyID string            `json:"policy_id,omitempty"`
}

// GuardrailReason is why.
type GuardrailReason struct {
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

// milliseconds rounds up, so that a short deadline does not become none.
func milliseconds(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// Answer is a tool's answer that says more than its content.
type Answer struct {
	// Content is what the model reads: text, a list of content blocks, or anything that can become JSON.
	Content any `json:"content"`
	// Artifact is kept with the message, for the host and not for the model.
	Artifact any `json:"artifact,omitempty"`
	// AdditionalKwargs are facts that are kept with the message: those of a delegation, for one, that the ledger reads.
	AdditionalKwargs map[string]any `json:"additional_kwargs,omitempty"`
	// Update writes to channels of the thread.
	Update any `json:"update,omitempty"`
	// EndRun ends the run after this step.
	EndRun bool `json:"end_run,omitempty"`
}

// Reply is a model's answer that says more than its text.
type Reply struct {
	// Content is text, or a list of content blocks.
	Content any `json:"content"`
	// ToolCalls are the tools that the model wants called.
	ToolCalls []ToolCall `json:"tool_calls,omitempty"`
	// Usage counts tokens.
	Usage *Usage `json:"usage,omitempty"`
	// Reasoning is what the model thought.
	Reasoning string `json:"reasoning,omitempty"`
	// ResponseMetadata is kept with the message.
	ResponseMetadata map[string]any `json:"response_metadata,omitempty"`
}

// Delta is a piece of a model's reply, for [Emit].
type Delta struct {
	// Text is a piece of the text.
	Text string `json:"text,omitempty"`
	// Reasoning is a piece of the reasoning.
	Reasoning string `json:"reasoning,omitempty"`
	// ToolCall is a piece of a tool call.
	ToolCall *ToolCallDelta `json:"tool_call,omitempty"`
}

// CallInfo tells a [HostFunc] about the call that it is in; ok is false outside of one.
func CallInfo(ctx context.Context) (call HostCall, ok bool) {
	in, ok := ctx.Value(callKey{}).(*callInFlight)
	if !ok {
		return HostCall{}, false
	}
	return *in.call, true
}

// Emit adds to the answer of the call that a [HostFunc] is in: a model's [Delta], or anything at all as a tool's progress,
// which comes out as an event of type custom if the run was asked for those. The part is a value, as answers are: a string is
// text and not JSON.
//
// It waits while the run is behind, as long as the context lasts. [ErrGone]: the call is over, stop working on it.
func Emit(ctx context.Context, part any) error {
	in, ok := ctx.Value(callKey{}).(*callInFlight)
	if !ok {
		return &Error{Code: ErrArgument, Status: -101, Message: "Emit wants the context of a host function"}
	}
	text, err := json.Marshal(part)
	if err != nil {
		return err
	}
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		status, object := cabi.CallEmit(in.runtime.handle, in.call.CallID, view(text))
		if status == cabi.OK {
			return nil
		}
		err := failure(status, object)
		if !isCode(err, ErrBehind) {
			return err
		}
		select {
		case <-ctx.Done():
			return ended(ctx)
		case <-time.After(pause):
		}
	}
}
