package millstream

import (
	"reflect"
	"unsafe"

	"millstream/internal/calls"
	"millstream/internal/columns"
)

// scalar lets a function give one value per row; `prepare` makes a call's own place for arguments and the way to run it,
// which says false where an argument is null that must not be.
func scalar[R any](f *function, prepare func() func(arguments []columns.Column, row int) (R, bool, error)) {
	result := columns.For(reflect.TypeFor[R](), f.column)
	result.Field.Nullable = true // rows can fail
	f.results = []columns.Field{result.Field}
	f.call = func(rows int, arguments []columns.Column, out *output) *calls.Error {
		call, value, builder := prepare(), new(R), &out.builders[0]
		return eachRow(rows, func(row int) *calls.Error {
			var called bool
			var err error
			if *value, called, err = call(arguments, row); called && err == nil {
				result.Store(builder, unsafe.Pointer(value))
				return nil
			}
			builder.AppendNull()
			if err == nil {
				return nil
			}
			return out.rowErrors.Of(f.name, row, err)
		})
	}
}

// Scalar0 registers a function of SQL that has one value per row and no argument.
func Scalar0[R any](name string, call func() (R, error), options ...Option) {
	f := register(name, scalarKind, options)
	scalar(f, func() func([]columns.Column, int) (R, bool, error) {
		return func([]columns.Column, int) (value R, called bool, err error) {
			value, err = call()
			return value, true, err
		}
	})
}

// Scalar1 registers a function of SQL that has one value per row; its argument is named by a.
func Scalar1[A, R any](name string, call func(A) (R, error), a string, options ...Option) {
	f := register(name, scalarKind, options)
	loadA := parameter[A](f, a).Load
	scalar(f, func() func([]columns.Column, int) (R, bool, error) {
		pA := new(A)
		return func(at []columns.Column, row int) (value R, called bool, err error) {
			if loadA(&at[0], row, unsafe.Pointer(pA)) {
				value, err = call(*pA)
				return value, true, err
			}
			return value, false, nil
		}
	})
}

// Scalar2 registers a function of SQL that has one value per row; its arguments are named by a, b.
func Scalar2[A, B, R any](name string, call func(A, B) (R, error), a, b string, options ...Option) {
	f := register(name, scalarKind, options)
	loadA, loadB := parameter[A](f, a).Load, parameter[B](f, b).Load
	scalar(f, func() func([]columns.Column, int) (R, bool, error) {
		pA, pB := new(A), new(B)
		return func(at []columns.Column, row int) (value R, called bool, err error) {
			if loadA(&at[0], row, unsafe.Pointer(pA)) && loadB(&at[1], row, unsafe.Pointer(pB)) {
				value, err = call(*pA, *pB)
				return value, true, err
			}
			return value, false, nil
		}
	})
}

// Scalar3 registers a function of SQL that has one value per row; its arguments are named by a, b, c.
func Scalar3[A, B, C, R any](name string, call func(A, B, C) (R, error), a, b, c string, options ...Option) {
	f := register(name, scalarKind, options)
	loadA, loadB, loadC := parameter[A](f, a).Load, parameter[B](f, b).Load, parameter[C](f, c).Load
	scalar(f, func() func([]columns.Column, int) (R, bool, error) {
		pA, pB, pC := new(A), new(B), new(C)
		return func(at []columns.Column, row int) (value R, called bool, err error) {
			if loadA(&at[0], row, unsafe.Pointer(pA)) && loadB(&at[1], row, unsafe.Pointer(pB)) && loadC(&at[2], row, unsafe.Pointer(pC)) {
				value, err = call(*pA, *pB, *pC)
				return value, true, err
			}
			return value, false, nil
		}
	})
}

// Scalar4 registers a function of SQL that has one value per row; its arguments are named by a, b, c, d.
func Scalar4[A, B, C, D, R any](name string, call func(A, B, C, D) (R, error), a, b, c, d string, options ...Option) {
	f := register(name, scalarKind, options)
	loadA, loadB, loadC, loadD := parameter[A](f, a).Load, parameter[B](f, b).Load, parameter[C](f, c).Load, parameter[D](f, d).Load
	scalar(f, func() func([]columns.Column, int) (R, bool, error) {
		pA, pB, pC, pD := new(A), new(B), new(C), new(D)
		return func(at []columns.Column, row int) (value R, called bool, err error) {
			if loadA(&at[0], row, unsafe.Pointer(pA)) && loadB(&at[1], row, unsafe.Pointer(pB)) && loadC(&at[2], row, unsafe.Pointer(pC)) && loadD(&at[3], row, unsafe.Pointer(pD)) {
				value, err = call(*pA, *pB, *pC, *pD)
				return value, true, err
			}
			return value, false, nil
		}
	})
}
