// Package source is for sources of plugins: code that rows come from, by ranges of offsets that it makes up itself.
//
//	type number struct {
//		N int64
//	}
//
//	func init() {
//		source.Register("numbers", source.Code[number]{
//			Options: []source.Option{{Name: "count", Required: true}},
//			Initial: func(source.Options) (string, error) { return "0", nil },
//			Latest: func(options source.Options, start string, limits source.Limits) (string, error) {
//				return options.Get("count"), nil
//			},
//			Read: func(options source.Options, start, end, cursor string) (source.Page[number], error) {
//				from, to := must(start), must(end)
//				var rows []number
//				for n := from; n < to; n++ {
//					rows = append(rows, number{n})
//				}
//				return source.Page[number]{Rows: rows}, nil
//			},
//		})
//	}
//
// An offset is a place between rows, as text that only the source understands. The host keeps offsets in its log, and rows
// are read when a range is in it; so a batch that is run again asks for the same range, which must have the same rows. What
// an instance remembers between calls may be lost at any time.
package source

import (
	"reflect"
	"unsafe"

	"millstream/internal/calls"
	"millstream/internal/columns"
)

// Option is an option that a query may give; others are refused before it starts.
type Option struct {
	Name     string
	Required bool
}

// Options are those of a stream, by the names that the source gave them.
type Options map[string]string

// Get is the value of an option, empty where the query does not give it.
func (o Options) Get(name string) string { return o[name] }

// Limits say how far a batch may go.
type Limits struct {
	// Until is an offset that an earlier call answered: not beyond it. Nil: as far as there are rows.
	Until *string
	// MaxRows is about how many rows a batch may have, 0 for any number; one step of the source is always allowed.
	MaxRows uint64
}

// Page is a part of the rows of a range.
type Page[R any] struct {
	Rows []R
	// Next is the cursor that the next page is asked for with, empty when this is the last.
	Next string
}

// Code is a source. A row that is no struct is one column.
type Code[R any] struct {
	// Column names the column of rows that are no structs; without it the name is `value`.
	Column string
	// Options are all options that the source knows.
	Options []Option
	// Initial is where a query begins that has read nothing yet. Asked once in its life.
	Initial func(options Options) (string, error)
	// Latest is the end of a batch that begins at start: start itself when nothing is new. An offset that was left behind
	// never comes again.
	Latest func(options Options, start string, limits Limits) (string, error)
	// Read gives the rows after start up to end, page by page: the first page without a cursor, the next ones with that of the
	// page before.
	Read func(options Options, start, end, cursor string) (Page[R], error)
	// Commit hears that the query has what comes before an offset, for good. It may be nil.
	Commit func(options Options, offset string) error
}

type source struct {
	name    string
	columns []columns.Field
	options []Option
	initial func(options Options) (string, error)
	latest  func(options Options, start string, limits Limits) (string, error)
	read    func(options Options, start, end, cursor string) (page, error)
	commit  func(options Options, offset string) error
}

// page is a part of a range in columns.
type page struct {
	rows     int
	builders []columns.Builder
	next     string
}

var registered []*source

// Register adds a source.
func Register[R any](name string, code Code[R]) {
	if code.Initial == nil || code.Latest == nil || code.Read == nil {
		panic("source `" + name + "` needs Initial, Latest and Read")
	}
	column := code.Column
	if column == "" {
		column = "value"
	}
	row := columns.RowOf(reflect.TypeFor[R](), column)
	s := &source{name: name, columns: row.Fields, options: code.Options, initial: code.Initial, latest: code.Latest,
		commit: code.Commit}
	s.read = func(options Options, start, end, cursor string) (page, error) {
		read, err := code.Read(options, start, end, cursor)
		if err != nil {
			return page{}, err
		}
		made := page{rows: len(read.Rows), builders: columns.NewBuilders(row.Fields), next: read.Next}
		for i := range read.Rows {
			if i%256 == 255 {
				calls.Breathe()
			}
			row.Store(made.builders, unsafe.Pointer(&read.Rows[i]))
		}
		return made, nil
	}
	registered = append(registered, s)
}

// guard runs a source's code; an error that is not of the whole call is its author's.
func (s *source) guard(step string, code func() error) *calls.Error {
	return calls.Guard(s.name+"."+step, func() *calls.Error {
		err := code()
		if err == nil {
			return nil
		}
		if whole, is := err.(*calls.Error); is {
			return whole
		}
		return calls.Refuse("%v", err)
	})
}
