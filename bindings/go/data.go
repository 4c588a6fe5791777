// What is in events and results, as Go types. Members of later versions are ignored; Event.Raw has them.

package fawn

import (
	"encoding/json"
	"strings"
)

// RunStart is the data of run_start.
type RunStart struct {
	// RecursionLimit is the most steps that the run may take.
	RecursionLimit int `json:"recursion_limit"`
}

// MessageDelta is the data of message_delta: a piece of a reply. One of Text, Reasoning and ToolCall is set.
type MessageDelta struct {
	MessageID string         `json:"message_id"`
	Text      string         `json:"text"`
	Reasoning string         `json:"reasoning"`
	ToolCall  *ToolCallDelta `json:"tool_call"`
}

// String is the piece as JSON text.
func (d MessageDelta) String() string { return jsonText(d) }

// ModelAttempt is the data of model_attempt: an attempt to have a model reply failed. One that succeeds has no such event.
type ModelAttempt struct {
	// MessageID is the message that was asked for; empty when a middleware asked.
	MessageID string `json:"message_id"`
	// Model is the one that failed.
	Model string `json:"model"`
	// Attempt counts from 1 for each model.
	Attempt int `json:"attempt"`
	// MaxAttempts is how many this model is given, as things stand.
	MaxAttempts int `json:"max_attempts"`
	// Reason is the class of the failure: quota, auth, burst_rate, transient, busy or generic. New versions may add to these.
	Reason string `json:"reason"`
	// Error is why it failed.
	Error *Error `json:"error"`
	// Next is what follows: one of the Next... constants.
	Next string `json:"next"`
	// WaitMS is the wait before a retry, in milliseconds; nil if none follows.
	WaitMS *int64 `json:"wait_ms"`
	// NextModel is the model of a fallback; empty otherwise.
	NextModel string `json:"next_model"`
}

// What follows an attempt that failed. New versions may add to these.
const (
	// NextRetry: the same model again.
	NextRetry = "retry"
	// NextFallback: the next model.
	NextFallback = "fallback"
	// NextNone: the call ends with the error.
	NextNone = "none"
)

// String is the attempt as JSON text.
func (a ModelAttempt) String() string { return jsonText(a) }

// StreamReset is the data of stream_reset: what was streamed of a message is void, since another attempt begins. Its pieces
// have the same message id. A program that shows text as it comes takes it back here.
type StreamReset struct {
	MessageID string `json:"message_id"`
}

// ToolCallDelta is a piece of a tool call that streams. Pieces of one call have its index; Args are pieces of JSON text.
type ToolCallDelta struct {
	Index int    `json:"index"`
	ID    string `json:"id,omitempty"`
	Name  string `json:"name,omitempty"`
	Args  string `json:"args,omitempty"`
}

// MessageStored is the data of message: a whole message that a node wrote.
type MessageStored struct {
	Node    string  `json:"node"`
	Message Message `json:"message"`
}

// Update is the data of update: the channels that a node wrote.
type Update struct {
	Node   string                     `json:"node"`
	Update map[string]json.RawMessage `json:"update"`
}

// String is the update as JSON text.
func (u Update) String() string { return jsonText(u) }

// Values is the data of values: all channels.
type Values struct {
	Values map[string]json.RawMessage `json:"values"`
}

// String is the values as JSON text.
func (v Values) String() string { return jsonText(v) }

// UsageReport is the data of usage: tokens of one reply, and of the run so far.
type UsageReport struct {
	MessageID string `json:"message_id"`
	Usage     Usage  `json:"usage"`
	Total     Usage  `json:"total"`
}

// Usage counts tokens.
type Usage struct {
	InputTokens  int64 `json:"input_tokens"`
	OutputTokens int64 `json:"output_tokens"`
	TotalTokens  int64 `json:"total_tokens,omitempty"`
}

// Checkpoint is the data of checkpoint: a step is stored.
type Checkpoint struct {
	CheckpointID       string `json:"checkpoint_id"`
	ParentCheckpointID string `json:"parent_checkpoint_id"`
	Step               int    `json:"step"`
	Source             string `json:"source"`
}

// GoalReport is the data of goal: the goal of the thread is judged after a turn, or something came of that.
type GoalReport struct {
	// Status is "evaluating", "satisfied", "continuing", "stood_down" or "stopped"; more may come.
	Status string `json:"status"`
	// Objective is what was to be reached.
	Objective string `json:"objective"`
	// Reason says why the run stood down or stopped; empty for all else.
	Reason string `json:"reason"`
	// Goal is what the thread has now; null when the goal is gone.
	Goal json.RawMessage `json:"goal"`
	// Evaluation is the judgement; null before there is one.
	Evaluation json.RawMessage `json:"evaluation"`
	// Usage are the tokens of the judgement, which are no part of the run's; nil when none were told.
	Usage *Usage `json:"usage"`
}

