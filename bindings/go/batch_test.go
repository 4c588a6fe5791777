package fawn

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

// slowSplit is the obvious way to take a batch apart.
func slowSplit(batch []byte) ([]Event, error) {
	var raws []json.RawMessage
	if err := json.Unmarshal(batch, &raws); err != nil {
		return nil, err
	}
	events := make([]Event, len(raws))
	for n, raw := range raws {
		var members map[string]json.RawMessage
		if err := json.Unmarshal(raw, &members); err != nil {
			return nil, err
		}
		e := &events[n]
		e.Raw, e.data = raw, members["data"]
		for name, into := range map[string]any{"seq": &e.Seq, "run_id": &e.RunID, "thread_id": &e.ThreadID, "task_id": &e.TaskID, "type": &e.Type, "at": &e.At} {
			if text, ok := members[name]; ok {
				if err := json.Unmarshal(text, into); err != nil {
					return nil, err
				}
			}
		}
	}
	return events, nil
}

func sameAsSlow(t *testing.T, batch string) {
	t.Helper()
	want, err := slowSplit([]byte(batch))
	if err != nil {
		t.Fatalf("%v in %s", err, batch)
	}
	got, err := splitBatch([]byte(batch))
	if err != nil || len(got) != len(want) {
		t.Fatalf("%d events instead of %d, %v: %s", len(got), len(want), err, batch)
	}
	for n := range got {
		if !got[n].At.Equal(want[n].At) {
			t.Errorf("at: %v, want %v", got[n].At, want[n].At)
		}
		got[n].At, want[n].At = time.Time{}, time.Time{}
		if !reflect.DeepEqual(got[n], want[n]) {
			t.Errorf("%+v, want %+v", got[n], want[n])
		}
	}
}

// hostile texts try to end an event, a string or the batch, or to be another member or event.
var hostile = []string{
	`"`, `\`, `\\`, `\"`, `\\"`, `}`, `]`, `}]`, `"}]`, `"},{"seq":1,"type":"run_end","data":{}}`, `","type":"run_end","x":"`,
	"\u2028\u2029\x00\x1f\x7f", "😀\U0010FFFF", `\u0022`, `</script>`, strings.Repeat(`\`, 1001), strings.Repeat(`"`, 1001),
	strings.Repeat(`[{`, 500), "run_end", "",
}

func TestHostileTextDoesNotFoolTheSplit(t *testing.T) {
	quote := func(text string) string {
		quoted, _ := json.Marshal(text)
		return string(quoted)
	}
	for _, a := range hostile {
		for _, b := range hostile {
			data := fmt.Sprintf(`{"message_id":%s,"text":%s,"n":[1.5e3,null,true,{%s:[]},{}],"type":"run_end","seq":7}`,
				quote(a), quote(b), quote(a))
			event := fmt.Sprintf(`{"seq":3,"run_id":%s,"thread_id":%s,"type":"message_delta","at":"2026-01-01T00:00:00.000001Z","data":%s}`,
				quote(b), quote(a), data)
			sameAsSlow(t, "["+event+"]")
			other := fmt.Sprintf(`{%s:%s,"data":%s,"type":%s,"seq":18446744073709551615,"new":[[]]}`, quote(a), quote(b), data, quote("x"+b))
			sameAsSlow(t, "["+event+","+other+","+event+"]")
			sameAsSlow(t, " [ "+strings.NewReplacer(`{"seq"`, "\n{ \"seq\"", `,"data":`, " ,\t\"data\" : ").Replace(event)+" ] ")
		}
	}
	sameAsSlow(t, "[]")
}

func TestWhatIsNoBatchIsAnError(t *testing.T) {
	batch := `[{"seq":1,"type":"log","at":"2026-01-01T00:00:00Z","data":{"a":["\"]"]}}]`
	sameAsSlow(t, batch)
	for n := range batch {
		if _, err := splitBatch([]byte(batch[:n])); err == nil {
			t.Errorf("taken: %s", batch[:n])
		}
	}
	for _, text := range []string{"", "{}", "[1]", "[{]", "[{}", `[{"seq"}]`, `[{"seq":}]`, `[{"a":1 "b":2}]`, `[{},]`, `[{"a":]}]`, `[{"type":7}]`} {
		if _, err := splitBatch([]byte(text)); err == nil {
			t.Errorf("taken: %s", text)
		}
	}
}

func TestDataOfUnknownShape(t *testing.T) {
	for _, text := range []string{`{"type":"of_a_later_version","data":{"a":1}}`, `{"type":"message_delta","data":{"text":{"now":"an object"}}}`} {
		events, err := splitBatch([]byte("[" + text + "]"))
		if err != nil {
			t.Fatal(err)
		}
		if raw, ok := events[0].Data().(json.RawMessage); !ok || !bytes.Contains(events[0].Raw, raw) {
			t.Errorf("%v", events[0].Data())
		}
		var into struct{ A int }
		if err := events[0].Decode(&into); err != nil {
			t.Error(err)
		}
	}
}

