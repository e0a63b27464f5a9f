package source

import (
	"errors"
	"slices"
	"strconv"
	"testing"
)

type number struct {
	N    int64
	Name string
}

var committed []string

func init() {
	Register("numbers", Code[number]{
		Options: []Option{{"count", true}, {"page", false}},
		Initial: func(Options) (string, error) { return "0", nil },
		Latest: func(options Options, start string, limits Limits) (string, error) {
			begin, _ := strconv.ParseInt(start, 10, 64)
			end, err := strconv.ParseInt(options.Get("count"), 10, 64)
			if err != nil {
				return "", err
			}
			if limits.MaxRows > 0 {
				end = min(end, begin+int64(limits.MaxRows))
			}
			return strconv.FormatInt(end, 10), nil
		},
		Read: func(options Options, start, end, cursor string) (Page[number], error) {
			from, _ := strconv.ParseInt(start, 10, 64)
			if cursor != "" {
				from, _ = strconv.ParseInt(cursor, 10, 64)
			}
			to, _ := strconv.ParseInt(end, 10, 64)
			if from == 100 {
				return Page[number]{}, errors.New("a hundred is too much")
			}
			last := min(to, from+2)
			read := Page[number]{}
			for n := from; n < last; n++ {
				read.Rows = append(read.Rows, number{n, "n" + strconv.FormatInt(n, 10)})
			}
			if last < to {
				read.Next = strconv.FormatInt(last, 10)
			}
			return read, nil
		},
		Commit: func(_ Options, offset string) error {
			committed = append(committed, offset)
			return nil
		},
	})
	steps := 0
	Register("fickle", Code[int]{
		Initial: func(Options) (string, error) { return "a", nil },
		Latest:  func(Options, string, Limits) (string, error) { return "b", nil },
		Read: func(Options, string, string, string) (Page[int], error) {
			steps++
			return Page[int]{Rows: []int{steps}}, nil
		},
	})
}

func TestBatchesFollowEachOtherAndPagesAreJoined(t *testing.T) {
	tester := NewTester[number]("numbers", Options{"count": "7"})
	tester.MaxRows = 5
	var all []int64
	for _, expected := range []int{5, 2, 0} {
		rows, err := tester.Next()
		if err != nil || len(rows) != expected {
			t.Fatal(rows, err)
		}
		for _, row := range rows {
			all = append(all, row.N)
		}
	}
	if !slices.Equal(all, []int64{0, 1, 2, 3, 4, 5, 6}) || tester.Offset != "7" || !slices.Equal(committed, []string{"0", "5"}) {
		t.Fatal(all, tester.Offset, committed)
	}
	if _, err := tester.Read("100", "101"); err == nil || err.Error() != "a hundred is too much" {
		t.Fatal(err)
	}
}

func TestASourceThatGivesOtherRowsAgainIsFound(t *testing.T) {
	if _, err := NewTester[int]("fickle", nil).Next(); err == nil {
		t.Fatal("nobody noticed")
	}
}

func TestErrorsOfTheWholeCallKeepTheirFault(t *testing.T) {
	s := registered[0]
	if failure := s.guard("Read", func() error { panic("oh") }); failure == nil || failure.Fault != 2 {
		t.Fatal(failure)
	}
	if failure := s.guard("Read", func() error { return nil }); failure != nil {
		t.Fatal(failure)
	}
}
