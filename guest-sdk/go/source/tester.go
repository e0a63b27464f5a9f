package source

import (
	"fmt"
	"reflect"
	"unsafe"

	"millstream/internal/columns"
)

// Tester reads a registered source batch by batch, as a host does; no WebAssembly is needed. It is for tests.
type Tester[R any] struct {
	source *source
	// Options are those of the stream.
	Options Options
	// MaxRows is about how many rows a batch may have, 0 for any number.
	MaxRows uint64
	// Offset is where the next batch begins; empty before the first.
	Offset string
	begun  bool
}

// NewTester finds a source by its name.
func NewTester[R any](name string, options Options) *Tester[R] {
	for _, s := range registered {
		if s.name == name {
			return &Tester[R]{source: s, Options: options}
		}
	}
	panic("there is no source `" + name + "`")
}

// Next is the next batch, no rows when nothing is new. A range that has other rows when it is read again is an error.
func (t *Tester[R]) Next() ([]R, error) {
	if !t.begun {
		initial, err := t.source.initial(t.Options)
		if err != nil {
			return nil, err
		}
		t.Offset, t.begun = initial, true
	}
	end, err := t.source.latest(t.Options, t.Offset, Limits{MaxRows: t.MaxRows})
	if err != nil || end == t.Offset {
		return nil, err
	}
	rows, err := t.Read(t.Offset, end)
	if err != nil {
		return nil, err
	}
	if t.source.commit != nil {
		if err := t.source.commit(t.Options, t.Offset); err != nil {
			return nil, err
		}
	}
	t.Offset = end
	return rows, nil
}

// Read gives the rows of a range, from all its pages.
func (t *Tester[R]) Read(start, end string) ([]R, error) {
	first, err := t.pages(start, end)
	if err != nil {
		return nil, err
	}
	second, err := t.pages(start, end)
	if err != nil {
		return nil, err
	}
	if !reflect.DeepEqual(first, second) {
		return nil, fmt.Errorf("(%s, %s] of `%s` has other rows when it is read again", start, end, t.source.name)
	}
	return first, nil
}

func (t *Tester[R]) pages(start, end string) ([]R, error) {
	row, cursor := columns.RowOf(reflect.TypeFor[R](), t.source.columns[0].Name), ""
	var rows []R
	for {
		read, err := t.source.read(t.Options, start, end, cursor)
		if err != nil {
			return nil, err
		}
		from := columns.Read(t.source.columns, read.rows, columns.Buffers(read.builders))
		for i := range read.rows {
			value := new(R)
			row.Load(from, i, unsafe.Pointer(value))
			rows = append(rows, *value)
		}
		if read.next == "" {
			return rows, nil
		}
		if read.next == cursor {
			return nil, fmt.Errorf("the page at `%s` of `%s` leads to itself", cursor, t.source.name)
		}
		cursor = read.next
	}
}
