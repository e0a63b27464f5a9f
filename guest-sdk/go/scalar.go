package millstream

import (
	"reflect"
	"unsafe"

	"millstream/internal/calls"
	"millstream/internal/columns"
)

// scalar lets a function give one value per row; `prepare` makes a call's own place for arguments and the way to run it.
func scalar[R any](f *function, prepare func() func(arguments []columns.Column, row int) (R, error)) {
	result := columns.For(reflect.TypeFor[R](), f.column)
	result.Field.Nullable = true // rows can fail
	f.results = []columns.Field{result.Field}
	f.call = func(rows int, arguments []columns.Column, out *output) *calls.Error {
		call, value, builder := prepare(), new(R), &out.builders[0]
		return f.eachRow(rows, arguments, func(row int) *calls.Error {
			var err error
			if *value, err = call(arguments, row); err == nil {
				result.Store(builder, unsafe.Pointer(value))
				return nil
			}
			builder.AppendNull()
			return out.rowErrors.Of(f.name, row, err)
		}, func(int) { builder.AppendNull() })
	}
}

// Scalar0 registers a function of SQL that has one value per row and no argument.
func Scalar0[R any](name string, call func() (R, error), options ...Option) {
	f := register(name, scalarKind, options)
	scalar(f, func() func([]columns.Column, int) (R, error) {
		return func([]columns.Column, int) (R, error) { return call() }
	})
}

// Scalar1 registers a function of SQL that has one value per row; its argument is named by a.
func Scalar1[A, R any](name string, call func(A) (R, error), a string, options ...Option) {
	f := register(name, scalarKind, options)
	loadA := parameter[A](f, a).Load
	scalar(f, func() func([]columns.Column, int) (R, error) {
		pA := new(A)
		return func(at []columns.Column, row int) (R, error) {
			loadA(&at[0], row, unsafe.Pointer(pA))
			return call(*pA)
		}
	})
}

// Scalar2 registers a function of SQL that has one value per row; its arguments are named by a, b.
func Scalar2[A, B, R any](name string, call func(A, B) (R, error), a, b string, options ...Option) {
	f := register(name, scalarKind, options)
	loadA, loadB := parameter[A](f, a).Load, parameter[B](f, b).Load
	scalar(f, func() func([]columns.Column, int) (R, error) {
		pA, pB := new(A), new(B)
		return func(at []columns.Column, row int) (R, error) {
			loadA(&at[0], row, unsafe.Pointer(pA))
			loadB(&at[1], row, unsafe.Pointer(pB))
			return call(*pA, *pB)
		}
	})
}

// Scalar3 registers a function of SQL that has one value per row; its arguments are named by a, b, c.
func Scalar3[A, B, C, R any](name string, call func(A, B, C) (R, error), a, b, c string, options ...Option) {
	f := register(name, scalarKind, options)
	loadA, loadB, loadC := parameter[A](f, a).Load, parameter[B](f, b).Load, parameter[C](f, c).Load
	scalar(f, func() func([]columns.Column, int) (R, error) {
		pA, pB, pC := new(A), new(B), new(C)
		return func(at []columns.Column, row int) (R, error) {
			loadA(&at[0], row, unsafe.Pointer(pA))
			loadB(&at[1], row, unsafe.Pointer(pB))
			loadC(&at[2], row, unsafe.Pointer(pC))
			return call(*pA, *pB, *pC)
		}
	})
}

// Scalar4 registers a function of SQL that has one value per row; its arguments are named by a, b, c, d.
func Scalar4[A, B, C, D, R any](name string, call func(A, B, C, D) (R, error), a, b, c, d string, options ...Option) {
	f := register(name, scalarKind, options)
	loadA, loadB, loadC, loadD := parameter[A](f, a).Load, parameter[B](f, b).Load, parameter[C](f, c).Load, parameter[D](f, d).Load
	scalar(f, func() func([]columns.Column, int) (R, error) {
		pA, pB, pC, pD := new(A), new(B), new(C), new(D)
		return func(at []columns.Column, row int) (R, error) {
			loadA(&at[0], row, unsafe.Pointer(pA))
			loadB(&at[1], row, unsafe.Pointer(pB))
			loadC(&at[2], row, unsafe.Pointer(pC))
			loadD(&at[3], row, unsafe.Pointer(pD))
			return call(*pA, *pB, *pC, *pD)
		}
	})
}
