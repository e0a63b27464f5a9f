// Package aggregate is for aggregate functions of plugins: functions that make one value of many rows.
//
// State is a plain struct; its fields are the columns that the host keeps for each group and that checkpoints hold. Its
// zero value is the state of no rows.
//
//	type mean struct {
//		Sum   float64
//		Count int64
//	}
//
//	func init() {
//		aggregate.Register("mean", "mean/1", aggregate.Code[mean, float64, millstream.Null[float64]]{
//			Add:   func(s *mean, x float64) error { s.Sum += x; s.Count++; return nil },
//			Merge: func(s *mean, other mean) error { s.Sum += other.Sum; s.Count += other.Count; return nil },
//			Result: func(s mean) (millstream.Null[float64], error) {
//				if s.Count == 0 {
//					return millstream.Null[float64]{}, nil
//				}
//				return millstream.Some(s.Sum / float64(s.Count)), nil
//			},
//		}, aggregate.Argument("x"))
//	}
//
// Arguments of a function with several are the fields of a struct. A row with a null argument does not reach Add, unless
// the argument's type is millstream.Null.
package aggregate

import (
	"reflect"
	"unsafe"

	"millstream/internal/calls"
	"millstream/internal/columns"
)

// Code is an aggregate function: its state, its argument or a struct of arguments, its result.
type Code[S, A, R any] struct {
	// Add takes a row. Where it answers with an error, the row fails and the state stays as it was.
	Add func(state *S, argument A) error
	// Merge takes another state in, of rows that came later.
	Merge func(state *S, other S) error
	// Result is the value of a state. Where it answers with an error, the result is null.
	Result func(state S) (R, error)
	// Remove takes a row back that Add took; nil where the function cannot do that.
	Remove func(state *S, argument A) error
}

// Option is something that a function may have beside its code.
type Option func(*names)

type names struct{ argument, result string }

// Argument names the one argument of a function whose argument is no struct; without it the name is `value`.
func Argument(name string) Option { return func(n *names) { n.argument = name } }

// Result names the result; without it the name is `value`. A decimal's size stands there: "value,decimal(10,2)".
func Result(name string) Option { return func(n *names) { n.result = name } }

type aggregate struct {
	name, stateID             string
	arguments, result, states []columns.Field
	retracts                  bool
	accumulate                func(call *call) *calls.Error
	merge                     func(call *call) *calls.Error
	retract                   func(call *call) *calls.Error
	evaluate                  func(call *call) *calls.Error
}

// call is what goes into a call and what comes out.
type call struct {
	groups            int
	groupOfRow        []uint32
	rows              int
	arguments, states []columns.Column
	builders          []columns.Builder
	rowErrors         calls.RowErrors
}

var registered []*aggregate

// Register adds an aggregate function of SQL. The state id is the author's name for what the state means: a state whose
// fields mean something else needs another one.
func Register[S, A, R any](name, stateID string, code Code[S, A, R], options ...Option) {
	named := names{argument: "value", result: "value"}
	for _, option := range options {
		option(&named)
	}
	if code.Add == nil || code.Merge == nil || code.Result == nil {
		panic("aggregate `" + name + "` needs Add, Merge and Result")
	}
	states := columns.RowOf(reflect.TypeFor[S](), "state")
	arguments := columns.RowOf(reflect.TypeFor[A](), named.argument)
	result := columns.For(reflect.TypeFor[R](), named.result)
	result.Field.Nullable = true
	f := &aggregate{name: name, stateID: stateID, arguments: arguments.Fields, states: states.Fields,
		result: []columns.Field{result.Field}, retracts: code.Remove != nil}

	take := func(c *call, groups []S, each func(state *S, argument A) error) *calls.Error {
		argument := new(A)
		for row := range c.rows {
			if row%256 == 255 {
				calls.Breathe()
			}
			if !arguments.Load(c.arguments, row, unsafe.Pointer(argument)) {
				continue
			}
			state := &groups[c.groupOfRow[row]]
			before := *state
			if err := each(state, *argument); err != nil {
				*state = before
				if failure := c.rowErrors.Of(name, row, err); failure != nil {
					return failure
				}
			}
		}
		return nil
	}
	store := func(c *call, groups []S) *calls.Error {
		for i := range groups {
			states.Store(c.builders, unsafe.Pointer(&groups[i]))
		}
		return nil
	}
	f.accumulate = func(c *call) *calls.Error {
		groups := make([]S, c.groups)
		if failure := take(c, groups, code.Add); failure != nil {
			return failure
		}
		return store(c, groups)
	}
	f.merge = func(c *call) *calls.Error {
		groups, seen, other := make([]S, c.groups), make([]bool, c.groups), new(S)
		for row := range c.rows {
			if !states.Load(c.states, row, unsafe.Pointer(other)) {
				return calls.Refuse("state %d of `%s` has a null that it must not have", row, name)
			}
			group := c.groupOfRow[row]
			if !seen[group] {
				groups[group], seen[group] = *other, true
			} else if err := code.Merge(&groups[group], *other); err != nil {
				if failure := c.rowErrors.Of(name, row, err); failure != nil {
					return failure
				}
			}
		}
		return store(c, groups)
	}
	f.retract = func(c *call) *calls.Error {
		groups := make([]S, c.groups)
		for i := range groups {
			if !states.Load(c.states, i, unsafe.Pointer(&groups[i])) {
				return calls.Refuse("state %d of `%s` has a null that it must not have", i, name)
			}
		}
		if failure := take(c, groups, code.Remove); failure != nil {
			return failure
		}
		return store(c, groups)
	}
	f.evaluate = func(c *call) *calls.Error {
		state, value := new(S), new(R)
		for row := range c.rows {
			if !states.Load(c.states, row, unsafe.Pointer(state)) {
				return calls.Refuse("state %d of `%s` has a null that it must not have", row, name)
			}
			var err error
			if *value, err = code.Result(*state); err == nil {
				result.Store(&c.builders[0], unsafe.Pointer(value))
				continue
			}
			c.builders[0].AppendNull()
			if failure := c.rowErrors.Of(name, row, err); failure != nil {
				return failure
			}
		}
		return nil
	}
	registered = append(registered, f)
}

// find is the function of a number.
func find(number uint32) (*aggregate, *calls.Error) {
	if int(number) >= len(registered) {
		return nil, calls.Refuse("there is no aggregate %d", number)
	}
	return registered[number], nil
}

// check says what is wrong with the groups of rows.
func (c *call) check() *calls.Error {
	if len(c.groupOfRow) != c.rows {
		return calls.Refuse("%d groups for %d rows", len(c.groupOfRow), c.rows)
	}
	for row, group := range c.groupOfRow {
		if int(group) >= c.groups {
			return calls.Refuse("row %d is of group %d of %d", row, group, c.groups)
		}
	}
	return nil
}

// run computes one of the four calls; `fields` are those of what comes out, `rows` how many.
func (f *aggregate) run(c *call, code func(*call) *calls.Error, fields []columns.Field, rows int) *calls.Error {
	c.builders = columns.NewBuilders(fields)
	return calls.Guard(f.name, func() *calls.Error {
		if code == nil {
			return calls.Refuse("`%s` does not retract", f.name)
		}
		if failure := code(c); failure != nil {
			return failure
		}
		return calls.Even(f.name, c.builders, rows)
	})
}
