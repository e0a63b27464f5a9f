package millstream

import (
	"fmt"
	"reflect"

	"millstream/internal/calls"
	"millstream/internal/columns"
)

// Field is an argument or a column of a function that works on whole batches.
type Field = columns.Field

// Batch is one call of such a function: columns in, builders out.
type Batch struct {
	// Rows is the number of argument rows.
	Rows      int
	f         *function
	arguments []columns.Column
	out       *output
}

// ReadColumn is a column of the arguments.
type ReadColumn = columns.Column

// Builder makes a column of the results.
type Builder = columns.Builder

// Fixed is what values of fixed width are in Go.
type Fixed = columns.Fixed

// Values are all values of an argument of fixed width, until the end of the call. At nulls they mean nothing.
func Values[T Fixed](column *ReadColumn) []T { return columns.Values[T](column) }

// Append adds a value of fixed width to a result.
func Append[T Fixed](builder *Builder, value T) { columns.Append(builder, value) }

// Slots adds so many values of fixed width to a result, all 0, to be written through the slice.
func Slots[T Fixed](builder *Builder, rows int) []T { return columns.Slots[T](builder, rows) }

// FieldOf is the field of a Go type, named as arguments are: FieldOf[Decimal]("price,decimal(10,2)").
func FieldOf[T any](name string) Field { return columns.For(reflect.TypeFor[T](), name).Field }

// ScalarBatch registers a function of SQL that has one value per row, and computes a whole batch at a time. When an
// argument is of a Null type, the function gets nulls in all arguments, else rows with nulls do not reach it.
func ScalarBatch(name string, arguments []Field, result Field, call func(*Batch) error, options ...Option) {
	result.Nullable = true
	batch(register(name, scalarKind, options), arguments, []Field{result}, call)
}

// TableBatch is the same for a function that has any number of rows per row.
func TableBatch(name string, arguments, results []Field, call func(*Batch) error, options ...Option) {
	batch(register(name, tableKind, options), arguments, results, call)
}

func batch(f *function, arguments, results []Field, call func(*Batch) error) {
	f.arguments, f.results, f.skipsNulls = arguments, results, true
	for _, argument := range arguments {
		if argument.Nullable {
			f.skipsNulls = false
		}
	}
	f.call = func(rows int, arguments []columns.Column, out *output) *calls.Error {
		err := call(&Batch{Rows: rows, f: f, arguments: arguments, out: out})
		if err == nil {
			return nil
		}
		if whole, is := err.(*calls.Error); is {
			return whole
		}
		return calls.Refuse("%v", err)
	}
}

// Argument is a column of the arguments, from 0.
func (b *Batch) Argument(number int) *ReadColumn {
	if uint(number) >= uint(len(b.arguments)) {
		panic(fmt.Sprintf("argument %d of `%s`, which has %d arguments", number, b.f.name, len(b.arguments)))
	}
	return &b.arguments[number]
}

// Result is a column of the results, from 0.
func (b *Batch) Result(number int) *Builder {
	if uint(number) >= uint(len(b.out.builders)) {
		panic(fmt.Sprintf("result %d of `%s`, which has %d results", number, b.f.name, len(b.out.builders)))
	}
	return &b.out.builders[number]
}

// Emit makes a row of what was added to each result of a table function: one of this argument row. Rows ascend.
func (b *Batch) Emit(row int) {
	b.check(row)
	if n := len(b.out.inputRows); n > 0 && int(b.out.inputRows[n-1]) > row {
		panic(fmt.Sprintf("`%s` gives a row for argument row %d after %d", b.f.name, row, b.out.inputRows[n-1]))
	}
	if b.out.rowErrors.Failed(row) {
		columns.ShortenAll(b.out.builders, len(b.out.inputRows))
		return
	}
	if failure := calls.Even(b.f.name, b.out.builders, len(b.out.inputRows)+1); failure != nil {
		panic(failure.Message)
	}
	b.out.inputRows = append(b.out.inputRows, uint32(row))
}

// Fail lets a row fail. A scalar's value becomes null, rows that were emitted for it are taken back. Rows ascend.
func (b *Batch) Fail(row int, message string) {
	b.check(row)
	isNew := b.out.rowErrors.Add(b.f.name, row, message)
	if b.f.kind == tableKind {
		n := len(b.out.inputRows)
		for n > 0 && int(b.out.inputRows[n-1]) >= row {
			n--
		}
		b.out.inputRows = b.out.inputRows[:n]
		columns.ShortenAll(b.out.builders, n)
	} else if value := &b.out.builders[0]; isNew {
		value.Shorten(value.Len())
		if value.Len() == row {
			value.AppendNull()
		} else if value.Len() > row {
			value.SetNull(row)
		}
	}
}

func (b *Batch) check(row int) {
	if uint(row) >= uint(b.Rows) {
		panic(fmt.Sprintf("row %d of a call of `%s`, which has %d rows", row, b.f.name, b.Rows))
	}
}
