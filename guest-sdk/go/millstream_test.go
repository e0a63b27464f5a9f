package millstream

import (
	"errors"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"

	"millstream/internal/calls"
	"millstream/internal/columns"
)

type place struct {
	X, Y float64
	Name Null[string] `ms:"label"`
}

type wide struct {
	Flag   bool
	Small  Null[int8]
	Places []Null[place]
	Price  Decimal `ms:",decimal(38,2)"`
	Day    Date
	Raw    []byte
}

func init() {
	Scalar2("add", func(a int64, b int32) (int64, error) { return a + int64(b), nil }, "a", "b")
	Scalar1("or_zero", func(x Null[int64]) (Null[int64], error) {
		return Null[int64]{Value: x.Value, Valid: x.Value != 1}, nil
	}, "x")
	Scalar1("parsed", func(text string) (int64, error) {
		if text == "away" {
			return 0, Unavailable("the world is away")
		}
		return strconv.ParseInt(text, 10, 64)
	}, "text")
	Scalar1("broken", func(text string) (int64, error) { panic("thrown: " + text) }, "text")
	Scalar1("same", func(x Null[wide]) (Null[wide], error) { return x, nil }, "x")
	Table1("parts", func(text string, emit func(place)) error {
		for i, part := range strings.Split(text, ",") {
			if part == "!" {
				return errors.New("a `!` in it")
			}
			emit(place{X: float64(i), Name: Null[string]{Value: part, Valid: part != ""}})
		}
		return nil
	}, "text", Volatile())
	ScalarBatch("doubled", []Field{FieldOf[int64]("x")}, FieldOf[int64]("value"), func(b *Batch) error {
		x, value := Values[int64](b.Argument(0)), Slots[int64](b.Result(0), b.Rows)
		for row := range x {
			if value[row] = 2 * x[row]; x[row] == 13 {
				b.Fail(row, "13 is refused")
			}
		}
		return nil
	})
}

func find(t *testing.T, name string) *function {
	t.Helper()
	for _, f := range functions {
		if f.name == name {
			return f
		}
	}
	t.Fatalf("there is no function %s", name)
	return nil
}

// call runs a function over columns that `fill` builds, and lays columns over what comes back.
func call(t *testing.T, name string, rows int, fill func(arguments []Builder)) ([]columns.Column, *output, *calls.Error) {
	t.Helper()
	f := find(t, name)
	arguments := columns.NewBuilders(f.arguments)
	fill(arguments)
	out, failure := f.run(rows, columns.Buffers(arguments))
	if failure != nil {
		return nil, out, failure
	}
	if f.kind == tableKind {
		rows = len(out.inputRows)
	}
	return columns.Read(f.results, rows, columns.Buffers(out.builders)), out, nil
}

func texts(values ...string) func([]Builder) {
	return func(arguments []Builder) {
		for _, value := range values {
			arguments[0].AppendText(value)
		}
	}
}

func TestANullSkipsTheFunctionUnlessItTakesNulls(t *testing.T) {
	results, _, _ := call(t, "add", 3, func(arguments []Builder) {
		for row := range 3 {
			Append(&arguments[0], int64(row)<<40)
			if row == 1 {
				arguments[1].AppendNull()
			} else {
				Append(&arguments[1], int32(-row))
			}
		}
	})
	if results[0].IsNull(0) || !results[0].IsNull(1) || Values[int64](&results[0])[2] != 2<<40-2 {
		t.Fatal("add")
	}
	results, _, _ = call(t, "or_zero", 20, func(arguments []Builder) {
		for row := range 20 {
			if row%3 == 0 {
				arguments[0].AppendNull()
			} else {
				Append(&arguments[0], int64(row%3))
			}
		}
	})
	for row := range 20 {
		if results[0].IsNull(row) != (row%3 == 1) {
			t.Fatalf("row %d", row)
		}
	}
}

