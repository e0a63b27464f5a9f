package config

import (
	"unsafe"

	"millstream/internal/abi"
)

//go:wasmimport millstream:plugin/config@0.2.0 get
func hostGet(name unsafe.Pointer, length uint32, answer unsafe.Pointer)

func get(name string) (string, bool) {
	answer := new([3]uint32)
	hostGet(unsafe.Pointer(unsafe.StringData(name)), uint32(len(name)), unsafe.Pointer(answer))
	if answer[0]&0xff == 0 {
		return "", false
	}
	return abi.String(answer[1], answer[2]), true
}
