package abi

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"unsafe"

	"millstream/internal/calls"
)

const (
	alignment = 16
	chunkSize = 256 << 10
	// garbage is how much may be allocated between two collections at least.
	garbage = 16 << 20
)

var arena struct {
	chunk   []byte   // aligned, because large allocations are
	used    int      // of chunk
	full    [][]byte // chunks before it, of this call
	size    int      // of all chunks of this call
	last    int      // where the youngest allocation begins
	nothing [alignment]byte
}

// retained are the parts of the answer that the host is about to read.
var retained []any

// early is what the adapter of WASI allocates while Go's runtime starts, before anything can be allocated in Go: its state
// and its stack, for good.
var early struct {
	memory  [256<<10 + alignment]byte
	used    uintptr
	started bool
}

func allocateEarly(size uint32) unsafe.Pointer {
	base := (uintptr(unsafe.Pointer(&early.memory)) + alignment - 1) &^ (alignment - 1)
	place := base + early.used
	early.used += (uintptr(size) + alignment - 1) &^ (alignment - 1)
	if early.used > 256<<10 {
		return nil
	}
	return unsafe.Pointer(place)
}

func init() {
	early.started = true
	debug.SetGCPercent(-1)
	debug.SetMaxStack(16 << 20)
	calls.Breathe = collect
	heap[0].Name = "/memory/classes/heap/objects:bytes"
}

// reallocate is called by the host while nothing may be asked of it.
//
//go:wasmexport cabi_realloc
func reallocate(old unsafe.Pointer, oldSize, align, size uint32) unsafe.Pointer {
	if size == 0 {
		return unsafe.Pointer(&arena.nothing)
	}
	if !early.started {
		return allocateEarly(size)
	}
	rounded := (int(size) + alignment - 1) &^ (alignment - 1)
	if arena.used+rounded > len(arena.chunk) {
		if len(arena.chunk) > 0 {
			arena.full = append(arena.full, arena.chunk)
		}
		wanted := max(rounded, chunkSize, arena.size)
		arena.chunk = make([]byte, (wanted+65535)&^65535)
		arena.used = 0
		arena.size += len(arena.chunk)
	}
	place := arena.chunk[arena.used : arena.used+rounded]
	arena.used += rounded
	if oldSize > 0 {
		copy(place, unsafe.Slice((*byte)(old), min(oldSize, size)))
	}
	return unsafe.Pointer(unsafe.SliceData(place))
}

// Release gives the memory of a call back. Nothing may be asked of the host here either.
func Release() {
	retained = retained[:0]
	if len(arena.full) > 0 {
		// The next call finds one chunk that is large enough for what this one took.
		arena.chunk, arena.full = make([]byte, arena.size), nil
	}
	arena.size = len(arena.chunk)
	arena.used = 0
}

var (
	heap [1]metrics.Sample
	live uint64 // after the last collection
)

// collect runs the collector when enough was allocated.
func collect() {
	metrics.Read(heap[:])
	if heap[0].Value.Uint64() < live+max(live, garbage) {
		return
	}
	runtime.GC()
	metrics.Read(heap[:])
	live = heap[0].Value.Uint64()
}

// Enter begins a call.
func Enter() { collect() }

// String copies text that the host wrote.
func String(address, length uint32) string { return string(Memory(address, length)) }