// String is the report as JSON text.
func (g GoalReport) String() string { return jsonText(g) }

// HostCall is the data of host_call: a question to the host.
type HostCall struct {
	// CallID is what the answer names.
	CallID uint64 `json:"call_id"`
	// Kind is "tool", "model", "guardrail", "middleware", "sandbox" or "memory".
	Kind string `json:"kind"`
	// Name is the tool's, the model's, the guardrail's or the middleware's; of a sandbox or a memory, what is to be done.
	Name string `json:"name"`
	// Args are the tool's arguments, the model's request, the call that a [Guardrail] is asked about, what a middleware is asked about ([MiddlewareQuestion]), or what is
	// to be done about what.
	Args json.RawMessage `json:"args"`
	// ToolCallID is the id that the model gave the tool call that is asked for, or asked about; else empty.
	ToolCallID string `json:"tool_call_id"`
	// TaskID is the task call for which a subagent asks; empty when the run itself asks. It comes with the event.
	TaskID string `json:"-"`
	// DeadlineMS is how long the host has, from the event on.
	DeadlineMS int64 `json:"deadline_ms"`
	// IdempotencyKey is the same when the same call is asked again, by another process perhaps.
	IdempotencyKey string `json:"idempotency_key"`
}

// String is the call as JSON text.
func (c HostCall) String() string { return jsonText(c) }

// HostCallCancelled is the data of host_call_cancelled.
type HostCallCancelled struct {
	CallID uint64 `json:"call_id"`
	Reason string `json:"reason"`
}

// Custom is the data of custom: what a tool emitted while it ran.
type Custom struct {
	ToolCallID string          `json:"tool_call_id"`
	Value      json.RawMessage `json:"value"`
}

// String is the event's data as JSON text.
func (c Custom) String() string { return jsonText(c) }

// Gap is the data of gap: events that a lossy queue dropped.
type Gap struct {
	FirstSeq uint64 `json:"first_seq"`
	LastSeq  uint64 `json:"last_seq"`
	Dropped  uint64 `json:"dropped"`
}

// Log is the data of log: a warning of the library, with a stable code.
type Log struct {
	Level   string `json:"level"`
	Code    string `json:"code"`
	Message string `json:"message"`
	// RunID and ThreadID say what it is about; empty if it is about neither.
	RunID    string `json:"run_id"`
	ThreadID string `json:"thread_id"`
}

// MiddlewareRecord is the data of [EventMiddleware]: something that a middleware did and that is worth a record.
type MiddlewareRecord struct {
	// Tag is what it is about: "skill_activation", "skill_secrets"; more may come.
	Tag string `json:"tag"`
	// Action is what was done.
	Action string `json:"action"`
	// Changes are the facts; secrets are named in them and never shown.
	Changes Object `json:"changes"`
}

// AgentAssembled is the data of [EventAgentAssembled].
type AgentAssembled struct {
	// Descriptor is what the agent turned out to be (schema "assembly_descriptor").
	Descriptor json.RawMessage `json:"descriptor"`
	// Metadata is what runs of the agent are labelled with: model_name, agent_name, thinking_enabled and more.
	Metadata Object `json:"metadata"`
}

// TaskStarted is the data of [EventTaskStarted].
type TaskStarted struct {
	// TaskID is the model's id of the task call. It may come again in a later run.
	TaskID string `json:"task_id"`
	// SubagentType is the name of the subagent.
	SubagentType string `json:"subagent_type"`
	// Description is what the agent calls the work; may be empty.
	Description string `json:"description"`
	// ModelName is the model that the subagent uses; may be empty.
	ModelName string `json:"model_name"`
}

// String is the event's data as JSON text.
func (s TaskStarted) String() string { return jsonText(s) }

// TaskRunning is the data of [EventTaskRunning].
type TaskRunning struct {
	// TaskID is the model's id of the task call.
	TaskID string `json:"task_id"`
	// Message is a reply or a tool result of the subagent.
	Message Message `json:"message"`
	// MessageIndex counts them from 1.
	MessageIndex uint64 `json:"message_index"`
	// Usage is the sum of all model calls of the subagent so far; nil when none told of any.
	Usage *Usage `json:"usage"`
	// ModelName is the model that the subagent uses; may be empty.
	ModelName string `json:"model_name"`
}

// String is the event's data as JSON text, with the message in the parts that its type has.
func (r TaskRunning) String() string { return jsonText(r) }

