package sinks

import (
	"millstream/internal/abi"
	"millstream/internal/columns"
)

// ReadTarget reads what the host wrote.
func ReadTarget(query, queryLength, partition uint32, batch uint64, options, count uint32, mode uint8) Target {
	target := Target{QueryID: string(abi.Memory(query, queryLength)), Partition: partition, Batch: batch, Mode: mode,
		Options: make(map[string]string, count)}
	words := abi.Words(options, 4*count)
	for i := range int(count) {
		pair := words[4*i:]
		target.Options[string(abi.Memory(pair[0], pair[1]))] = string(abi.Memory(pair[2], pair[3]))
	}
	return target
}

// ReadFields reads fields in pre-order.
func ReadFields(address, count uint32) []columns.Field {
	words := abi.Words(address, 6*count)
	var read func(many int) []columns.Field
	read = func(many int) []columns.Field {
		var fields []columns.Field
		for len(fields) < many && len(words) > 0 {
			node := words[:6]
			words = words[6:]
			fields = append(fields, columns.Field{
				Name:     string(abi.Memory(node[0], node[1])),
				Format:   string(abi.Memory(node[2], node[3])),
				Nullable: node[4]&0xff != 0,
				Children: read(int(node[5])),
			})
		}
		return fields
	}
	return read(int(count))
}
