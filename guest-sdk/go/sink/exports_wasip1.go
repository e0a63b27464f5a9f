package sink

import (
	"millstream/internal/abi"
	"millstream/internal/calls"
	"millstream/internal/sinks"
)

//go:wasmexport millstream:plugin/sink@0.2.0#describe
func exportDescribe() uint32 {
	abi.Enter()
	answer := abi.New(2)
	for i, item := range answer.List(0, len(sinks.Registered), 7) {
		s := sinks.Registered[i]
		item.Text(0, s.Name)
		item.Fields(2, s.Columns)
		item[4] = uint32(s.Modes)
		for j, option := range item.List(5, len(s.Options), 3) {
			option.Text(0, s.Options[j].Name)
			if s.Options[j].Required {
				option[2] = 1
			}
		}
	}
	return answer.Address()
}

//go:wasmexport cabi_post_millstream:plugin/sink@0.2.0#describe
func freeDescribe(uint32) { abi.Release() }

//go:wasmexport millstream:plugin/sink@0.2.0#open
func exportOpen(number, query, queryLength, partition uint32, batch uint64, options, count, mode, fields, fieldCount uint32) uint32 {
	abi.Enter()
	s, failure := sinks.Numbered(number)
	if failure != nil {
		return abi.Failure(failure, 4)
	}
	target := sinks.ReadTarget(query, queryLength, partition, batch, options, count, uint8(mode))
	session, wanted, failure := s.Open(target, sinks.ReadFields(fields, fieldCount))
	if failure != nil {
		return abi.Failure(failure, 4)
	}
	sinks.Opened = session
	answer := abi.New(4)
	if wanted {
		answer[1] = 1
	}
	return answer.Address()
}

//go:wasmexport cabi_post_millstream:plugin/sink@0.2.0#open
func freeOpen(uint32) { abi.Release() }

//go:wasmexport millstream:plugin/sink@0.2.0#process
func exportProcess(rows, buffers, count uint32) uint32 {
	abi.Enter()
	if sinks.Opened == nil {
		return abi.Failure(calls.Refuse("nothing is open"), 4)
	}
	errors, failure := sinks.Opened.Process(int(rows), abi.Buffers(buffers, count))
	if failure != nil {
		return abi.Failure(failure, 4)
	}
	answer := abi.New(4)
	answer.RowErrors(1, errors)
	return answer.Address()
}

//go:wasmexport cabi_post_millstream:plugin/sink@0.2.0#process
func freeProcess(uint32) { abi.Release() }

//go:wasmexport millstream:plugin/sink@0.2.0#close
func exportClose(failed, text, length uint32) uint32 {
	abi.Enter()
	session := sinks.Opened
	if session == nil {
		return abi.Failure(calls.Refuse("nothing is open"), 4)
	}
	sinks.Opened = nil
	why := ""
	if failed != 0 {
		why = string(abi.Memory(text, length))
	}
	if failure := session.Close(why); failure != nil {
		return abi.Failure(failure, 4)
	}
	return abi.New(4).Address()
}

//go:wasmexport cabi_post_millstream:plugin/sink@0.2.0#close
func freeClose(uint32) { abi.Release() }
