package columns

import (
	"reflect"
	"unsafe"
)

// Row turns rows of several columns into values of one Go type and back: a plain struct has a column for each of its
// fields, every other type is one column.
type Row struct {
	members []Member
	Fields  []Field
}

// IsPlain says whether a type is a struct with a column for each field.
func IsPlain(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t != reflect.TypeFor[Decimal]() && !t.Implements(nullable)
}

// RowOf makes the codec of rows. The name is that of the one column of a type that is no plain struct.
func RowOf(t reflect.Type, name string) Row {
	row := Row{}
	if IsPlain(t) {
		row.members = Members(t)
	} else {
		row.members = []Member{{Codec: For(t, name)}}
	}
	for _, member := range row.members {
		row.Fields = append(row.Fields, member.Field)
	}
	return row
}

// Load writes row number `row` to where a value of the type is; false where a column that must not be null is.
func (r *Row) Load(columns []Column, row int, to unsafe.Pointer) bool {
	for i := range r.members {
		if !r.members[i].Load(&columns[i], row, unsafe.Add(to, r.members[i].offset)) {
			return false
		}
	}
	return true
}

// Store appends the value that is there, one value to each builder.
func (r *Row) Store(builders []Builder, from unsafe.Pointer) {
	for i := range r.members {
		r.members[i].Store(&builders[i], unsafe.Add(from, r.members[i].offset))
	}
}