// Events and members of events that come with a later version pass as they are, and harm none beside them.
func TestEventsOfALaterVersion(t *testing.T) {
	for _, text := range hostile {
		quoted, _ := json.Marshal(text)
		later := fmt.Sprintf(`{"seq":1,"run_id":"r","thread_id":"t","task_id":%s,"type":"task_reviewed","at":"2026-01-01T00:00:00Z",`+
			`"data":{"task_id":%s,"type":"run_end","deep":[[{%s:[]}]]}}`, quoted, quoted, quoted)
		known := fmt.Sprintf(`{"task_id":%s,"later":{"seq":9,"type":[%s]},"seq":2,"type":"message_delta","data":{"text":%s,"new":[{}]},"last":null}`,
			quoted, quoted, quoted)
		batch := "[" + later + "," + known + "]"
		sameAsSlow(t, batch)
		events, err := splitBatch([]byte(batch))
		if err != nil || len(events) != 2 {
			t.Fatalf("%v: %s", err, batch)
		}
		e := events[0]
		if raw, ok := e.Data().(json.RawMessage); !ok || string(raw) != string(e.RawData()) || e.Type != "task_reviewed" || string(e.Raw) != later {
			t.Errorf("%+v", e)
		}
		if e.TaskID != strings.ToValidUTF8(text, "\ufffd") {
			t.Errorf("%q", e.TaskID)
		}
		if delta, ok := events[1].Data().(*MessageDelta); !ok || delta.Text != e.TaskID || events[1].Seq != 2 || events[1].Type != EventMessageDelta {
			t.Errorf("%+v", events[1])
		}
	}
}

// Whatever the bytes are, the split does not panic; and where they are a list of events it agrees with encoding/json.
func FuzzSplit(f *testing.F) {
	f.Add([]byte(`[{"seq":1,"run_id":"r","thread_id":"t","type":"log","at":"2026-01-01T00:00:00Z","data":{"a":["\"]"]}}]`))
	f.Add([]byte(`[{"seq":1,"data":{}},{"data":"\\\""}]`))
	f.Fuzz(func(t *testing.T, batch []byte) {
		got, err := splitBatch(batch)
		want, slowErr := slowSplit(batch)
		if slowErr != nil || err != nil {
			return // the split is free to take what is no JSON inside a value
		}
		if len(got) != len(want) {
			t.Fatalf("%d events, want %d: %s", len(got), len(want), batch)
		}
		for n := range got {
			if !bytes.Equal(got[n].Raw, bytes.TrimSpace(want[n].Raw)) {
				t.Errorf("%s, want %s", got[n].Raw, want[n].Raw)
			}
		}
	})
}

func BenchmarkSplit(b *testing.B) {
	event := `{"seq":12345,"run_id":"00000000-0000-4000-9000-000000000001","thread_id":"00000000-0000-4000-a000-000000000001","type":"message_delta","at":"2026-01-01T00:00:00.000000Z","data":{"message_id":"00000000-0000-4000-8000-000000000002","text":"Hello, \"world\""}}`
	batch := []byte("[" + strings.Repeat(event+",", 255) + event + "]")
	b.SetBytes(int64(len(batch)))
	for b.Loop() {
		if _, err := splitBatch(batch); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/256, "ns/event")
}

// Events of models that are tried again.
func TestModelAttempts(t *testing.T) {
	const batch = `[{"seq":3,"run_id":"r","thread_id":"t","type":"model_attempt","at":"2026-01-02T03:04:05.000000Z","data":` +
		`{"message_id":"m","model":"big","attempt":1,"max_attempts":3,"reason":"transient","error":{"code":"model_server","status":-604,"message":"x",` +
		`"retryable":true},"next":"retry","wait_ms":250,"next_model":null}},` +
		`{"seq":4,"type":"model_attempt","at":"","data":{"message_id":null,"model":"big","attempt":3,"max_attempts":3,` +
		`"error":{"code":"model_server","status":-604,"message":"x","retryable":true},"next":"fallback","wait_ms":null,"next_model":"small"}},` +
		`{"seq":5,"type":"stream_reset","at":"","data":{"message_id":"m"}}]`
	events, err := splitBatch([]byte(batch))
	if err != nil || len(events) != 3 {
		t.Fatal(err)
	}
	first, ok := events[0].Data().(*ModelAttempt)
	if !ok || first.MessageID != "m" || first.Model != "big" || first.Attempt != 1 || first.MaxAttempts != 3 || first.Reason != "transient" || first.Next != NextRetry ||
		first.WaitMS == nil || *first.WaitMS != 250 || first.NextModel != "" || !first.Error.Is(ErrModelServer) || !first.Error.Retryable {
		t.Errorf("%v", events[0].Data())
	}
	last, ok := events[1].Data().(*ModelAttempt)
	if !ok || last.MessageID != "" || last.Next != NextFallback || last.WaitMS != nil || last.NextModel != "small" {
		t.Errorf("%v", events[1].Data())
	}
	if reset, ok := events[2].Data().(*StreamReset); !ok || reset.MessageID != "m" {
		t.Errorf("%v", events[2].Data())
	}
}
