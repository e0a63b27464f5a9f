// Package transaction is for sinks whose rows are seen once or not at all. A plugin that imports it registers all its
// sinks here.
//
// A writer makes its rows durable in Prepare. The host keeps the token with the batch; Commit comes when the batch is
// done, in any instance, and once more if it is not known whether it came.
package transaction

import (
	"fmt"

	"millstream/internal/calls"
	"millstream/internal/sinks"
	"millstream/sink"
)

// Writer writes one partition of one batch.
type Writer[R any] interface {
	sink.Writer[R]
	// Prepare makes the rows durable and seen by nobody; before Close. The token, of at most 64 KiB, names them.
	Prepare() ([]byte, error)
}

// Code is a sink, and the second phase of its batches.
type Code[R any] struct {
	sink.Code[R]
	// Commit lets prepared rows be seen. Once more is no error.
	Commit func(target sink.Target, token []byte) error
	// Abort drops prepared rows. Those that are gone are no error.
	Abort func(target sink.Target, token []byte) error
}

// Register adds a sink, whose Open gives a Writer of this package.
func Register[R any](name string, code Code[R]) {
	made := sink.Made(name, code.Code, func(writer sink.Writer[R]) ([]byte, error) {
		preparing, can := writer.(Writer[R])
		if !can {
			return nil, fmt.Errorf("the writer of `%s` has no method Prepare", name)
		}
		return preparing.Prepare()
	})
	settle := func(call func(target sink.Target, token []byte) error) func(sinks.Target, []byte) *calls.Error {
		return func(target sinks.Target, token []byte) *calls.Error {
			return sinks.Of(name, func() error { return call(sink.Of(target), token) })
		}
	}
	made.Commit, made.Abort = settle(code.Commit), settle(code.Abort)
	sinks.Registered = append(sinks.Registered, made)
}
