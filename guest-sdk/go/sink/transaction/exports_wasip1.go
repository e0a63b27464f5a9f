package transaction

import (
	"millstream/internal/abi"
	"millstream/internal/calls"
	"millstream/internal/sinks"
)

//go:wasmexport millstream:plugin/sink-transaction@0.2.0#prepare
func exportPrepare() uint32 {
	abi.Enter()
	if sinks.Opened == nil {
		return abi.Failure(calls.Refuse("nothing is open"), 4)
	}
	token, failure := sinks.Opened.Prepare()
	if failure != nil {
		return abi.Failure(failure, 4)
	}
	answer := abi.New(4)
	answer.Bytes(1, token)
	return answer.Address()
}

//go:wasmexport cabi_post_millstream:plugin/sink-transaction@0.2.0#prepare
func freePrepare(uint32) { abi.Release() }

//go:wasmexport millstream:plugin/sink-transaction@0.2.0#commit
func exportCommit(number, query, queryLength, partition uint32, batch uint64, options, count, token, tokenLength uint32) uint32 {
	target := sinks.ReadTarget(query, queryLength, partition, batch, options, count, 0)
	return settle(number, target, abi.Memory(token, tokenLength), true)
}

//go:wasmexport cabi_post_millstream:plugin/sink-transaction@0.2.0#commit
func freeCommit(uint32) { abi.Release() }

//go:wasmexport millstream:plugin/sink-transaction@0.2.0#abort
func exportAbort(number, query, queryLength, partition uint32, batch uint64, options, count, token, tokenLength uint32) uint32 {
	target := sinks.ReadTarget(query, queryLength, partition, batch, options, count, 0)
	return settle(number, target, abi.Memory(token, tokenLength), false)
}

//go:wasmexport cabi_post_millstream:plugin/sink-transaction@0.2.0#abort
func freeAbort(uint32) { abi.Release() }

func settle(number uint32, target sinks.Target, token []byte, commits bool) uint32 {
	abi.Enter()
	s, failure := sinks.Numbered(number)
	if failure == nil {
		if s.Commit == nil {
			failure = calls.Refuse("`%s` was registered without its transaction", s.Name)
		} else if commits {
			failure = s.Commit(target, append([]byte(nil), token...))
		} else {
			failure = s.Abort(target, append([]byte(nil), token...))
		}
	}
	if failure != nil {
		return abi.Failure(failure, 4)
	}
	return abi.New(4).Address()
}
