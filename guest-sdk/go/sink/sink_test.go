package sink

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"millstream/internal/calls"
	"millstream/internal/columns"
	"millstream/internal/sinks"
)

type order struct {
	ID   int64
	Item columns.Null[string]
}

type orders struct {
	lines []string
	told  *[]string
}

func (o *orders) Process(row order) error {
	switch {
	case !row.Item.Valid:
		return errors.New("no item")
	case row.Item.Value == "worst":
		return &calls.Error{Fault: calls.InvalidInput, Message: "the worst row"}
	}
	o.lines = append(o.lines, fmt.Sprint(row.ID, " ", row.Item.Value))
	return nil
}

func (o *orders) Close(failure string) error {
	*o.told = append(o.lines, "close "+failure)
	return nil
}

func buffers(fields []columns.Field, ids []int64, items []string) [][]byte {
	builders := columns.NewBuilders(fields)
	for i := range ids {
		columns.Append(&builders[0], ids[i])
		if items[i] == "" {
			builders[1].AppendNull()
		} else {
			builders[1].AppendText(items[i])
		}
	}
	return columns.Buffers(builders)
}

func TestARowIsTakenOrNamedAndTheRestIsClosed(t *testing.T) {
	sinks.Registered = nil
	var told []string
	Register("orders", Code[order]{
		Required: []string{"url"},
		Modes:    []Mode{Append, Complete},
		Open: func(target Target) (Writer[order], bool, error) {
			_, skip := target.Options["skip"]
			return &orders{[]string{fmt.Sprint(target.Partition, "/", target.Batch)}, &told}, !skip, nil
		},
	})
	s := sinks.Registered[0]
	if s.Modes != 5 || len(s.Options) != 1 || len(s.Columns) != 2 {
		t.Fatal(s)
	}
	session, wanted, failure := s.Open(sinks.Target{Partition: 2, Batch: 7}, s.Columns)
	if failure != nil || !wanted {
		t.Fatal(wanted, failure)
	}
	rows, failure := session.Process(2, buffers(s.Columns, []int64{1, 2}, []string{"tea", ""}))
	if failure != nil || len(rows) != 1 || rows[0].Row != 1 || rows[0].Message != "no item" {
		t.Fatal(rows, failure)
	}
	if _, failure := session.Process(1, buffers(s.Columns, []int64{3}, []string{"worst"})); failure.Fault != calls.InvalidInput {
		t.Fatal(failure)
	}
	session.Close("why")
	if want := []string{"2/7", "1 tea", "close why"}; !reflect.DeepEqual(told, want) {
		t.Fatal(told)
	}
	session, wanted, failure = s.Open(sinks.Target{Options: map[string]string{"skip": ""}}, s.Columns)
	if failure != nil || wanted || session.Close("") != nil {
		t.Fatal(wanted, failure)
	}
}

type everything struct{ rows []AnyRow }

func (e *everything) Process(row AnyRow) error {
	e.rows = append(e.rows, row)
	return nil
}

func (e *everything) Close(string) error { return nil }

func TestRowsOfAnyColumnsHaveNamesAndValues(t *testing.T) {
	sinks.Registered = nil
	taken := &everything{}
	Register("any", Code[AnyRow]{Open: func(Target) (Writer[AnyRow], bool, error) { return taken, true, nil }})
	s := sinks.Registered[0]
	if s.Columns != nil {
		t.Fatal(s.Columns)
	}
	fields := []columns.Field{{Name: "id", Format: "l"}, {Name: "item", Format: "u", Nullable: true}}
	session, _, _ := s.Open(sinks.Target{}, fields)
	session.Process(2, buffers(fields, []int64{1, 2}, []string{"tea", ""}))
	if len(taken.rows) != 2 || taken.rows[0].Get("item") != "tea" || taken.rows[1].Get("item") != nil || taken.rows[1].Get("id") != int64(2) {
		t.Fatal(taken.rows)
	}
}

func TestAPanicRefusesTheCall(t *testing.T) {
	sinks.Registered = nil
	Register("falls", Code[order]{Open: func(Target) (Writer[order], bool, error) { panic("no luck") }})
	if _, _, failure := sinks.Registered[0].Open(sinks.Target{}, nil); failure == nil || failure.Fault != calls.Internal {
		t.Fatal(failure)
	}
}
