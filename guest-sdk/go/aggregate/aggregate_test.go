package aggregate

import (
	"errors"
	"testing"

	"millstream/internal/calls"
	"millstream/internal/columns"
)

type sum struct{ Sum int64 }

type pair struct {
	X int64
	Y columns.Null[int64]
}

func init() {
	Register("strict", "strict/1", Code[sum, pair, int64]{
		Add: func(s *sum, p pair) error {
			s.Sum += p.X + p.Y.Value
			if p.X < 0 {
				return errors.New("it is negative")
			}
			return nil
		},
		Merge: func(s *sum, other sum) error { s.Sum += other.Sum; return nil },
		Result: func(s sum) (int64, error) {
			if s.Sum == 0 {
				return 0, errors.New("nothing")
			}
			return s.Sum, nil
		},
	}, Result("total"))
}

func run(t *testing.T, c *call, code func(*call) *calls.Error, fields []columns.Field, rows int) []columns.Column {
	t.Helper()
	if failure := registered[0].run(c, code, fields, rows); failure != nil {
		t.Fatal(failure)
	}
	return columns.Read(fields, rows, columns.Buffers(c.builders))
}

func TestStatesAreMadeMergedAndEvaluated(t *testing.T) {
	f := registered[0]
	arguments := columns.NewBuilders(f.arguments)
	for row, x := range []int64{5, -1, 7, 0} {
		if row == 3 {
			arguments[0].AppendNull()
		} else {
			columns.Append(&arguments[0], x)
		}
		arguments[1].AppendNull()
	}
	c := &call{groups: 3, rows: 4, groupOfRow: []uint32{0, 0, 1, 1},
		arguments: columns.Read(f.arguments, 4, columns.Buffers(arguments))}
	states := run(t, c, f.accumulate, f.states, 3)
	if got := columns.Values[int64](&states[0]); got[0] != 5 || got[1] != 7 || got[2] != 0 {
		t.Fatal(got)
	}
	if len(c.rowErrors) != 1 || c.rowErrors[0].Row != 1 {
		t.Fatal(c.rowErrors)
	}
	c = &call{groups: 2, rows: 3, groupOfRow: []uint32{0, 0, 1}, states: states}
	merged := run(t, c, f.merge, f.states, 2)
	c = &call{rows: 2, states: merged}
	results := run(t, c, f.evaluate, f.result, 2)
	if columns.Values[int64](&results[0])[0] != 12 || !results[0].IsNull(1) || c.rowErrors[0].Message != "nothing" {
		t.Fatal(c.rowErrors)
	}
	if c.groupOfRow, c.rows = []uint32{9}, 1; c.check() == nil {
		t.Fatal("a group that is not there")
	}
}
