package columns

import (
	"fmt"
	"unsafe"
)

// Column is a column of a batch. Values that it gives stay good after the call.
type Column struct {
	field    *Field
	kind     Type
	rows     int
	validity []byte // a bit per row, 1 is a value; empty where there are no nulls
	values   []byte
	text     string // a copy of values, of text columns
	offsets  []int32
	children []Column
}

// Reader hands the buffers of a batch out, one after the other.
type Reader struct {
	buffers [][]byte
	taken   int
}

// NewReader reads from the first buffer on.
func NewReader(buffers [][]byte) *Reader { return &Reader{buffers: buffers} }

func (r *Reader) next(field *Field) []byte {
	if r.taken >= len(r.buffers) {
		panic("there is no buffer for `" + field.Name + "`")
	}
	r.taken++
	return r.buffers[r.taken-1]
}

// slice looks at bytes as values of T; they are aligned, as all memory that the host asks for.
func slice[T any](bytes []byte, count int) []T {
	var zero T
	if count == 0 {
		return nil
	}
	if len(bytes) < count*int(unsafe.Sizeof(zero)) {
		panic(fmt.Sprintf("a buffer has %d bytes, too few for %d values", len(bytes), count))
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(bytes))), count)
}

// Read lays columns over the buffers, one for each field.
func Read(fields []Field, rows int, buffers [][]byte) []Column {
	reader := NewReader(buffers)
	read := make([]Column, len(fields))
	for i := range fields {
		read[i].read(&fields[i], rows, reader)
	}
	return read
}

func (c *Column) read(field *Field, rows int, reader *Reader) {
	c.field, c.kind, c.rows = field, field.Type(), rows
	c.validity = reader.next(field)
	expect(field, c.validity, len(c.validity) == 0 || len(c.validity) >= (rows+7)/8)
	c.children = make([]Column, len(field.Children))
	if c.kind == Text || c.kind == Binary || c.kind == List {
		bytes := reader.next(field)
		if rows > 0 {
			c.offsets = slice[int32](bytes, rows+1)
		} else {
			c.offsets = []int32{0}
		}
	}
	switch c.kind {
	case List:
		c.children[0].read(&field.Children[0], int(c.offsets[rows]), reader)
	case Struct:
		for i := range c.children {
			c.children[i].read(&field.Children[i], rows, reader)
		}
	case Text:
		// One copy for the whole column: strings that a plugin keeps stay what they are.
		c.values = reader.next(field)
		c.text = string(c.values)
	case Binary:
		c.values = append([]byte(nil), reader.next(field)...)
	case Bool:
		c.values = reader.next(field)
		expect(field, c.values, len(c.values) >= (rows+7)/8)
	default:
		c.values = reader.next(field)
		expect(field, c.values, len(c.values) >= rows*c.kind.width())
	}
}

func expect(field *Field, bytes []byte, fits bool) {
	if !fits {
		panic(fmt.Sprintf("a buffer of `%s` has %d bytes, which are too few", field.Name, len(bytes)))
	}
}

func (c *Column) check(row int, wanted Type) {
	if c.kind != wanted {
		panic(fmt.Sprintf("column `%s` is %s, not %s", c.field.Name, c.kind, wanted))
	}
	if uint(row) >= uint(c.rows) {
		panic(fmt.Sprintf("row %d of column `%s`, which has %d rows", row, c.field.Name, c.rows))
	}
}

// Len is the number of rows.
func (c *Column) Len() int { return c.rows }

// IsNull says whether a row has no value.
func (c *Column) IsNull(row int) bool {
	c.check(row, c.kind)
	return len(c.validity) > 0 && c.validity[row>>3]>>(row&7)&1 == 0
}

// Bool is a row of a column of BOOLEAN.
func (c *Column) Bool(row int) bool {
	c.check(row, Bool)
	return c.values[row>>3]>>(row&7)&1 == 1
}

// Text is a row of a column of STRING.
func (c *Column) Text(row int) string {
	c.check(row, Text)
	return c.text[c.offsets[row]:c.offsets[row+1]]
}

// Binary is a row of a column of BINARY.
func (c *Column) Binary(row int) []byte {
	c.check(row, Binary)
	end := c.offsets[row+1]
	return c.values[c.offsets[row]:end:end]
}

// List is a row of a column of ARRAY: rows from begin to before end of Child(0).
func (c *Column) List(row int) (begin, end int) {
	c.check(row, List)
	return int(c.offsets[row]), int(c.offsets[row+1])
}

// Child is a list's elements, or a field of a struct, which has the struct's rows.
func (c *Column) Child(number int) *Column {
	if uint(number) >= uint(len(c.children)) {
		panic(fmt.Sprintf("child %d of column `%s`, which has %d children", number, c.field.Name, len(c.children)))
	}
	return &c.children[number]
}

// Fixed is what values of fixed width are in Go.
type Fixed interface {
	int8 | uint8 | int16 | uint16 | int32 | uint32 | int64 | uint64 | float32 | float64
}

func fixedType[T Fixed]() Type {
	var zero T
	switch any(zero).(type) {
	case int8:
		return Int8
	case uint8:
		return Uint8
	case int16:
		return Int16
	case uint16:
		return Uint16
	case int32:
		return Int32
	case uint32:
		return Uint32
	case int64:
		return Int64
	case uint64:
		return Uint64
	case float32:
		return Float32
	default:
		return Float64
	}
}

// Values are all values of a column of fixed width, until the end of the call. At nulls they mean nothing.
func Values[T Fixed](c *Column) []T {
	if wanted := fixedType[T](); c.kind != wanted {
		c.check(0, wanted)
	}
	return slice[T](c.values, c.rows)
}
