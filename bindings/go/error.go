// Errors of the library.

package fawn

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"fawn/bindings/go/internal/cabi"
)

// Error is what the library refused or failed with.
//
// errors.Is(err, code) holds for the code of the error; errors.As finds the rest.
type Error struct {
	// Code says what kind of failure it is. One of the Err... constants.
	Code Code `json:"code"`
	// Status is the number of the code in the C header, negative; 4 for ErrGone.
	Status int `json:"status"`
	// Message says in words, for a person, what went wrong.
	Message string `json:"message"`
	// Path is a JSON pointer into the document that was passed; empty when that is not at fault.
	Path string `json:"path,omitempty"`
	// Retryable says whether the same call may succeed later.
	Retryable bool `json:"retryable"`
	// HTTPStatus is what a model endpoint answered with; 0 when none did.
	HTTPStatus int `json:"http_status,omitempty"`
	// ProviderCode is the model endpoint's own short name for what went wrong; empty when it gave none.
	ProviderCode string `json:"provider_code,omitempty"`
	// Cause says what lay behind it, outermost first.
	Cause []string `json:"cause,omitempty"`

	raw   json.RawMessage
	inner error
}

// Error names the code, the message and the place.
func (e *Error) Error() string {
	var text strings.Builder
	text.WriteString("fawn: ")
	text.WriteString(string(e.Code))
	if e.Message != "" {
		text.WriteString(": ")
		text.WriteString(e.Message)
	}
	if e.Path != "" {
		text.WriteString(" (at ")
		text.WriteString(e.Path)
		text.WriteString(")")
	}
	for _, cause := range e.Cause {
		text.WriteString(": ")
		text.WriteString(cause)
	}
	return text.String()
}

// Is tells whether target is the error's code.
func (e *Error) Is(target error) bool {
	code, ok := target.(Code)
	return ok && code == e.Code
}

// Unwrap gives the Go error that lies behind it, such as the context's error when a context cancelled a run.
func (e *Error) Unwrap() error { return e.inner }

// JSON is the error object as the library wrote it; nil if the error was made in Go.
func (e *Error) JSON() json.RawMessage { return e.raw }

// failure makes the error of a status that is not OK, from the error object that came with it.
func failure(status int32, object []byte) error {
	if status > 0 {
		return outcome(status)
	}
	e := &Error{}
	if err := json.Unmarshal(object, e); err != nil {
		// No error object: the library was asked for none.
		e.Code = Code(strings.ToLower(strings.TrimPrefix(cabi.StatusName(status), "FAWN_ERR_")))
		e.Status = int(status)
		return e
	}
	e.raw = object
	return e
}

// outcome is the error of a positive status, where the caller did not expect it.
func outcome(status int32) error {
	if status == cabi.Gone {
		return &Error{Code: ErrGone, Status: cabi.Gone, Message: "the host call is over"}
	}
	return fmt.Errorf("fawn: unexpected outcome %s", cabi.StatusName(status))
}

// check is nil for OK and the error otherwise.
func check(status int32, object []byte) error {
	if status == cabi.OK {
		return nil
	}
	return failure(status, object)
}

// answer is the text of OK, or the error.
func answer(status int32, text []byte) (json.RawMessage, error) {
	if status != cabi.OK {
		return nil, failure(status, text)
	}
	return text, nil
}

// isCode is errors.Is for codes, without an interface conversion at each call.
func isCode(err error, code Code) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == code
}
