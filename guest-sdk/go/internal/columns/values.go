package columns

import (
	"math/big"
	"reflect"
)

// Date is a DATE: days since 1970-01-01.
type Date int32

// Timestamp is a TIMESTAMP: microseconds since 1970-01-01 00:00 UTC.
type Timestamp int64

// LocalTimestamp is a TIMESTAMP_NTZ: the reading of a clock, in microseconds since 1970-01-01 00:00.
type LocalTimestamp int64

// Decimal is a DECIMAL: the value times 10^scale, as a number of 128 bits.
type Decimal struct {
	High int64
	Low  uint64
}

// DecimalOf is a small number as a decimal.
func DecimalOf(value int64) Decimal { return Decimal{High: value >> 63, Low: uint64(value)} }

// Big is the number, not yet divided by 10^scale.
func (d Decimal) Big() *big.Int {
	value := new(big.Int).Lsh(big.NewInt(d.High), 64)
	return value.Add(value, new(big.Int).SetUint64(d.Low))
}

// DecimalFrom is the decimal of a number that was multiplied by 10^scale; false where 128 bits do not hold it.
func DecimalFrom(value *big.Int) (Decimal, bool) {
	if value.BitLen() > 127 {
		return Decimal{}, false
	}
	low := new(big.Int).And(value, new(big.Int).SetUint64(1<<64-1))
	high := new(big.Int).Rsh(value, 64)
	return Decimal{High: high.Int64(), Low: low.Uint64()}, true
}

// Null is a value that may be null: Valid says that there is one.
type Null[T any] struct {
	Value T
	Valid bool
}

// Some is a value that is there.
func Some[T any](value T) Null[T] { return Null[T]{Value: value, Valid: true} }

func (Null[T]) mayBeNull() {}

var nullable = reflect.TypeFor[interface{ mayBeNull() }]()
