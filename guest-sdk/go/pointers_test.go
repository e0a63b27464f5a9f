package millstream

import (
	"reflect"
	"unsafe"
)

func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

func pointer[T any](value *T) unsafe.Pointer { return unsafe.Pointer(value) }
