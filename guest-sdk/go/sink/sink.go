// Package sink is for sinks of plugins: code that takes the rows of a query's result out into the world (Spark's
// ForeachWriter).
//
//	type order struct {
//		Id   int64
//		Item millstream.Null[string]
//	}
//
//	type orders struct{ lines []string }
//
//	func (o *orders) Process(row order) error {
//		o.lines = append(o.lines, fmt.Sprint(row.Id, row.Item.Value))
//		return nil
//	}
//
//	func (o *orders) Close(failure string) error { return nil }
//
//	func init() {
//		sink.Register("orders", sink.Code[order]{
//			Required: []string{"url"},
//			Open: func(target sink.Target) (sink.Writer[order], bool, error) { return &orders{}, true, nil },
//		})
//	}
//
// For each partition of a batch there is a writer of its own. A batch that was not done comes again with the same number,
// and in each partition the same rows in any order: who remembers (query, partition, batch) writes each row once. Package
// transaction, below this one, is for sinks whose rows are seen once or not at all.
package sink

import (
	"fmt"
	"reflect"
	"unsafe"

	"millstream/internal/calls"
	"millstream/internal/columns"
	"millstream/internal/sinks"
)

// Mode is an output mode.
type Mode uint8

// The output modes.
const (
	Append Mode = iota
	Update
	Complete
)

// Target is what is written: one partition of one batch.
type Target struct {
	// QueryID stays when the query is restarted.
	QueryID   string
	Partition uint32
	Batch     uint64
	// Options are those of the query.
	Options map[string]string
	Mode    Mode
}

// Writer writes one partition of one batch.
type Writer[R any] interface {
	// Process takes a row. An error is about that row, unless it is one of millstream.InvalidInput, Unavailable and
	// Internal.
	Process(row R) error
	// Close comes last; failure is empty where nothing went wrong.
	Close(failure string) error
}

// Code is a sink. R is a struct, whose fields are columns of the result, a type of one column, or AnyRow.
type Code[R any] struct {
	// Column names the column of an R that is no struct; without it the name is `value`.
	Column string
	// Required and Optional are the options that a query must and may give.
	Required, Optional []string
	// Modes are the output modes that it takes; all when left out.
	Modes []Mode
	// Open begins with a partition of a batch. Where wanted is false the writer gets no rows and is closed.
	Open func(target Target) (writer Writer[R], wanted bool, err error)
}

// Register adds a sink.
func Register[R any](name string, code Code[R]) {
	sinks.Registered = append(sinks.Registered, Made(name, code, nil))
}

// Made is for package transaction: prepare makes a token of a writer.
func Made[R any](name string, code Code[R], prepare func(writer Writer[R]) ([]byte, error)) *sinks.Sink {
	made := &sinks.Sink{Name: name, Modes: 7}
	if len(code.Modes) > 0 {
		made.Modes = 0
		for _, mode := range code.Modes {
			made.Modes |= 1 << mode
		}
	}
	for _, option := range code.Required {
		made.Options = append(made.Options, sinks.Option{Name: option, Required: true})
	}
	for _, option := range code.Optional {
		made.Options = append(made.Options, sinks.Option{Name: option})
	}
	load := loader[R](made, code.Column)
	made.Open = func(target sinks.Target, fields []columns.Field) (*sinks.Session, bool, *calls.Error) {
		var writer Writer[R]
		wanted := false
		failure := sinks.Of(name, func() (err error) {
			writer, wanted, err = code.Open(Of(target))
			if err == nil && writer == nil {
				err = fmt.Errorf("`%s` was opened without a writer", name)
			}
			return err
		})
		if failure != nil {
			return nil, false, failure
		}
		session := &sinks.Session{
			Process: func(rows int, buffers [][]byte) (errors calls.RowErrors, failure *calls.Error) {
				failure = calls.Guard(name, func() *calls.Error {
					read := columns.Read(fields, rows, buffers)
					for row := range rows {
						calls.Breathe()
						value, whole := load(fields, read, row)
						if !whole {
							errors.Add(name, row, "it has a null in a column that does not take nulls")
						} else if err := writer.Process(value); err != nil {
							if failure := errors.Of(name, row, err); failure != nil {
								return failure
							}
						}
					}
					return nil
				})
				return errors, failure
			},
			Prepare: func() (token []byte, failure *calls.Error) {
				if prepare == nil {
					return nil, calls.Refuse("`%s` has no transaction", name)
				}
				failure = sinks.Of(name, func() (err error) {
					token, err = prepare(writer)
					return err
				})
				return token, failure
			},
			Close: func(failure string) *calls.Error {
				return sinks.Of(name, func() error { return writer.Close(failure) })
			},
		}
		return session, wanted, nil
	}
	return made
}

// Of is a target as authors see it.
func Of(target sinks.Target) Target {
	return Target{target.QueryID, target.Partition, target.Batch, target.Options, Mode(target.Mode)}
}

// loader says how a row is read, and for a type of known columns which ones those are.
func loader[R any](made *sinks.Sink, column string) func(fields []columns.Field, read []columns.Column, row int) (R, bool) {
	if reflect.TypeFor[R]() == reflect.TypeFor[AnyRow]() {
		return func(fields []columns.Field, read []columns.Column, row int) (value R, whole bool) {
			*any(&value).(*AnyRow) = anyRow(fields, read, row)
			return value, true
		}
	}
	if column == "" {
		column = "value"
	}
	codec := columns.RowOf(reflect.TypeFor[R](), column)
	made.Columns = codec.Fields
	return func(_ []columns.Field, read []columns.Column, row int) (value R, whole bool) {
		whole = codec.Load(read, row, unsafe.Pointer(&value))
		return value, whole
	}
}
