package source

import (
	"millstream/internal/abi"
	"millstream/internal/calls"
)

//go:wasmexport millstream:plugin/source@0.2.0#describe
func exportDescribe() uint32 {
	abi.Enter()
	answer := abi.New(2)
	for i, item := range answer.List(0, len(registered), 6) {
		s := registered[i]
		item.Text(0, s.name)
		item.Fields(2, s.columns)
		for j, option := range item.List(4, len(s.options), 3) {
			option.Text(0, s.options[j].Name)
			if s.options[j].Required {
				option[2] = 1
			}
		}
	}
	return answer.Address()
}

//go:wasmexport cabi_post_millstream:plugin/source@0.2.0#describe
func freeDescribe(uint32) { abi.Release() }

//go:wasmexport millstream:plugin/source@0.2.0#initial-offset
func exportInitial(number, options, count uint32) uint32 {
	return offset(number, "Initial", options, count, func(s *source, options Options) (string, error) {
		return s.initial(options)
	})
}

//go:wasmexport cabi_post_millstream:plugin/source@0.2.0#initial-offset
func freeInitial(uint32) { abi.Release() }

//go:wasmexport millstream:plugin/source@0.2.0#latest-offset
func exportLatest(number, options, count, start, startBytes, hasUntil, until, untilBytes, hasMax uint32, max uint64) uint32 {
	return offset(number, "Latest", options, count, func(s *source, options Options) (string, error) {
		limits := Limits{}
		if hasUntil != 0 {
			text := abi.String(until, untilBytes)
			limits.Until = &text
		}
		if hasMax != 0 {
			limits.MaxRows = max
		}
		return s.latest(options, abi.String(start, startBytes), limits)
	})
}

//go:wasmexport cabi_post_millstream:plugin/source@0.2.0#latest-offset
func freeLatest(uint32) { abi.Release() }

//go:wasmexport millstream:plugin/source@0.2.0#read
func exportRead(number, options, count, start, startBytes, end, endBytes, hasCursor, cursor, cursorBytes uint32) uint32 {
	const words = 7
	s, failure := enter(number)
	if failure != nil {
		return abi.Failure(failure, words)
	}
	var read page
	failure = s.guard("Read", func() (err error) {
		at := ""
		if hasCursor != 0 {
			at = abi.String(cursor, cursorBytes)
		}
		read, err = s.read(given(options, count), abi.String(start, startBytes), abi.String(end, endBytes), at)
		return err
	})
	if failure == nil {
		failure = calls.Even(s.name, read.builders, read.rows)
	}
	if failure != nil {
		return abi.Failure(failure, words)
	}
	answer := abi.New(words)
	answer.Batch(1, read.rows, read.builders)
	if read.next != "" {
		answer[4] = 1
		answer.Text(5, read.next)
	}
	return answer.Address()
}

//go:wasmexport cabi_post_millstream:plugin/source@0.2.0#read
func freeRead(uint32) { abi.Release() }

//go:wasmexport millstream:plugin/source@0.2.0#commit
func exportCommit(number, options, count, end, endBytes uint32) uint32 {
	const words = 4
	s, failure := enter(number)
	if failure == nil && s.commit != nil {
		failure = s.guard("Commit", func() error { return s.commit(given(options, count), abi.String(end, endBytes)) })
	}
	if failure != nil {
		return abi.Failure(failure, words)
	}
	return abi.New(words).Address()
}

//go:wasmexport cabi_post_millstream:plugin/source@0.2.0#commit
func freeCommit(uint32) { abi.Release() }

func enter(number uint32) (*source, *calls.Error) {
	abi.Enter()
	if int(number) >= len(registered) {
		return nil, calls.Refuse("there is no source %d", number)
	}
	return registered[number], nil
}

// offset runs a call that answers with an offset.
func offset(number uint32, step string, options, count uint32, code func(*source, Options) (string, error)) uint32 {
	const words = 4
	s, failure := enter(number)
	if failure != nil {
		return abi.Failure(failure, words)
	}
	text := ""
	failure = s.guard(step, func() (err error) {
		text, err = code(s, given(options, count))
		return err
	})
	if failure != nil {
		return abi.Failure(failure, words)
	}
	answer := abi.New(words)
	answer.Text(1, text)
	return answer.Address()
}

// given are the options of the stream.
func given(address, count uint32) Options {
	options, words := Options{}, abi.Words(address, 4*count)
	for i := uint32(0); i < count; i++ {
		pair := words[4*i:]
		options[abi.String(pair[0], pair[1])] = abi.String(pair[2], pair[3])
	}
	return options
}
