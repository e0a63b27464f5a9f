// Package http sends requests to the hosts that the operator grants: `http = ["api.example.com"]` in `[grants.NAME]`.
//
// A request ends with the call's own deadline at the latest, and redirects are answers like any other.
package http

import (
	"fmt"
	"strings"

	"millstream/internal/calls"
)

// Header is a name and a value.
type Header struct{ Name, Value string }

// Request is one request.
type Request struct {
	// Method is GET where it is empty.
	Method  string
	URL     string
	Headers []Header
	Body    []byte
	// TimeoutMS is how long to wait, in milliseconds; 0: as long as the call may take.
	TimeoutMS uint32
}

// Response is what a server answered.
type Response struct {
	Status  int
	Headers []Header
	Body    []byte
}

// Answer is the response to a request, or why there is none: an error of the whole call, unavailable where the server may be
// reached later.
type Answer struct {
	Response *Response
	Err      error
}

// Header is the first value of a header, empty where there is none.
func (r *Response) Header(name string) string {
	for _, header := range r.Headers {
		if strings.EqualFold(header.Name, name) {
			return header.Value
		}
	}
	return ""
}

// OK is an error where the status is none of success: unavailable where the server may answer otherwise later (408, 429,
// 5xx), internal else.
func (r *Response) OK() error {
	fault := calls.Internal
	switch {
	case r.Status >= 200 && r.Status < 300:
		return nil
	case r.Status == 408 || r.Status == 429 || r.Status >= 500:
		fault = calls.Unavailable
	}
	return &calls.Error{Fault: fault, Message: fmt.Sprintf("the server answers %d", r.Status)}
}

// Do sends one request.
func Do(request Request) (*Response, error) {
	answers := Send([]Request{request})
	if len(answers) != 1 {
		return nil, calls.Refuse("the host gave %d answers to one request", len(answers))
	}
	return answers[0].Response, answers[0].Err
}

// Get sends GET to a URL.
func Get(url string) (*Response, error) { return Do(Request{URL: url}) }

// Send sends all requests, at most 256, several at a time, and waits for all; the answers are in the order of the requests.
// In tests, Answering says who answers.
func Send(requests []Request) []Answer { return send(requests) }

// failed is why there is no response, by the kinds of the interface: denied, unreachable, too large.
func failed(kind uint32, reason string) error {
	fault, what := calls.Internal, "denied"
	switch kind {
	case 1:
		fault, what = calls.Unavailable, "unreachable"
	case 2:
		what = "too large"
	}
	return &calls.Error{Fault: fault, Message: what + ": " + reason}
}
