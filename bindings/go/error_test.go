package fawn_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"

	fawn "fawn/bindings/go"
)

func TestErrorsTellCodeAndPlace(t *testing.T) {
	_, err := fawn.NewRuntime(fawn.Object{"databsae": fawn.Object{}})
	wrapped := fmt.Errorf("at start: %w", err)
	if !errors.Is(wrapped, fawn.ErrUnknownMember) || errors.Is(wrapped, fawn.ErrWrongType) {
		t.Errorf("errors.Is: %v", wrapped)
	}
	var e *fawn.Error
	if !errors.As(wrapped, &e) {
		t.Fatalf("errors.As: %v", wrapped)
	}
	if e.Code != fawn.ErrUnknownMember || e.Status != -122 || e.Path != "/databsae" || e.Retryable || e.Message == "" {
		t.Errorf("%#v", e)
	}
	if !strings.HasPrefix(string(e.JSON()), `{"code":"unknown_member","status":-122,"message":"`) {
		t.Errorf("JSON: %s", e.JSON())
	}
	if text := e.Error(); !strings.Contains(text, "unknown_member") || !strings.Contains(text, "(at /databsae)") {
		t.Errorf("text: %s", text)
	}
	if fawn.StatusName(e.Status) != "FAWN_ERR_UNKNOWN_MEMBER" {
		t.Errorf("name: %s", fawn.StatusName(e.Status))
	}
}

func TestDocuments(t *testing.T) {
	type document struct {
		Existing []string   `json:"existing"`
		Updates  [][]string `json:"updates"`
	}
	const text = `{"existing":["a"],"updates":[["b","a"]]}`
	for _, given := range []any{
		text, []byte(text), fawn.Object{"existing": []string{"a"}, "updates": [][]string{{"b", "a"}}},
		document{[]string{"a"}, [][]string{{"b", "a"}}},
	} {
		merged, err := fawn.Reduce("artifacts", given)
		if err != nil || string(merged) != `["a","b"]` {
			t.Errorf("%T: %s, %v", given, merged, err)
		}
	}
	if _, err := fawn.Reduce("artifacts", func() {}); err == nil {
		t.Error("a function became JSON")
	}
	// Text passes as it is, whatever is wrong with it; the library says what.
	for text, code := range map[string]fawn.Code{
		"": fawn.ErrJSONSyntax, "{": fawn.ErrJSONSyntax, "\xff{}": fawn.ErrNotUTF8, "[]": fawn.ErrWrongType,
		strings.Repeat("[", 200): fawn.ErrJSONDepth,
	} {
		if _, err := fawn.ConvertMessages(text); !errors.Is(err, code) {
			t.Errorf("%.20q: %v", text, err)
		}
	}
	for _, none := range []any{nil, fawn.Object(nil), []byte(nil), json.RawMessage(nil), (*document)(nil), map[string]int(nil)} {
		if _, err := fawn.ConvertMessages(none); !errors.Is(err, fawn.ErrMissingMember) {
			t.Errorf("%T: %v", none, err)
		}
	}
	converted, err := fawn.ConvertMessages(fawn.Object{"messages": []string{"hi"}})
	if err != nil || unmarshal[[]fawn.Message](t, converted)[0].Text() != "hi" {
		t.Errorf("%s, %v", converted, err)
	}
}

func TestDescriptorsAreComparedAndDrawn(t *testing.T) {
	agent := func(model string) fawn.Object {
		return fawn.Object{
			"namespace": "deerflow", "agent_name": "a", "effective_model": model, "model_parameters": fawn.Object{},
			"thinking_enabled": false, "reasoning_effort": nil, "base_prompt_hash": "p", "tools": []any{}, "middlewares": []any{},
			"deferred_tool_names": []any{}, "enabled_skills": []any{}, "effective_policies": fawn.Object{},
		}
	}
	diff, err := fawn.DiffDescriptors(fawn.Object{"before": agent("fast"), "after": agent("slow")})
	if err != nil || !strings.Contains(string(diff), `"what":"model_changed"`) {
		t.Errorf("%s, %v", diff, err)
	}
	_, err = fawn.DiffDescriptors(fawn.Object{"before": nil, "after": agent("m")})
	var refused *fawn.Error
	if !errors.As(err, &refused) || !errors.Is(err, fawn.ErrWrongType) || refused.Path != "/before" {
		t.Errorf("%v", err)
	}
	drawn, err := fawn.DrawDescriptor(agent("m"))
	if err != nil || !strings.HasPrefix(string(drawn), `{"mermaid":"flowchart TD\n`) {
		t.Errorf("%s, %v", drawn, err)
	}
	if _, err := fawn.DrawDescriptor(nil); !errors.Is(err, fawn.ErrMissingMember) {
		t.Errorf("%v", err)
	}
}

