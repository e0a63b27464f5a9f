// Package millstream is for writing Millstream plugins in Go.
//
// A plugin is a program whose init registers functions, and `millstream plugin build` makes the component:
//
//	package main
//
//	import (
//		"strings"
//
//		"millstream"
//	)
//
//	func words(line string, emit func(string)) error {
//		for word := range strings.FieldsSeq(line) {
//			emit(word)
//		}
//		return nil
//	}
//
//	func init() { millstream.Table1("words", words, "line", millstream.Column("word")) }
//
//	func main() {}
//
// Functions stay ordinary functions of Go: `go test` runs them without any WebAssembly.
//
// # Nulls
//
// An argument of type [Null] gets nulls. Where another argument is null, the function is not called: a scalar's result
// is null, a table function has no rows.
//
// # Errors
//
// An error fails the row; the query says what becomes of it. [InvalidInput], [Unavailable] and [Internal] make errors
// that refuse the whole call. A panic refuses the whole call, with Go's stack in the message.
//
// # Types
//
// bool, int8 to uint64, int (64 bits), float32, float64, string, []byte (binary), [Date], [Timestamp],
// [LocalTimestamp], [Decimal] (its size after the name: "price,decimal(10,2)"), slices (list), structs, [Null] of
// these. A table function whose rows are structs has their fields as columns; the tag `ms:"name"` names a field.
//
// # Memory
//
// Between calls an instance may be thrown away at any time, so memory of a plugin is a cache: output must not depend on
// what earlier calls left there. Goroutines do not outlive a call.
package millstream

import (
	"millstream/internal/calls"
	"millstream/internal/columns"
)

// Date is a DATE: days since 1970-01-01.
type Date = columns.Date

// Timestamp is a TIMESTAMP: microseconds since 1970-01-01 00:00 UTC.
type Timestamp = columns.Timestamp

// LocalTimestamp is a TIMESTAMP_NTZ: the reading of a clock, in microseconds since 1970-01-01 00:00.
type LocalTimestamp = columns.LocalTimestamp

// Decimal is a DECIMAL: the value times 10^scale, as a number of 128 bits.
type Decimal = columns.Decimal

// DecimalOf and DecimalFrom make decimals of numbers that were multiplied by 10^scale.
var (
	DecimalOf   = columns.DecimalOf
	DecimalFrom = columns.DecimalFrom
)

// Null is a value that may be null: Valid says that there is one.
type Null[T any] = columns.Null[T]

// Some is a value that is there.
func Some[T any](value T) Null[T] { return columns.Some(value) }

// InvalidInput refuses the whole call: the data's owner must act.
func InvalidInput(message string) error {
	return &calls.Error{Fault: calls.InvalidInput, Message: message}
}

// Unavailable refuses the whole call: something is not there now, the same call may succeed later.
func Unavailable(message string) error {
	return &calls.Error{Fault: calls.Unavailable, Message: message}
}

// Internal refuses the whole call: the plugin's author must act.
func Internal(message string) error { return &calls.Error{Fault: calls.Internal, Message: message} }

// Option is something that a function may have beside its code.
type Option func(*function)

// Volatile functions are called exactly where the query has them; other calls may be moved, shared and left out.
func Volatile() Option { return func(f *function) { f.volatile = true } }

// Column names the result of a function whose result is no struct; without it the name is `value`. A decimal's size
// stands there too: Column("price,decimal(10,2)").
func Column(name string) Option { return func(f *function) { f.column = name } }
