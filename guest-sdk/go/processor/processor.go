// Package processor is for stateful processors of plugins: code that sees all rows of a key together with what it stored
// under that key before.
//
//	type visit struct{ Page string }
//
//	var visits = processor.NewValue[int64]("visits", "visits/1")
//
//	func init() {
//		processor.Register("visits", processor.Code[string, visit, int64, struct{}]{
//			Key:       "user",
//			Variables: []processor.Variable{visits},
//			Modes:     processor.Update,
//			Process: func(k *processor.Key[string, int64], rows []visit) error {
//				seen, _ := visits.Get(k)
//				visits.Set(k, seen+int64(len(rows)))
//				k.Emit(seen + int64(len(rows)))
//				return nil
//			},
//		})
//	}
//
// State and timers are the host's. A call gets those of its keys; what the code changes is visible to it at once, and to
// the host when it returns. Where it returns an error, the key fails and nothing of it is kept.
package processor

import (
	"fmt"
	"reflect"
	"unsafe"

	"millstream/internal/calls"
	"millstream/internal/columns"
)

// Time says which time a processor's timers go by.
type Time uint8

// The times.
const (
	NoTimers Time = iota
	ProcessingTime
	EventTime
)

// Modes are the output modes that a query with a processor may have.
type Modes uint8

// The output modes.
const (
	Append Modes = 1 << iota
	Update
	Complete
)

// Code is a processor: the types of its key, its input rows, its output rows and its initial rows. A type that is no
// struct is one column; struct{} has none.
type Code[K, I, O, N any] struct {
	// Key, Input, Output and Initial name the columns of types that are no structs; without it the name is `value`.
	Key, Input, Output, Initial string
	// Variables are all state variables that the code uses.
	Variables []Variable
	Time      Time
	Modes     Modes
	// Process takes the rows of a key, in the order in which they came; there is at least one.
	Process func(key *Key[K, O], rows []I) error
	// Expire takes a key whose timers are due: when, in milliseconds since 1970. The host deletes them afterwards.
	Expire func(key *Key[K, O], due []int64) error
	// Initialise takes the initial rows of a key, before the first batch.
	Initialise func(key *Key[K, O], rows []N) error
}

// Key is one key of a call.
type Key[K, O any] struct {
	*Context
	// Value is the key itself.
	Value K
	emit  func(row O)
}

// Emit gives an output row.
func (k *Key[K, O]) Emit(row O) { k.emit(row) }

type processor struct {
	name                        string
	key, input, output, initial []columns.Field
	variables                   []Variable
	time                        Time
	modes                       Modes
	steps                       [3]func(call *invocation) *calls.Error // process, expire, initialise
}

var registered []*processor

var stepNames = [3]string{"Process", "Expire", "Initialise"}

// Register adds a processor.
func Register[K, I, O, N any](name string, code Code[K, I, O, N]) {
	named := func(name string) string {
		if name == "" {
			return "value"
		}
		return name
	}
	keys := columns.RowOf(reflect.TypeFor[K](), named(code.Key))
	input := columns.RowOf(reflect.TypeFor[I](), named(code.Input))
	output := columns.RowOf(reflect.TypeFor[O](), named(code.Output))
	initial := columns.RowOf(reflect.TypeFor[N](), named(code.Initial))
	p := &processor{name: name, key: keys.Fields, input: input.Fields, output: output.Fields, initial: initial.Fields,
		variables: code.Variables, time: code.Time, modes: code.Modes}
	for number, variable := range p.variables {
		variable.place(number)
	}
	each := func(call *invocation, step func(key *Key[K, O]) error) *calls.Error {
		value := new(O)
		for number := range call.keyCount {
			calls.Breathe()
			key := &Key[K, O]{Context: call.context(p, number)}
			mustLoad(&keys, call.keys, number, unsafe.Pointer(&key.Value))
			var emitted []O
			key.emit = func(row O) { emitted = append(emitted, row) }
			if err := step(key); err != nil {
				if failure := call.keyErrors.Of(name, number, err); failure != nil {
					return failure
				}
				continue
			}
			for _, *value = range emitted {
				output.Store(call.output, unsafe.Pointer(value))
				call.keyOfOutput = append(call.keyOfOutput, uint32(number))
			}
			key.Context.flush()
		}
		return nil
	}
	if code.Process != nil {
		p.steps[0] = func(call *invocation) *calls.Error {
			return each(call, func(key *Key[K, O]) error {
				if rows := rowsOf[I](&input, call, key.number); len(rows) > 0 {
					return code.Process(key, rows)
				}
				return nil
			})
		}
	}
	if code.Expire != nil {
		p.steps[1] = func(call *invocation) *calls.Error {
			return each(call, func(key *Key[K, O]) error {
				begin, end := rangeOf(call.due.keys, key.number)
				if begin == end {
					return nil
				}
				return code.Expire(key, append([]int64(nil), call.due.dues[begin:end]...))
			})
		}
	}
	if code.Initialise != nil {
		p.steps[2] = func(call *invocation) *calls.Error {
			return each(call, func(key *Key[K, O]) error {
				if rows := rowsOf[N](&initial, call, key.number); len(rows) > 0 {
					return code.Initialise(key, rows)
				}
				return nil
			})
		}
	}
	registered = append(registered, p)
}

func rowsOf[T any](row *columns.Row, call *invocation, key int) []T {
	begin, end := rangeOf(call.keyOfRow, key)
	rows := make([]T, end-begin)
	for i := range rows {
		mustLoad(row, call.rows, begin+i, unsafe.Pointer(&rows[i]))
	}
	return rows
}

// mustLoad loads what has no nulls where its type has none.
func mustLoad(row *columns.Row, from []columns.Column, place int, to unsafe.Pointer) {
	if !row.Load(from, place, to) {
		panic(fmt.Sprintf("row %d has a null in a column whose type has none: take millstream.Null for it", place))
	}
}
