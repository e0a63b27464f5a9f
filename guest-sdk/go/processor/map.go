package processor

import (
	"iter"
	"reflect"
	"unsafe"

	"millstream/internal/columns"
)

// Map is any number of rows for each key, each under a map key of its own.
type Map[M comparable, T any] struct {
	description
	keyRow, row columns.Row
}

// NewMap declares a variable. The state id is the author's name for what the columns mean.
func NewMap[M comparable, T any](name, stateID string, options ...Option) *Map[M, T] {
	d, row := describe[T](name, stateID, mapKind, options)
	keyRow := columns.RowOf(reflect.TypeFor[M](), "key")
	d.mapKey = keyRow.Fields
	return &Map[M, T]{d, keyRow, row}
}

type mapEntry[T any] struct {
	value                    T
	present, stored, changed bool
}

type heldMap[M comparable, T any] struct {
	keyRow, row *columns.Row
	entries     map[M]*mapEntry[T]
	order       []M // every map key that was ever there, once
	length      int
	cleared     bool
}

func (m *Map[M, T]) of(key Holder) *heldMap[M, T] {
	return state(&m.description, key, func(stored *entries, begin, end int) *heldMap[M, T] {
		held := &heldMap[M, T]{keyRow: &m.keyRow, row: &m.row, entries: make(map[M]*mapEntry[T], end-begin)}
		for place := begin; place < end; place++ {
			mapKey := loadRow[M](&m.keyRow, stored.mapKeys, place)
			value := loadRow[T](&m.row, stored.columns, place)
			held.entries[mapKey] = &mapEntry[T]{value: value, present: true, stored: true}
			held.order = append(held.order, mapKey)
		}
		held.length = end - begin
		return held
	})
}

// Get is the row under a map key; false where there is none.
func (m *Map[M, T]) Get(key Holder, mapKey M) (T, bool) {
	if entry := m.of(key).entries[mapKey]; entry != nil && entry.present {
		return entry.value, true
	}
	var none T
	return none, false
}

// Len is how many rows the key has.
func (m *Map[M, T]) Len(key Holder) int { return m.of(key).length }

// All are the key's rows: those that were stored, in the host's order, then new ones.
func (m *Map[M, T]) All(key Holder) iter.Seq2[M, T] {
	held := m.of(key)
	return func(yield func(M, T) bool) {
		for _, mapKey := range held.order {
			if entry := held.entries[mapKey]; entry.present && !yield(mapKey, entry.value) {
				return
			}
		}
	}
}

// Put writes the row under a map key.
func (m *Map[M, T]) Put(key Holder, mapKey M, value T) {
	held := m.of(key)
	entry := held.entries[mapKey]
	if entry == nil {
		entry = &mapEntry[T]{}
		held.entries[mapKey] = entry
		held.order = append(held.order, mapKey)
	}
	if !entry.present {
		held.length++
	}
	entry.value, entry.present, entry.changed = value, true, true
}

// Remove takes the row under a map key away; one that is not there is no error.
func (m *Map[M, T]) Remove(key Holder, mapKey M) {
	held := m.of(key)
	if entry := held.entries[mapKey]; entry != nil && entry.present {
		entry.present, entry.changed = false, true
		held.length--
	}
}

// Clear takes all rows of the key away.
func (m *Map[M, T]) Clear(key Holder) {
	held := m.of(key)
	held.cleared = true
	for _, entry := range held.entries {
		entry.present, entry.stored, entry.changed = false, false, false
	}
	held.length = 0
}

func (h *heldMap[M, T]) flush(key uint32, out *changes) {
	if h.cleared {
		out.cleared = append(out.cleared, key)
	}
	for _, mapKey := range h.order {
		entry := h.entries[mapKey]
		if !entry.changed {
			continue
		}
		if entry.present {
			h.keyRow.Store(out.putMapKeys, unsafe.Pointer(&mapKey))
			h.row.Store(out.putRows, unsafe.Pointer(&entry.value))
			out.keyOfPut = append(out.keyOfPut, key)
		} else if entry.stored {
			h.keyRow.Store(out.removed, unsafe.Pointer(&mapKey))
			out.keyOfRemoved = append(out.keyOfRemoved, key)
		}
	}
}
