package abi

import (
	"unsafe"

	"millstream/internal/calls"
	"millstream/internal/columns"
)

// Record is memory of an answer, in words of four bytes; it begins at a multiple of eight.
type Record []uint32

// New makes a record, kept until the host has read the answer.
func New(words int) Record {
	memory := make([]uint64, words/2+1)
	retained = append(retained, memory)
	return unsafe.Slice((*uint32)(unsafe.Pointer(&memory[0])), words)
}

// Address is where the host finds the record.
func (r Record) Address() uint32 {
	if len(r) == 0 {
		return uint32(uintptr(unsafe.Pointer(&arena.nothing)))
	}
	return uint32(uintptr(unsafe.Pointer(&r[0])))
}

// Bytes puts a list of bytes at a place.
func (r Record) Bytes(at int, bytes []byte) {
	r[at], r[at+1] = uint32(uintptr(unsafe.Pointer(&arena.nothing))), uint32(len(bytes))
	if len(bytes) > 0 {
		retained = append(retained, bytes)
		r[at] = uint32(uintptr(unsafe.Pointer(&bytes[0])))
	}
}

// Text puts a string at a place.
func (r Record) Text(at int, text string) {
	r.Bytes(at, unsafe.Slice(unsafe.StringData(text), len(text)))
}

// Numbers puts a buffer of indices at a place.
func (r Record) Numbers(at int, numbers []uint32) {
	r.Bytes(at, unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(numbers))), len(numbers)*4))
}

// List puts a list of `count` records of `words` words at a place and gives its memory.
func (r Record) List(at, count, words int) []Record {
	memory := New(count * words)
	r[at], r[at+1] = memory.Address(), uint32(count)
	items := make([]Record, count)
	for i := range items {
		items[i] = memory[i*words : (i+1)*words]
	}
	return items
}

// Batch puts a batch at a place: three words.
func (r Record) Batch(at, rows int, builders []columns.Builder) {
	buffers := columns.Buffers(builders)
	r[at] = uint32(rows)
	for i, item := range r.List(at+1, len(buffers), 2) {
		item.Bytes(0, buffers[i])
	}
}

// RowErrors puts a list of row errors at a place.
func (r Record) RowErrors(at int, errors calls.RowErrors) {
	for i, item := range r.List(at, len(errors), 3) {
		item[0] = uint32(errors[i].Row)
		item.Text(1, errors[i].Message)
	}
}

// Failure is the answer of a call that was refused, for results of any type.
func Failure(failure *calls.Error, words int) uint32 {
	r := New(words)
	r[0], r[1] = 1, uint32(failure.Fault)
	r.Text(2, failure.Message)
	return r.Address()
}

// Fields puts a list of fields in pre-order at a place.
func (r Record) Fields(at int, fields []columns.Field) {
	var flat []*columns.Field
	var flatten func(fields []columns.Field)
	flatten = func(fields []columns.Field) {
		for i := range fields {
			flat = append(flat, &fields[i])
			flatten(fields[i].Children)
		}
	}
	flatten(fields)
	for i, item := range r.List(at, len(flat), 6) {
		item.Text(0, flat[i].Name)
		item.Text(2, flat[i].Format)
		if flat[i].Nullable {
			item[4] = 1
		}
		item[5] = uint32(len(flat[i].Children))
	}
}

// Memory looks at bytes that the host wrote; they are good until Release.
func Memory(address, length uint32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(uintptr(address))), length)
}

// Words looks at 32-bit numbers that the host wrote.
func Words(address, count uint32) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(uintptr(address))), count)
}

// Buffers are the buffers of a batch that the host wrote.
func Buffers(address, count uint32) [][]byte {
	pairs := Words(address, 2*count)
	buffers := make([][]byte, count)
	for i := range buffers {
		buffers[i] = Memory(pairs[2*i], pairs[2*i+1])
	}
	return buffers
}
