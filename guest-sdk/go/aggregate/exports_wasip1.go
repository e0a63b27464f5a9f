package aggregate

import (
	"millstream/internal/abi"
	"millstream/internal/calls"
	"millstream/internal/columns"
)

//go:wasmexport millstream:plugin/aggregate@0.2.0#describe
func exportDescribe() uint32 {
	abi.Enter()
	answer := abi.New(2)
	for i, item := range answer.List(0, len(registered), 11) {
		f := registered[i]
		item.Text(0, f.name)
		item.Fields(2, f.arguments)
		item.Fields(4, f.result)
		item.Fields(6, f.states)
		item.Text(8, f.stateID)
		// Nulls are passed: what to make of them is decided here, row by row.
		if f.retracts {
			item[10] = 1 << 8
		}
	}
	return answer.Address()
}

//go:wasmexport cabi_post_millstream:plugin/aggregate@0.2.0#describe
func freeDescribe(uint32) { abi.Release() }

//go:wasmexport millstream:plugin/aggregate@0.2.0#accumulate
func exportAccumulate(number, groups, groupOfRow, bytes, rows, buffers, count uint32) uint32 {
	return grouped(number, groups, groupOfRow, bytes, func(f *aggregate, c *call) *calls.Error {
		c.rows = int(rows)
		c.arguments = columns.Read(f.arguments, c.rows, abi.Buffers(buffers, count))
		return f.accumulate(c)
	}, int(rows))
}

//go:wasmexport cabi_post_millstream:plugin/aggregate@0.2.0#accumulate
func freeAccumulate(uint32) { abi.Release() }

//go:wasmexport millstream:plugin/aggregate@0.2.0#merge
func exportMerge(number, groups, groupOfRow, bytes, rows, buffers, count uint32) uint32 {
	return grouped(number, groups, groupOfRow, bytes, func(f *aggregate, c *call) *calls.Error {
		c.rows = int(rows)
		c.states = columns.Read(f.states, c.rows, abi.Buffers(buffers, count))
		return f.merge(c)
	}, int(rows))
}

//go:wasmexport cabi_post_millstream:plugin/aggregate@0.2.0#merge
func freeMerge(uint32) { abi.Release() }

//go:wasmexport millstream:plugin/aggregate@0.2.0#retract
func exportRetract(number, groups, states, stateCount, groupOfRow, bytes, rows, buffers, count uint32) uint32 {
	return grouped(number, groups, groupOfRow, bytes, func(f *aggregate, c *call) *calls.Error {
		if !f.retracts {
			return calls.Refuse("`%s` does not retract", f.name)
		}
		c.rows = int(rows)
		c.states = columns.Read(f.states, c.groups, abi.Buffers(states, stateCount))
		c.arguments = columns.Read(f.arguments, c.rows, abi.Buffers(buffers, count))
		return f.retract(c)
	}, int(rows))
}

//go:wasmexport cabi_post_millstream:plugin/aggregate@0.2.0#retract
func freeRetract(uint32) { abi.Release() }

//go:wasmexport millstream:plugin/aggregate@0.2.0#evaluate
func exportEvaluate(number, states, buffers, count uint32) uint32 {
	abi.Enter()
	f, failure := find(number)
	if failure != nil {
		return abi.Failure(failure, 6)
	}
	c := &call{rows: int(states)}
	failure = f.run(c, func(c *call) *calls.Error {
		c.states = columns.Read(f.states, c.rows, abi.Buffers(buffers, count))
		return f.evaluate(c)
	}, f.result, c.rows)
	return c.answer(failure, c.rows)
}

//go:wasmexport cabi_post_millstream:plugin/aggregate@0.2.0#evaluate
func freeEvaluate(uint32) { abi.Release() }

// grouped runs a call that answers with a state for each group.
func grouped(number, groups, groupOfRow, bytes uint32, code func(f *aggregate, c *call) *calls.Error, rows int) uint32 {
	abi.Enter()
	f, failure := find(number)
	if failure != nil {
		return abi.Failure(failure, 6)
	}
	c := &call{groups: int(groups), rows: rows, groupOfRow: abi.Words(groupOfRow, bytes/4)}
	if failure = c.check(); failure == nil {
		failure = f.run(c, func(c *call) *calls.Error { return code(f, c) }, f.states, c.groups)
	}
	return c.answer(failure, c.groups)
}

func (c *call) answer(failure *calls.Error, rows int) uint32 {
	if failure != nil {
		return abi.Failure(failure, 6)
	}
	answer := abi.New(6)
	answer.Batch(1, rows, c.builders)
	answer.RowErrors(4, c.rowErrors)
	return answer.Address()
}
