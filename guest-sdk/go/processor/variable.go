package processor

import (
	"fmt"
	"reflect"
	"time"
	"unsafe"

	"millstream/internal/columns"
)

// Variable is a state variable of a processor.
type Variable interface {
	place(number int)
	describe() *description
}

type kind uint8

const (
	valueKind kind = iota
	listKind
	mapKind
)

type description struct {
	name, stateID   string
	kind            kind
	mapKey, columns []columns.Field
	ttl             time.Duration
	number          int
}

func (d *description) place(number int)       { d.number = number }
func (d *description) describe() *description { return d }

// held is what a variable has for one key, while the key's code runs.
type held interface {
	flush(key uint32, out *changes)
}

// Option is something that a variable may have.
type Option func(*description)

// TTL lets entries live so long after they were last written, in processing time; without it they live for ever.
func TTL(ttl time.Duration) Option { return func(d *description) { d.ttl = ttl } }

func describe[T any](name, stateID string, kind kind, options []Option) (description, columns.Row) {
	row := columns.RowOf(reflect.TypeFor[T](), "value")
	d := description{name: name, stateID: stateID, kind: kind, columns: row.Fields, number: -1}
	for _, option := range options {
		option(&d)
	}
	return d, row
}

// state is what the variable has for the key, loaded when it is asked for first.
func state[H held](d *description, holder Holder, load func(stored *entries, begin, end int) H) H {
	c := holder.context()
	if d.number < 0 || d.number >= len(c.state) || c.processor.variables[d.number].describe() != d {
		panic(fmt.Sprintf("variable `%s` is not among the Variables of processor `%s`", d.name, c.processor.name))
	}
	if c.state[d.number] == nil {
		stored := &c.call.state[d.number]
		begin, end := rangeOf(stored.keyOfEntry, c.number)
		c.state[d.number] = load(stored, begin, end)
	}
	return c.state[d.number].(H)
}

func loadRow[T any](row *columns.Row, from []columns.Column, place int) T {
	value := new(T)
	mustLoad(row, from, place, unsafe.Pointer(value))
	return *value
}

// Value is one row or none for each key.
type Value[T any] struct {
	description
	row columns.Row
}

// NewValue declares a variable. The state id is the author's name for what the columns mean.
func NewValue[T any](name, stateID string, options ...Option) *Value[T] {
	d, row := describe[T](name, stateID, valueKind, options)
	return &Value[T]{d, row}
}

type heldValue[T any] struct {
	row              *columns.Row
	value            T
	present, changed bool
}

func (v *Value[T]) of(key Holder) *heldValue[T] {
	return state(&v.description, key, func(stored *entries, begin, end int) *heldValue[T] {
		held := &heldValue[T]{row: &v.row, present: begin < end}
		if held.present {
			held.value = loadRow[T](&v.row, stored.columns, begin)
		}
		return held
	})
}

// Get is the key's value; false where it has none.
func (v *Value[T]) Get(key Holder) (T, bool) {
	held := v.of(key)
	return held.value, held.present
}

// Set writes the key's value.
func (v *Value[T]) Set(key Holder, value T) {
	held := v.of(key)
	held.value, held.present, held.changed = value, true, true
}

// Clear takes the key's value away.
func (v *Value[T]) Clear(key Holder) {
	held := v.of(key)
	var none T
	held.value, held.present, held.changed = none, false, true
}

func (h *heldValue[T]) flush(key uint32, out *changes) {
	if !h.changed {
		return
	}
	if !h.present {
		out.cleared = append(out.cleared, key)
		return
	}
	h.row.Store(out.putRows, unsafe.Pointer(&h.value))
	out.keyOfPut = append(out.keyOfPut, key)
}

// List is any number of rows for each key, in the order in which they were appended.
type List[T any] struct {
	description
	row columns.Row
}

// NewList declares a variable. The state id is the author's name for what the columns mean.
func NewList[T any](name, stateID string, options ...Option) *List[T] {
	d, row := describe[T](name, stateID, listKind, options)
	return &List[T]{d, row}
}

type heldList[T any] struct {
	row     *columns.Row
	items   []T
	stored  int // how many of them the host has already
	cleared bool
}

func (l *List[T]) of(key Holder) *heldList[T] {
	return state(&l.description, key, func(stored *entries, begin, end int) *heldList[T] {
		held := &heldList[T]{row: &l.row, stored: end - begin}
		for place := begin; place < end; place++ {
			held.items = append(held.items, loadRow[T](&l.row, stored.columns, place))
		}
		return held
	})
}

// All are the key's rows; the slice is not to be changed.
func (l *List[T]) All(key Holder) []T { return l.of(key).items }

// Append adds a row at the end.
func (l *List[T]) Append(key Holder, value T) {
	held := l.of(key)
	held.items = append(held.items, value)
}

// Clear takes all rows of the key away.
func (l *List[T]) Clear(key Holder) {
	held := l.of(key)
	held.items, held.stored, held.cleared = nil, 0, true
}

func (h *heldList[T]) flush(key uint32, out *changes) {
	if h.cleared {
		out.cleared = append(out.cleared, key)
	}
	for i := h.stored; i < len(h.items); i++ {
		h.row.Store(out.putRows, unsafe.Pointer(&h.items[i]))
		out.keyOfPut = append(out.keyOfPut, key)
	}
}
