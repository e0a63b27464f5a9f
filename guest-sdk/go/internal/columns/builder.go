package columns

import (
	"encoding/binary"
	"fmt"
	"unsafe"
)

// Builder makes a column, row after row.
type Builder struct {
	field    *Field
	kind     Type
	width    int
	rows     int
	validity []byte // nil until there is a null
	values   []byte
	offsets  []int32
	children []Builder
}

// NewBuilders makes a builder for each field.
func NewBuilders(fields []Field) []Builder {
	builders := make([]Builder, len(fields))
	for i := range fields {
		field, b := &fields[i], &builders[i]
		b.field, b.kind = field, field.Type()
		b.width = b.kind.width()
		if b.kind == Text || b.kind == Binary || b.kind == List {
			b.offsets = []int32{0}
		}
		b.children = NewBuilders(field.Children)
	}
	return builders
}

// Len is the number of rows so far.
func (b *Builder) Len() int { return b.rows }

func (b *Builder) expect(wanted Type) {
	if b.kind != wanted {
		panic(fmt.Sprintf("column `%s` is built of %s, not %s", b.field.Name, b.kind, wanted))
	}
}

// added counts one more row.
func (b *Builder) added(valid bool) {
	row := b.rows
	b.rows++
	if b.validity == nil {
		if valid {
			return
		}
		b.validity = make([]byte, (row+8)/8, (row+8)/8*2)
		for i := range b.validity {
			b.validity[i] = 0xff
		}
		b.validity[row/8] = 1<<(row%8) - 1
		return
	}
	if row%8 == 0 {
		b.validity = append(b.validity, 0)
	}
	if valid {
		b.validity[row/8] |= 1 << (row % 8)
	}
}

// Append adds a value of fixed width.
func Append[T Fixed](b *Builder, value T) {
	b.expect(fixedType[T]())
	bytes := (*[8]byte)(unsafe.Pointer(&[8]byte{}))
	*(*T)(unsafe.Pointer(bytes)) = value
	b.values = append(b.values, bytes[:unsafe.Sizeof(value)]...)
	b.added(true)
}

// Slots adds so many values of fixed width, all 0, to be written through the slice until the next one is added.
func Slots[T Fixed](b *Builder, rows int) []T {
	b.expect(fixedType[T]())
	before := len(b.values)
	b.values = append(b.values, make([]byte, rows*b.width)...)
	if b.validity == nil {
		b.rows += rows
	} else {
		for range rows {
			b.added(true)
		}
	}
	return slice[T](b.values[before:], rows)
}

func (b *Builder) bit(value bool) {
	if b.rows%8 == 0 {
		b.values = append(b.values, 0)
	}
	if value {
		b.values[b.rows/8] |= 1 << (b.rows % 8)
	}
}

// AppendBool adds a value of BOOLEAN.
func (b *Builder) AppendBool(value bool) {
	b.expect(Bool)
	b.bit(value)
	b.added(true)
}

// AppendText adds a value of STRING.
func (b *Builder) AppendText(value string) {
	b.expect(Text)
	b.values = append(b.values, value...)
	b.offset(len(b.values), true)
}

// AppendBinary adds a value of BINARY.
func (b *Builder) AppendBinary(value []byte) {
	b.expect(Binary)
	b.values = append(b.values, value...)
	b.offset(len(b.values), true)
}

func (b *Builder) offset(end int, valid bool) {
	if end > 1<<31-1 {
		panic("column `" + b.field.Name + "` grows beyond 2 GiB")
	}
	b.offsets = append(b.offsets, int32(end))
	b.added(valid)
}

// Child is what a list's elements or a struct's field are added to.
func (b *Builder) Child(number int) *Builder {
	if uint(number) >= uint(len(b.children)) {
		panic(fmt.Sprintf("child %d of column `%s`, which has %d children", number, b.field.Name, len(b.children)))
	}
	return &b.children[number]
}

// AppendList makes a row of the elements that were added since the last one.
func (b *Builder) AppendList() {
	b.expect(List)
	b.offset(b.children[0].rows, true)
}

