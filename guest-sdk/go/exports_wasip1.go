package millstream

import (
	"fmt"

	"millstream/internal/abi"
	"millstream/internal/calls"
)

//go:wasmexport millstream:plugin/describe@0.2.0#describe
func exportDescribe() uint32 {
	abi.Enter()
	answer := abi.New(2)
	for i, item := range answer.List(0, len(functions), 8) {
		f := functions[i]
		item.Text(0, f.name)
		item[2] = uint32(f.kind)
		item.Fields(3, f.arguments)
		item.Fields(5, f.results)
		if f.volatile {
			item[7] = 1
		}
		if f.skipsNulls {
			item[7] |= 1 << 8
		}
	}
	return answer.Address()
}

//go:wasmexport cabi_post_millstream:plugin/describe@0.2.0#describe
func freeDescribe(uint32) { abi.Release() }

//go:wasmexport millstream:plugin/scalar@0.2.0#call
func exportScalar(number, rows, buffers, count uint32) uint32 {
	out, failure := enter(scalarKind, number, rows, buffers, count)
	if failure != nil {
		return abi.Failure(failure, 6)
	}
	answer := abi.New(6)
	answer.Batch(1, int(rows), out.builders)
	answer.RowErrors(4, out.rowErrors)
	return answer.Address()
}

//go:wasmexport cabi_post_millstream:plugin/scalar@0.2.0#call
func freeScalar(uint32) { abi.Release() }

//go:wasmexport millstream:plugin/table@0.2.0#call
func exportTable(number, rows, buffers, count uint32) uint32 {
	out, failure := enter(tableKind, number, rows, buffers, count)
	if failure != nil {
		return abi.Failure(failure, 8)
	}
	answer := abi.New(8)
	answer.Numbers(1, out.inputRows)
	answer.Batch(3, len(out.inputRows), out.builders)
	answer.RowErrors(6, out.rowErrors)
	return answer.Address()
}

//go:wasmexport cabi_post_millstream:plugin/table@0.2.0#call
func freeTable(uint32) { abi.Release() }

func enter(kind kind, number, rows, buffers, count uint32) (*output, *calls.Error) {
	abi.Enter()
	if int(number) >= len(functions) || functions[number].kind != kind {
		return nil, &calls.Error{Fault: calls.Internal, Message: fmt.Sprintf("there is no such function %d", number)}
	}
	return functions[number].run(int(rows), abi.Buffers(buffers, count))
}
