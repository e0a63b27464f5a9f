package millstream

import "unsafe"

//go:wasmimport millstream:plugin/log@0.2.0 log
func hostLog(level uint32, text unsafe.Pointer, length uint32)

func write(level Level, text string) {
	hostLog(uint32(level), unsafe.Pointer(unsafe.StringData(text)), uint32(len(text)))
}
