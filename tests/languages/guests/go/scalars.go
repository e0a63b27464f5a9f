// The plugin of tests/languages in Go.
package main

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"unicode/utf8"

	"millstream"
)

type null[T any] = millstream.Null[T]

type everything struct {
	Flag    bool
	Small   null[int8]
	Text    null[string]
	Numbers []int64
	Inner   inner
}

type inner struct {
	At    millstream.Timestamp
	Bytes []byte
}

func echo[T any](name string, annotation ...string) {
	spec := func(name string) string { return strings.Join(append([]string{name}, annotation...), ",") }
	same := func(x null[T]) (null[T], error) { return x, nil }
	millstream.Scalar1(name, same, spec("x"), millstream.Column(spec("value")))
}

func add(a, b int64) (int64, error) {
	sum := a + b
	if (sum > a) != (b > 0) {
		return 0, fmt.Errorf("%d + %d does not fit", a, b)
	}
	return sum, nil
}

func heat(level, visits int64) (float64, error) {
	return float64(0.1*float64(level)) + float64(0.9*float64(visits)), nil
}

func shout(text string) (string, error) {
	loud := make([]byte, 0, len(text)+1)
	for _, c := range []byte(text) {
		if c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		loud = append(loud, c)
	}
	return string(append(loud, '!')), nil
}

func length(text string) (int64, error) { return int64(utf8.RuneCountInString(text)), nil }

func reversed(x []byte) ([]byte, error) {
	back := slices.Clone(x)
	slices.Reverse(back)
	return back, nil
}

func negate(x millstream.Decimal) (millstream.Decimal, error) {
	negated, fits := millstream.DecimalFrom(new(big.Int).Neg(x.Big()))
	if !fits {
		return x, fmt.Errorf("-%s does not fit", x.Big())
	}
	return negated, nil
}

func total(numbers []null[int64]) (null[int64], error) {
	sum := null[int64]{}
	for _, number := range numbers {
		if number.Valid {
			sum = millstream.Some(sum.Value + number.Value)
		}
	}
	return sum, nil
}

func orZero(x null[int64]) (int64, error) { return x.Value, nil }

func nullIfOdd(x int64) (null[int64], error) { return null[int64]{Value: x, Valid: x%2 == 0}, nil }

func seven() (int32, error) { return 7, nil }

func repeated(n int64) (string, error) { return strings.Repeat("x", max(0, int(n))), nil }

func logs(text string) (int64, error) {
	millstream.Log(millstream.Info, "%s", text)
	return length(text)
}

// at13 does something else at 13.
func at13(name string, does func() error) {
	millstream.Scalar1(name, func(x int64) (int64, error) {
		if x == 13 {
			return 0, does()
		}
		return x, nil
	}, "x")
}

var eaten [][]byte

func eat() error {
	for {
		eaten = append(eaten, []byte(strings.Repeat("x", 1<<20)))
	}
}

func dive(depth int) int { return dive(depth+1) + 1 }

func init() {
	echo[bool]("echo_bool")
	echo[int8]("echo_i8")
	echo[uint8]("echo_u8")
	echo[int16]("echo_i16")
	echo[uint16]("echo_u16")
	echo[int32]("echo_i32")
	echo[uint32]("echo_u32")
	echo[int64]("echo_i64")
	echo[uint64]("echo_u64")
	echo[float32]("echo_f32")
	echo[float64]("echo_f64")
	echo[millstream.Decimal]("echo_decimal", "decimal(38,10)")
	echo[string]("echo_utf8")
	echo[[]byte]("echo_binary")
	echo[millstream.Date]("echo_date")
	echo[millstream.Timestamp]("echo_timestamp")
	echo[millstream.LocalTimestamp]("echo_local_timestamp")
	echo[[]null[string]]("echo_list")
	echo[[]null[[]null[float64]]]("echo_lists")
	echo[everything]("echo_struct")
	echo[[]null[everything]]("echo_structs")
	millstream.Scalar2("add", add, "a", "b")
	millstream.Scalar2("heat", heat, "level", "visits")
	millstream.Scalar1("shout", shout, "text")
	millstream.Scalar1("length", length, "text")
	millstream.Scalar1("reversed", reversed, "x")
	millstream.Scalar1("negate", negate, "x,decimal(38,10)", millstream.Column("value,decimal(38,10)"))
	millstream.Scalar1("total", total, "numbers")
	millstream.Scalar1("or_zero", orZero, "x")
	millstream.Scalar1("null_if_odd", nullIfOdd, "x")
	millstream.Scalar0("seven", seven)
	millstream.Scalar1("repeated", repeated, "n")
	at13("picky", func() error { return fmt.Errorf("13 is refused") })
	at13("throws", func() error { panic("thrown on purpose: 13") })
	at13("refuses", func() error { return millstream.Unavailable("the world is away") })
	at13("loops", func() error {
		for {
		}
	})
	at13("eats", eat)
	at13("dives", func() error { return fmt.Errorf("%d", dive(0)) })
	millstream.Scalar1("logs", logs, "text")
}

func main() {}
