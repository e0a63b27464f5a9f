package millstream

import (
	"reflect"
	"unsafe"

	"millstream/internal/calls"
	"millstream/internal/columns"
)

// table lets a function give any number of rows per row. Rows that came before a row's error are taken back.
func table[R any](f *function, prepare func() func(arguments []columns.Column, row int, emit func(R)) error) {
	result := columns.RowOf(reflect.TypeFor[R](), f.column)
	f.results = result.Fields
	f.call = func(rows int, arguments []columns.Column, out *output) *calls.Error {
		call, value, current := prepare(), new(R), uint32(0)
		emit := func(emitted R) {
			*value = emitted
			result.Store(out.builders, unsafe.Pointer(value))
			out.inputRows = append(out.inputRows, current)
		}
		return eachRow(rows, func(row int) *calls.Error {
			before := len(out.inputRows)
			current = uint32(row)
			err := call(arguments, row, emit)
			if err == nil {
				return nil
			}
			out.inputRows = out.inputRows[:before]
			columns.ShortenAll(out.builders, before)
			return out.rowErrors.Of(f.name, row, err)
		})
	}
}

// Table1 registers a function of SQL that has any number of rows per row, those that it emits; its argument is
// named by a.
func Table1[A, R any](name string, call func(A, func(R)) error, a string, options ...Option) {
	f := register(name, tableKind, options)
	loadA := parameter[A](f, a).Load
	table(f, func() func([]columns.Column, int, func(R)) error {
		pA := new(A)
		return func(at []columns.Column, row int, emit func(R)) error {
			if loadA(&at[0], row, unsafe.Pointer(pA)) {
				return call(*pA, emit)
			}
			return nil
		}
	})
}

// Table2 registers a function of SQL that has any number of rows per row, those that it emits; its arguments are
// named by a, b.
func Table2[A, B, R any](name string, call func(A, B, func(R)) error, a, b string, options ...Option) {
	f := register(name, tableKind, options)
	loadA, loadB := parameter[A](f, a).Load, parameter[B](f, b).Load
	table(f, func() func([]columns.Column, int, func(R)) error {
		pA, pB := new(A), new(B)
		return func(at []columns.Column, row int, emit func(R)) error {
			if loadA(&at[0], row, unsafe.Pointer(pA)) && loadB(&at[1], row, unsafe.Pointer(pB)) {
				return call(*pA, *pB, emit)
			}
			return nil
		}
	})
}

// Table3 registers a function of SQL that has any number of rows per row, those that it emits; its arguments are
// named by a, b, c.
func Table3[A, B, C, R any](name string, call func(A, B, C, func(R)) error, a, b, c string, options ...Option) {
	f := register(name, tableKind, options)
	loadA, loadB, loadC := parameter[A](f, a).Load, parameter[B](f, b).Load, parameter[C](f, c).Load
	table(f, func() func([]columns.Column, int, func(R)) error {
		pA, pB, pC := new(A), new(B), new(C)
		return func(at []columns.Column, row int, emit func(R)) error {
			if loadA(&at[0], row, unsafe.Pointer(pA)) && loadB(&at[1], row, unsafe.Pointer(pB)) && loadC(&at[2], row, unsafe.Pointer(pC)) {
				return call(*pA, *pB, *pC, emit)
			}
			return nil
		}
	})
}

// Table4 registers a function of SQL that has any number of rows per row, those that it emits; its arguments are
// named by a, b, c, d.
func Table4[A, B, C, D, R any](name string, call func(A, B, C, D, func(R)) error, a, b, c, d string, options ...Option) {
	f := register(name, tableKind, options)
	loadA, loadB, loadC, loadD := parameter[A](f, a).Load, parameter[B](f, b).Load, parameter[C](f, c).Load, parameter[D](f, d).Load
	table(f, func() func([]columns.Column, int, func(R)) error {
		pA, pB, pC, pD := new(A), new(B), new(C), new(D)
		return func(at []columns.Column, row int, emit func(R)) error {
			if loadA(&at[0], row, unsafe.Pointer(pA)) && loadB(&at[1], row, unsafe.Pointer(pB)) && loadC(&at[2], row, unsafe.Pointer(pC)) && loadD(&at[3], row, unsafe.Pointer(pD)) {
				return call(*pA, *pB, *pC, *pD, emit)
			}
			return nil
		}
	})
}
