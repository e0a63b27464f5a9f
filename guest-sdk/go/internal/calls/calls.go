// Package calls has what can go wrong in a call, and the guard around code of authors.
package calls

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"millstream/internal/columns"
)

// Fault says who must act on an error of a whole call.
type Fault uint8

// The faults, in the order in which they cross.
const (
	InvalidInput Fault = iota
	Unavailable
	Internal
)

// Error is why a whole call was refused.
type Error struct {
	Fault   Fault
	Message string
}

func (e *Error) Error() string { return e.Message }

// RowError is why one row could not be computed.
type RowError struct {
	Row     int
	Message string
}

// RowErrors are the rows that failed, ascending.
type RowErrors []RowError

// Failed says whether the row is the one that failed last.
func (e RowErrors) Failed(row int) bool { return len(e) > 0 && e[len(e)-1].Row == row }

// Add lets a row fail; the first message of a row stays. False where it had failed.
func (e *RowErrors) Add(name string, row int, message string) bool {
	if e.Failed(row) {
		return false
	}
	if n := len(*e); n > 0 && (*e)[n-1].Row > row {
		panic(fmt.Sprintf("`%s` lets row %d fail after row %d", name, row, (*e)[n-1].Row))
	}
	*e = append(*e, RowError{row, message})
	return true
}

// Of sorts an author's error: nil where it is of the row only, and then the row has failed.
func (e *RowErrors) Of(name string, row int, err error) *Error {
	var whole *Error
	if errors.As(err, &whole) {
		return whole
	}
	e.Add(name, row, err.Error())
	return nil
}

// Guard runs an author's code; a panic becomes an error with Go's own stack.
func Guard(name string, code func() *Error) (failure *Error) {
	defer func() {
		if reason := recover(); reason != nil {
			text := fmt.Sprintf("`%s` panicked: %v\n%s", name, reason, fromPanic(string(debug.Stack())))
			failure = &Error{Internal, text}
		}
	}()
	return code()
}

// fromPanic leaves out what Go and this package do after a panic: the first call is the author's.
func fromPanic(stack string) string {
	_, calls, found := strings.Cut(stack, "\npanic(")
	for range 2 {
		if _, rest, more := strings.Cut(calls, "\n"); found && more {
			calls = rest
		}
	}
	if !found || calls == "" {
		return stack
	}
	return calls
}

// Refuse makes an error of the author's.
func Refuse(format string, values ...any) *Error {
	return &Error{Internal, fmt.Sprintf(format, values...)}
}

// Even is nil where all columns have so many rows.
func Even(name string, builders []columns.Builder, rows int) *Error {
	if column, found, uneven := columns.Uneven(builders, rows); uneven {
		return Refuse("`%s` gave %d values in `%s` where there are %d rows", name, found, column, rows)
	}
	return nil
}

// Breathe is called between rows now and then. In a component it is where garbage is collected.
var Breathe = func() {}
