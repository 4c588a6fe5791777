// Taking a batch of events apart: one pass over its bytes, without parsing what is in the events.
//
// The pass knows strings and brackets, so nothing that a text contains can end an event or name a member of it.

package fawn

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"time"
)

var errBatch = errors.New("fawn: what the queue gave is not a list of events")

// splitBatch takes the JSON array of a take apart. The events share the batch's memory.
func splitBatch(batch []byte) ([]Event, error) {
	s := scanner{text: batch}
	if !s.next('[') {
		return nil, errBatch
	}
	// An event is seldom below 128 bytes.
	events := make([]Event, 0, len(batch)/160+1)
	if s.next(']') {
		return events, nil
	}
	for {
		var before Event
		if len(events) > 0 {
			before = events[len(events)-1]
		}
		event, ok := s.event(&before)
		if !ok {
			return nil, errBatch
		}
		events = append(events, event)
		if s.next(',') {
			continue
		}
		if !s.next(']') {
			return nil, errBatch
		}
		return events, nil
	}
}

type scanner struct {
	text []byte
	at   int
}

func (s *scanner) space() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

// next skips space, and the byte c if it comes then.
func (s *scanner) next(c byte) bool {
	s.space()
	if s.at < len(s.text) && s.text[s.at] == c {
		s.at++
		return true
	}
	return false
}

// event reads one event. Texts that are as in the event before are shared with it: most events of a batch are of one run.
func (s *scanner) event(before *Event) (e Event, ok bool) {
	s.space()
	begin := s.at
	if !s.next('{') {
		return e, false
	}
	for first := true; !s.next('}'); first = false {
		if !first && !s.next(',') {
			return e, false
		}
		name, ok := s.value()
		if !ok || !s.next(':') {
			return e, false
		}
		value, ok := s.value()
		if !ok {
			return e, false
		}
		switch string(name) {
		case `"seq"`:
			e.Seq, _ = strconv.ParseUint(view(value), 10, 64)
		case `"run_id"`:
			e.RunID, ok = text(value, before.RunID)
		case `"thread_id"`:
			e.ThreadID, ok = text(value, before.ThreadID)
		case `"task_id"`:
			e.TaskID, ok = text(value, before.TaskID)
		case `"type"`:
			e.Type, ok = kind(value, before.Type)
		case `"at"`:
			if len(value) > 2 {
				e.At, _ = time.Parse(time.RFC3339, view(value[1:len(value)-1]))
			}
		case `"data"`:
			e.data = value
		}
		if !ok {
			return e, false
		}
	}
	e.Raw = json.RawMessage(s.text[begin:s.at:s.at])
	return e, true
}

// value skips space and gives the value that comes, without looking inside.
func (s *scanner) value() ([]byte, bool) {
	s.space()
	begin := s.at
	for depth := 0; s.at < len(s.text); {
		switch s.text[s.at] {
		case '"':
			if !s.skipString() {
				return nil, false
			}
		case '{', '[':
			depth++
			s.at++
			continue
		case '}', ']':
			depth--
			s.at++
		case ',', ':', ' ', '\t', '\n', '\r':
			s.at++
			if depth == 0 {
				return nil, false
			}
			continue
		default: // a number, true, false or null
			for s.at < len(s.text) && !isEnd[s.text[s.at]] {
				s.at++
			}
		}
		if depth == 0 {
			return s.text[begin:s.at:s.at], true
		}
		if depth < 0 {
			return nil, false
		}
	}
	return nil, false
}

// isEnd tells the bytes that end a number or a word.
var isEnd = [256]bool{',': true, '}': true, ']': true, ' ': true, '\t': true, '\n': true, '\r': true, '"': true, ':': true, '{': true, '[': true}

// skipString goes behind the string that begins here. A quote ends it unless an odd number of backslashes stands before.
func (s *scanner) skipString() bool {
	begin := s.at + 1
	for at := begin; ; {
		next := bytes.IndexByte(s.text[at:], '"')
		if next < 0 {
			return false
		}
		at += next
		slashes := 0
		for at-slashes > begin && s.text[at-slashes-1] == '\\' {
			slashes++
		}
		at++
		if slashes%2 == 0 {
			s.at = at
			return true
		}
	}
}

// text is the value of a JSON string; the same text as before, if it is.
func text(quoted []byte, before string) (string, bool) {
	if len(quoted) < 2 || quoted[0] != '"' {
		return "", string(quoted) == "null"
	}
	plain := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(plain, '\\') >= 0 {
		var text string
		err := json.Unmarshal(quoted, &text)
		return text, err == nil
	}
	if string(plain) == before {
		return before, true
	}
	return string(plain), true
}

// kind is the value of an event's type, without an allocation for those that are known.
func kind(quoted []byte, before string) (string, bool) {
	switch string(quoted) {
	case `"run_start"`:
		return EventRunStart, true
	case `"message_delta"`:
		return EventMessageDelta, true
	case `"model_attempt"`:
		return EventModelAttempt, true
	case `"stream_reset"`:
		return EventStreamReset, true
	case `"message"`:
		return EventMessage, true
	case `"update"`:
		return EventUpdate, true
	case `"values"`:
		return EventValues, true
	case `"usage"`:
		return EventUsage, true
	case `"checkpoint"`:
		return EventCheckpoint, true
	case `"goal"`:
		return EventGoal, true
	case `"host_call"`:
		return EventHostCall, true
	case `"host_call_cancelled"`:
		return EventHostCallCancelled, true
	case `"custom"`:
		return EventCustom, true
	case `"gap"`:
		return EventGap, true
	case `"log"`:
		return EventLog, true
	case `"middleware"`:
		return EventMiddleware, true
	case `"agent_assembled"`:
		return EventAgentAssembled, true
	case `"run_end"`:
		return EventRunEnd, true
	}
	return text(quoted, before)
}