// AppendStruct makes a row of the values that were added to each child.
func (b *Builder) AppendStruct() {
	b.expect(Struct)
	for i := range b.children {
		if child := &b.children[i]; child.rows != b.rows+1 {
			panic(fmt.Sprintf("row %d of struct `%s` is made, but field `%s` has %d values", b.rows, b.field.Name,
				child.field.Name, child.rows))
		}
	}
	b.added(true)
}

// AppendNull adds a null.
func (b *Builder) AppendNull() {
	switch b.kind {
	case Bool:
		b.bit(false)
		b.added(false)
	case Text, Binary:
		b.offset(len(b.values), false)
	case List:
		b.offset(int(b.offsets[b.rows]), false)
	case Struct:
		for i := range b.children {
			b.children[i].AppendNull()
		}
		b.added(false)
	default:
		var zeros [16]byte
		b.values = append(b.values, zeros[:b.width]...)
		b.added(false)
	}
}

// SetNull makes a row that is there null.
func (b *Builder) SetNull(row int) {
	if uint(row) >= uint(b.rows) {
		panic(fmt.Sprintf("row %d of column `%s`, which has %d rows", row, b.field.Name, b.rows))
	}
	if b.validity == nil {
		// The last row is null for a moment, which makes the bitmap.
		b.rows--
		b.added(false)
		b.validity[(b.rows-1)/8] |= 1 << ((b.rows - 1) % 8)
	}
	b.validity[row/8] &^= 1 << (row % 8)
}

// Shorten takes all rows from this one on back, and what was added for a row that was never made.
func (b *Builder) Shorten(rows int) {
	rows = min(rows, b.rows)
	for i := range b.children {
		child := rows
		if b.kind == List {
			child = int(b.offsets[rows])
		}
		b.children[i].Shorten(child)
	}
	if rows == b.rows {
		return
	}
	b.rows = rows
	if b.validity != nil {
		b.validity = clipBits(b.validity, rows)
	}
	switch b.kind {
	case Bool:
		b.values = clipBits(b.values, rows)
	case Text, Binary:
		b.values = b.values[:b.offsets[rows]]
	case List, Struct:
	default:
		b.values = b.values[:rows*b.width]
	}
	if b.offsets != nil {
		b.offsets = b.offsets[:rows+1]
	}
}

func clipBits(bits []byte, rows int) []byte {
	bits = bits[:(rows+7)/8]
	if rows%8 != 0 {
		bits[rows/8] &= 1<<(rows%8) - 1
	}
	return bits
}

// Uneven is the name of a column that has not so many rows, and how many it has.
func Uneven(builders []Builder, rows int) (name string, found int, uneven bool) {
	for i := range builders {
		b := &builders[i]
		if b.rows != rows {
			return b.field.Name, b.rows, true
		}
		wanted := rows
		if b.kind == List {
			wanted = int(b.offsets[rows])
		}
		if name, found, uneven = Uneven(b.children, wanted); uneven {
			return name, found, true
		}
	}
	return "", 0, false
}

// ShortenAll takes all rows of these columns from this one on back.
func ShortenAll(builders []Builder, rows int) {
	for i := range builders {
		builders[i].Shorten(rows)
	}
}

// Buffers are the finished buffers, in the order in which they cross.
func Buffers(builders []Builder) [][]byte {
	var buffers [][]byte
	for i := range builders {
		buffers = append(buffers, builders[i].finish()...)
	}
	return buffers
}

func (b *Builder) finish() [][]byte {
	buffers := [][]byte{b.validity}
	if b.offsets != nil {
		buffers = append(buffers, unsafe.Slice((*byte)(unsafe.Pointer(&b.offsets[0])), len(b.offsets)*4))
	}
	if b.kind != List && b.kind != Struct {
		buffers = append(buffers, b.values)
	}
	return append(buffers, Buffers(b.children)...)
}

func (b *Builder) appendDecimal(high int64, low uint64) {
	b.expect(Decimal128)
	b.values = binary.LittleEndian.AppendUint64(b.values, low)
	b.values = binary.LittleEndian.AppendUint64(b.values, uint64(high))
	b.added(true)
}