func TestErrorsAreOfRowsOrOfCalls(t *testing.T) {
	results, out, failure := call(t, "parsed", 3, texts("7", "x", "9"))
	if failure != nil || !results[0].IsNull(1) || Values[int64](&results[0])[2] != 9 {
		t.Fatal(failure)
	}
	if len(out.rowErrors) != 1 || out.rowErrors[0].Row != 1 || !strings.Contains(out.rowErrors[0].Message, "invalid syntax") {
		t.Fatal(out.rowErrors)
	}
	if _, _, failure = call(t, "parsed", 2, texts("7", "away")); failure == nil || failure.Fault != calls.Unavailable {
		t.Fatal(failure)
	}
	_, _, failure = call(t, "broken", 1, texts("on purpose"))
	if failure == nil || !strings.Contains(failure.Message, "thrown: on purpose\nmillstream.init") {
		t.Fatal(failure)
	}
}

func TestATableFunctionSaysWhereEachRowCameFrom(t *testing.T) {
	results, out, _ := call(t, "parts", 4, texts("a,b", "c,d,!,e", "", "f"))
	if !slices.Equal(out.inputRows, []uint32{0, 0, 2, 3}) || len(out.rowErrors) != 1 || out.rowErrors[0].Row != 1 {
		t.Fatal(out.inputRows, out.rowErrors)
	}
	if results[2].Text(1) != "b" || !results[2].IsNull(2) || results[2].Text(3) != "f" {
		t.Fatal("texts")
	}
	if f := find(t, "parts"); f.results[2].Name != "label" || !f.results[2].Nullable || f.results[0].Name != "x" || !f.volatile {
		t.Fatal(f.results)
	}
}

func TestAFunctionOfBatchesLetsRowsFail(t *testing.T) {
	results, out, failure := call(t, "doubled", 3, func(arguments []Builder) {
		for _, x := range []int64{1, 13, 3} {
			Append(&arguments[0], x)
		}
	})
	if failure != nil || !results[0].IsNull(1) || Values[int64](&results[0])[2] != 6 || out.rowErrors[0].Row != 1 {
		t.Fatal(failure, out.rowErrors)
	}
	if !find(t, "doubled").skipsNulls {
		t.Fatal("nulls")
	}
}

func TestNestedValuesComeBackWhole(t *testing.T) {
	price, _ := DecimalFrom(new(big.Int).Neg(new(big.Int).Exp(big.NewInt(10), big.NewInt(37), nil)))
	wanted := wide{Flag: true, Small: Some(int8(-5)), Price: price, Day: 19000, Raw: []byte{0, 255},
		Places: []Null[place]{Some(place{X: 1.5, Name: Some("here")}), {}, Some(place{Y: -2})}}
	fill := func(arguments []Builder) {
		codec := columns.For(typeOf[Null[wide]](), "x")
		for row := range 10 {
			value := Null[wide]{Value: wanted, Valid: row%4 != 1}
			codec.Store(&arguments[0], pointer(&value))
		}
	}
	results, _, failure := call(t, "same", 10, fill)
	if failure != nil {
		t.Fatal(failure)
	}
	for row := range 10 {
		if results[0].IsNull(row) != (row%4 == 1) {
			t.Fatalf("row %d", row)
		}
	}
	codec := columns.For(typeOf[Null[wide]](), "x")
	var found Null[wide]
	codec.Load(&results[0], 9, pointer(&found))
	if !found.Valid && 9%4 != 1 {
		t.Fatal("nothing came back")
	}
	codec.Load(&results[0], 8, pointer(&found))
	same := found.Value.Flag && found.Value.Small == wanted.Small && found.Value.Price == price &&
		slices.Equal(found.Value.Places, wanted.Places) && slices.Equal(found.Value.Raw, wanted.Raw)
	if !same || found.Value.Price.Big().Sign() != -1 {
		t.Fatal(found)
	}
}
