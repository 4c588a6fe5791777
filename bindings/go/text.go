// Documents: how Go values become the JSON text that the library reads.

package fawn

import (
	"encoding/json"
	"fmt"
	"unsafe"
)

// Object is a JSON object written in place. Any other type that encoding/json can marshal does as well.
type Object = map[string]any

// encode gives the JSON text of a document. Text that is JSON already stays as it is, byte for byte, and is not copied:
// the library reads it during the call only.
func encode(document any) (string, error) {
	text, given, err := marshal(document)
	if err == nil && !given {
		text = "{}"
	}
	return text, err
}

// marshal is encode for those who want to know whether there is a document: nil is none, of whatever type it is.
func marshal(document any) (text string, given bool, err error) {
	switch is := document.(type) {
	case nil:
		return "", false, nil
	case string:
		return is, true, nil
	case json.RawMessage:
		return view(is), is != nil, nil
	case []byte:
		return view(is), is != nil, nil
	}
	out, err := json.Marshal(document)
	if err != nil {
		return "", false, fmt.Errorf("fawn: the document cannot become JSON: %w", err)
	}
	// null is no document anywhere; a nil map, slice or pointer becomes it.
	return view(out), string(out) != "null", nil
}

// view reads bytes as a string without copying them. They must not change while the string is in use.
func view(text []byte) string {
	return unsafe.String(unsafe.SliceData(text), len(text))
}
