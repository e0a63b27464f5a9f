package processor

import (
	"unsafe"

	"millstream/internal/abi"
	"millstream/internal/calls"
	"millstream/internal/columns"
)

//go:wasmexport millstream:plugin/processor@0.2.0#describe
func exportDescribe() uint32 {
	abi.Enter()
	answer := abi.New(2)
	for i, item := range answer.List(0, len(registered), 13) {
		p := registered[i]
		item.Text(0, p.name)
		item.Fields(2, p.key)
		item.Fields(4, p.input)
		item.Fields(6, p.output)
		item.Fields(8, p.initial)
		for j, variable := range item.List(10, len(p.variables), 14) {
			d := p.variables[j].describe()
			variable.Text(0, d.name)
			variable[2] = uint32(d.kind)
			variable.Fields(3, d.mapKey)
			variable.Fields(5, d.columns)
			variable.Text(7, d.stateID)
			if ms := uint64(d.ttl.Milliseconds()); ms > 0 {
				variable[10], variable[12], variable[13] = 1, uint32(ms), uint32(ms>>32)
			}
		}
		item[12] = uint32(p.time) | uint32(p.modes)<<8
	}
	return answer.Address()
}

//go:wasmexport cabi_post_millstream:plugin/processor@0.2.0#describe
func freeDescribe(uint32) { abi.Release() }

//go:wasmexport millstream:plugin/processor@0.2.0#process
func exportProcess(parameters uint32) uint32 { return enter(0, parameters) }

//go:wasmexport cabi_post_millstream:plugin/processor@0.2.0#process
func freeProcess(uint32) { abi.Release() }

//go:wasmexport millstream:plugin/processor@0.2.0#expire
func exportExpire(parameters uint32) uint32 { return enter(1, parameters) }

//go:wasmexport cabi_post_millstream:plugin/processor@0.2.0#expire
func freeExpire(uint32) { abi.Release() }

//go:wasmexport millstream:plugin/processor@0.2.0#initialise
func exportInitialise(parameters uint32) uint32 { return enter(2, parameters) }

//go:wasmexport cabi_post_millstream:plugin/processor@0.2.0#initialise
func freeInitialise(uint32) { abi.Release() }

// answerWords is how large an outcome is, or the error instead of it.
const answerWords = 18

// enter reads the parameters, which the host wrote as one record: number, then the invocation from its third word on.
func enter(step int, parameters uint32) uint32 {
	abi.Enter()
	number := abi.Words(parameters, 1)[0]
	if int(number) >= len(registered) {
		return abi.Failure(calls.Refuse("there is no processor %d", number), answerWords)
	}
	p, words, call := registered[number], 22, &invocation{}
	if step == 1 {
		words += 4
	}
	in := abi.Words(parameters, uint32(words))[2:]
	failure := calls.Guard(p.name, func() *calls.Error { return p.read(step, in, call) })
	if failure == nil {
		failure = p.run(step, call)
	}
	if failure != nil {
		return abi.Failure(failure, answerWords)
	}
	return call.answer()
}

func (p *processor) read(step int, in []uint32, call *invocation) *calls.Error {
	call.keyCount = int(in[0])
	call.keys = columns.Read(p.key, call.keyCount, abi.Buffers(in[1], in[2]))
	call.keyOfRow = abi.Words(in[3], in[4]/4)
	if step != 1 {
		fields := p.input
		if step == 2 {
			fields = p.initial
		}
		call.rows = columns.Read(fields, int(in[5]), abi.Buffers(in[6], in[7]))
	}
	if int(in[9]) != len(p.variables) {
		return calls.Refuse("%d variables for `%s`, which has %d", in[9], p.name, len(p.variables))
	}
	state := abi.Words(in[8], in[9]*8)
	for i, variable := range p.variables {
		d, at := variable.describe(), state[i*8:]
		call.state = append(call.state, entries{
			keyOfEntry: abi.Words(at[0], at[1]/4),
			mapKeys:    columns.Read(d.mapKey, int(at[2]), abi.Buffers(at[3], at[4])),
			columns:    columns.Read(d.columns, int(at[5]), abi.Buffers(at[6], at[7])),
		})
	}
	call.timers = readTimers(in[10:])
	call.batchTime = int64(uint64(in[14]) | uint64(in[15])<<32)
	call.hasWatermark = in[16] != 0
	if call.hasWatermark {
		call.watermark = int64(uint64(in[18]) | uint64(in[19])<<32)
	}
	if step == 1 {
		call.due = readTimers(in[20:])
	}
	return nil
}

func readTimers(in []uint32) timers {
	keys := abi.Words(in[0], in[1]/4)
	return timers{keys, unsafe.Slice((*int64)(unsafe.Pointer(uintptr(in[2]))), len(keys))}
}

func putTimers(answer abi.Record, at int, t *timers) {
	answer.Numbers(at, t.keys)
	answer.Bytes(at+2, unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(t.dues))), len(t.dues)*8))
}

func (call *invocation) answer() uint32 {
	answer := abi.New(answerWords)
	answer.Batch(1, len(call.keyOfOutput), call.output)
	answer.Numbers(4, call.keyOfOutput)
	for i, item := range answer.List(6, len(call.changes), 15) {
		c := &call.changes[i]
		item.Numbers(0, c.cleared)
		item.Numbers(2, c.keyOfRemoved)
		item.Batch(4, len(c.keyOfRemoved), c.removed)
		item.Numbers(7, c.keyOfPut)
		mapKeys := len(c.keyOfPut)
		if len(c.putMapKeys) == 0 {
			mapKeys = 0
		}
		item.Batch(9, mapKeys, c.putMapKeys)
		item.Batch(12, len(c.keyOfPut), c.putRows)
	}
	putTimers(answer, 8, &call.deleted)
	putTimers(answer, 12, &call.registered)
	answer.RowErrors(16, call.keyErrors)
	return answer.Address()
}