func TestTheLibraryAboutItself(t *testing.T) {
	if !regexp.MustCompile(`^\d+\.\d+\.\d+`).MatchString(fawn.Version()) || fawn.ABIVersion() != 1 {
		t.Errorf("version %s, ABI %d", fawn.Version(), fawn.ABIVersion())
	}
	if _, err := fawn.Describe("no such topic"); !errors.Is(err, fawn.ErrUnknownVariant) {
		t.Errorf("%v", err)
	}
}

// What holds JSON prints as text, by value and by pointer; a code prints as its name.
func TestPrinting(t *testing.T) {
	message := fawn.Message{Type: "ai", Content: json.RawMessage(`"hi"`)}
	delta := fawn.MessageDelta{ToolCall: &fawn.ToolCallDelta{Name: "f"}}
	text := json.RawMessage(`{"a":1}`)
	for _, test := range []struct {
		value any
		want  string
	}{
		{fawn.ErrThreadBusy, "thread_busy"},
		{fawn.Result{Message: &message}, `"content":"hi"`}, {&fawn.Result{Message: &message}, `"content":"hi"`},
		{message, `"content":"hi"`}, {&message, `"content":"hi"`}, {[]fawn.Message{message}, `"content":"hi"`},
		{fawn.MessageStored{Message: message}, `"content":"hi"`},
		{fawn.ToolCall{Args: text}, `{"a":1}`}, {fawn.HostCall{Args: text}, `{"a":1}`}, {&fawn.Custom{Value: text}, `{"a":1}`},
		{fawn.Update{Update: map[string]json.RawMessage{"title": text}}, `{"a":1}`},
		{fawn.Values{Values: map[string]json.RawMessage{"title": text}}, `{"a":1}`},
		{&delta, `"name":"f"`}, {fawn.Event{Raw: text}, `{"a":1}`},
		{fawn.ModelAttempt{Error: &fawn.Error{Code: "model_server"}}, `"code":"model_server"`},
	} {
		for _, verb := range []string{"%v", "%s"} {
			if said := fmt.Sprintf(verb, test.value); !strings.Contains(said, test.want) {
				t.Errorf("%s of %T: %s", verb, test.value, said)
			}
		}
	}
	if said := fmt.Sprintf("%s", fawn.ErrThreadBusy); said != "thread_busy" {
		t.Errorf("%s", said)
	}
	rt := newRuntime(t, nil)
	result, err := newAgent(t, rt, scripted(says("hi"))).Run(t.Context(), newThread(t, rt), fawn.Ask("go"))
	if err != nil || fmt.Sprint(result) != string(result.JSON()) {
		t.Errorf("%v, %v", result, err)
	}
}

// The Err... constants are the library's list, no code more and none less, and StatusName knows their numbers.
func TestCodesAreTheLibrarysList(t *testing.T) {
	list := unmarshal[struct {
		Errors []struct {
			Code   string
			Status int
		}
		Outcomes []struct {
			Name   string
			Status int
		}
	}](t, must(fawn.Describe("errors")))
	var theirs, ours []string
	for _, e := range list.Errors {
		theirs = append(theirs, e.Code)
		if name := "FAWN_ERR_" + strings.ToUpper(e.Code); fawn.StatusName(e.Status) != name {
			t.Errorf("%d is %s, not %s", e.Status, fawn.StatusName(e.Status), name)
		}
	}
	for _, outcome := range list.Outcomes {
		if fawn.StatusName(outcome.Status) != outcome.Name {
			t.Errorf("%d is %s, not %s", outcome.Status, fawn.StatusName(outcome.Status), outcome.Name)
		}
		if outcome.Name == "FAWN_GONE" { // the one that is told as an error
			theirs = append(theirs, "gone")
		}
	}
	file := must(parser.ParseFile(token.NewFileSet(), "codes.go", nil, 0))
	ast.Inspect(file, func(node ast.Node) bool {
		if literal, ok := node.(*ast.BasicLit); ok && !strings.Contains(literal.Value, " ") {
			ours = append(ours, strings.Trim(literal.Value, `"`))
		}
		return true
	})
	slices.Sort(theirs)
	slices.Sort(ours)
	if !slices.Equal(theirs, ours) {
		t.Errorf("library: %v\nbinding: %v", theirs, ours)
	}
}
