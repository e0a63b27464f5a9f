package millstream

import (
	"reflect"

	"millstream/internal/calls"
	"millstream/internal/columns"
)

type kind uint8

const (
	scalarKind kind = iota
	tableKind
)

// function is one function of the plugin.
type function struct {
	name               string
	kind               kind
	arguments, results []columns.Field
	volatile           bool
	skipsNulls         bool // the host keeps rows with nulls back
	column             string
	call               func(rows int, arguments []columns.Column, out *output) *calls.Error
}

// output is what a call makes.
type output struct {
	builders  []columns.Builder
	inputRows []uint32 // of a table function
	rowErrors calls.RowErrors
}

var functions []*function

func register(name string, kind kind, options []Option) *function {
	for _, other := range functions {
		if other.name == name {
			panic("function `" + name + "` is registered twice")
		}
	}
	f := &function{name: name, kind: kind, column: "value"}
	for _, option := range options {
		option(f)
	}
	functions = append(functions, f)
	return f
}

// run computes a function from buffers to buffers.
func (f *function) run(rows int, buffers [][]byte) (*output, *calls.Error) {
	out := &output{builders: columns.NewBuilders(f.results)}
	failure := calls.Guard(f.name, func() *calls.Error {
		if failure := f.call(rows, columns.Read(f.arguments, rows, buffers), out); failure != nil {
			return failure
		}
		if f.kind == tableKind {
			rows = len(out.inputRows)
		}
		return calls.Even(f.name, out.builders, rows)
	})
	return out, failure
}

// parameter is an argument of a function.
func parameter[T any](f *function, name string) columns.Codec {
	codec := columns.For(reflect.TypeFor[T](), name)
	f.arguments = append(f.arguments, codec.Field)
	return codec
}

// eachRow goes over the rows of a call.
func eachRow(rows int, call func(row int) *calls.Error) *calls.Error {
	for row := range rows {
		if row%256 == 255 {
			calls.Breathe()
		}
		if failure := call(row); failure != nil {
			return failure
		}
	}
	return nil
}