// TaskEnd is the data of the event that ends a delegation: exactly one for each that started.
type TaskEnd struct {
	// TaskID is the model's id of the task call.
	TaskID string `json:"task_id"`
	// Result is the whole result; empty without one.
	Result string `json:"result,omitempty"`
	// Error says why there is none; empty with one.
	Error string `json:"error,omitempty"`
	// StopReason is the limit that ended the work early: "token_capped", "turn_capped" or "loop_capped"; empty when none did.
	StopReason string `json:"stop_reason,omitempty"`
	// Scope of a cancelled one is "task" when it alone was ended, "run" when its run was.
	Scope string `json:"scope,omitempty"`
	// Reason is what was given with the cancel; may be empty.
	Reason string `json:"reason,omitempty"`
	// Usage is the sum of all model calls of the subagent; nil when none told of any.
	Usage *Usage `json:"usage"`
	// ModelName is the model that the subagent used; may be empty.
	ModelName string `json:"model_name"`
}

// String is the event's data as JSON text.
func (e TaskEnd) String() string { return jsonText(e) }

// Message is a message in canonical form, in the parts that programs look at.
type Message struct {
	// Type is "human", "ai", "system" or "tool".
	Type string `json:"type"`
	ID   string `json:"id"`
	// Name is a tool's, or a speaker's.
	Name string `json:"name"`
	// Content is text or a list of content blocks; see Text.
	Content json.RawMessage `json:"content"`
	// ToolCalls are what an ai message asks for.
	ToolCalls []ToolCall `json:"tool_calls"`
	// ToolCallID is the call that a tool message answers.
	ToolCallID string `json:"tool_call_id"`
	// Status of a tool message is "success" or "error".
	Status string `json:"status"`
}

// String is the message as JSON text, in the parts that this type has.
func (m Message) String() string { return jsonText(m) }

// Text is the text of the message: its content if that is text, or its text blocks joined.
func (m *Message) Text() string {
	var text string
	if json.Unmarshal(m.Content, &text) == nil {
		return text
	}
	var blocks []json.RawMessage
	if json.Unmarshal(m.Content, &blocks) != nil {
		return ""
	}
	var all strings.Builder
	for _, block := range blocks {
		var typed struct {
			Text string `json:"text"`
		}
		if json.Unmarshal(block, &text) == nil {
			all.WriteString(text)
		} else if json.Unmarshal(block, &typed) == nil {
			all.WriteString(typed.Text)
		}
	}
	return all.String()
}

// ToolCall is a tool that a model wants called.
type ToolCall struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitempty"`
}

// String is the call as JSON text.
func (c ToolCall) String() string { return jsonText(c) }

// How a run ended.
const (
	// StatusSuccess: with an answer.
	StatusSuccess = "success"
	// StatusError: it failed; Result.Error says how.
	StatusError = "error"
	// StatusInterrupted: it was cancelled.
	StatusInterrupted = "interrupted"
)

// Result is how a run ended, and the data of run_end.
type Result struct {
	RunID    string `json:"run_id"`
	ThreadID string `json:"thread_id"`
	// Status is one of the Status... constants.
	Status string `json:"status"`
	// CheckpointID is the thread's newest checkpoint.
	CheckpointID string `json:"checkpoint_id"`
	// Steps counts model calls and sets of tool calls.
	Steps int   `json:"steps"`
	Usage Usage `json:"usage"`
	// SubagentUsage are the tokens of its delegations, which are no part of Usage; nil when there were none.
	SubagentUsage *Usage `json:"subagent_usage"`
	// Message is the agent's last message, if the run succeeded.
	Message *Message `json:"message"`
	// HumanInput is what the run asked the user, if it ended with a question.
	HumanInput json.RawMessage `json:"human_input"`
	// StopReason is which limit ended the run early, though it succeeded; empty if none did.
	StopReason string `json:"stop_reason"`
	// Error is why it failed; nil otherwise.
	Error *Error `json:"error"`
	// CancelReason is why it was cancelled; may be empty.
	CancelReason string `json:"cancel_reason"`

	raw json.RawMessage
}

// Text is the text of the agent's last message; empty if there is none.
func (r *Result) Text() string {
	if r.Message == nil {
		return ""
	}
	return r.Message.Text()
}

// String is the result as the library wrote it.
func (r Result) String() string {
	if r.raw == nil {
		return jsonText(r)
	}
	return string(r.raw)
}

// JSON is the result as the library wrote it.
func (r *Result) JSON() json.RawMessage { return r.raw }

// Err is nil for a run that succeeded, its error for one that failed, and an error that is [ErrCancelled] for one that was
// cancelled.
func (r *Result) Err() error {
	switch {
	case r.Status == StatusSuccess:
		return nil
	case r.Error != nil:
		return r.Error
	default:
		return &Error{Code: ErrCancelled, Status: -502, Message: "the run was cancelled: " + r.CancelReason}
	}
}

// jsonText is for people to read: fmt shows the JSON that these types hold as numbers.
func jsonText(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
