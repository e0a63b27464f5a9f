// Package columns has what all kinds of functions stand on: fields of a schema, columns that are read, builders that
// make them, and codecs between columns and Go values.
package columns

import "strings"

// Type is how the values of a column lie in its buffers.
type Type uint8

// The types of columns. Dates are Int32, timestamps Int64.
const (
	Bool Type = iota
	Int8
	Uint8
	Int16
	Uint16
	Int32
	Uint32
	Int64
	Uint64
	Float32
	Float64
	Decimal128
	Text
	Binary
	List
	Struct
)

var names = [...]string{"bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32",
	"float64", "decimal", "text", "binary", "list", "struct"}

func (t Type) String() string { return names[t] }

// width is how many bytes a value of fixed width has, else 0.
func (t Type) width() int {
	return [...]int{0, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 16, 0, 0, 0, 0}[t]
}

// Field is one field of a schema and its children.
type Field struct {
	Name     string
	Format   string // of the Arrow C data interface
	Nullable bool
	Children []Field
}

var formats = map[string]Type{"b": Bool, "c": Int8, "C": Uint8, "s": Int16, "S": Uint16, "i": Int32, "I": Uint32,
	"l": Int64, "L": Uint64, "f": Float32, "g": Float64, "u": Text, "z": Binary, "tdD": Int32, "tsu:UTC": Int64,
	"tsu:": Int64, "+l": List, "+s": Struct}

// Type is how the field's values lie in its buffers.
func (f *Field) Type() Type {
	if strings.HasPrefix(f.Format, "d:") {
		return Decimal128
	}
	t, known := formats[f.Format]
	if !known {
		panic("field `" + f.Name + "` has the format `" + f.Format + "`, which plugins cannot use")
	}
	return t
}
