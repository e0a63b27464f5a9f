// Package sinks has the sinks of a plugin and the one partition of a batch that is being written.
package sinks

import (
	"millstream/internal/calls"
	"millstream/internal/columns"
)

// Target is what is written: one partition of one batch.
type Target struct {
	QueryID   string
	Partition uint32
	Batch     uint64
	Options   map[string]string
	Mode      uint8
}

// Option is an option that a query may give.
type Option struct {
	Name     string
	Required bool
}

// Session is one partition of one batch.
type Session struct {
	Process func(rows int, buffers [][]byte) (calls.RowErrors, *calls.Error)
	Prepare func() ([]byte, *calls.Error)
	Close   func(failure string) *calls.Error
}

// Sink is a sink of the plugin.
type Sink struct {
	Name    string
	Columns []columns.Field
	Modes   uint8
	Options []Option
	// Open begins; wanted says whether there will be rows.
	Open          func(target Target, fields []columns.Field) (session *Session, wanted bool, failure *calls.Error)
	Commit, Abort func(target Target, token []byte) *calls.Error
}

// Registered are all sinks, in the order of their numbers.
var Registered []*Sink

// Opened is what was opened and is not closed.
var Opened *Session

// Numbered finds a sink.
func Numbered(number uint32) (*Sink, *calls.Error) {
	if int(number) >= len(Registered) {
		return nil, calls.Refuse("there is no sink %d", number)
	}
	return Registered[number], nil
}

// Of makes an error of a whole call of an author's error; nil stays nil.
func Of(name string, call func() error) *calls.Error {
	return calls.Guard(name, func() *calls.Error {
		err := call()
		if err == nil {
			return nil
		}
		var none calls.RowErrors
		if failure := none.Of(name, 0, err); failure != nil {
			return failure
		}
		return &calls.Error{Fault: calls.Internal, Message: err.Error()}
	})
}
