package processor

import (
	"errors"
	"slices"
	"testing"

	"millstream/internal/columns"
)

type page struct{ Page string }

var (
	visits  = NewValue[int64]("visits", "1")
	history = NewList[page]("history", "1")
	perPage = NewMap[page, int64]("per_page", "1")
)

func init() {
	Register("visits", Code[string, page, int64, struct{}]{
		Key:       "user",
		Variables: []Variable{visits, history, perPage},
		Time:      EventTime,
		Modes:     Append | Update,
		Process: func(key *Key[string, int64], rows []page) error {
			for _, row := range rows {
				if row.Page == "boom" {
					return errors.New(key.Value + " met boom")
				}
				seen, _ := visits.Get(key)
				visits.Set(key, seen+1)
				history.Append(key, row)
				ofPage, _ := perPage.Get(key, row)
				perPage.Put(key, row, ofPage+1)
			}
			perPage.Remove(key, page{"old"})
			key.RegisterTimer(20)
			key.RegisterTimer(10)
			seen, _ := visits.Get(key)
			key.Emit(seen*100 + int64(perPage.Len(key)))
			return nil
		},
		Expire: func(key *Key[string, int64], due []int64) error {
			history.Clear(key)
			history.Append(key, page{"new"})
			visits.Clear(key)
			key.Emit(due[0])
			return nil
		},
	})
}

func texts(fields []columns.Field, values ...string) []columns.Column {
	builders := columns.NewBuilders(fields)
	for _, value := range values {
		builders[0].AppendText(value)
	}
	return columns.Read(fields, len(values), columns.Buffers(builders))
}

func numbers(fields []columns.Field, values ...int64) []columns.Column {
	builders := columns.NewBuilders(fields)
	for _, value := range values {
		columns.Append(&builders[0], value)
	}
	return columns.Read(fields, len(values), columns.Buffers(builders))
}

func TestWhatAKeyDoesIsSeenByItAndHandedOver(t *testing.T) {
	p := registered[0]
	call := &invocation{keyCount: 3, keys: texts(p.key, "ann", "bob", "cid"), keyOfRow: []uint32{0, 0, 1, 1, 2},
		rows: texts(p.input, "a", "b", "a", "boom", "b"),
		state: []entries{
			{keyOfEntry: []uint32{2}, columns: numbers(visits.columns, 41)},
			{columns: texts(history.columns)},
			{keyOfEntry: []uint32{0, 0, 2}, mapKeys: texts(perPage.mapKey, "a", "old", "z"), columns: numbers(perPage.columns, 7, 8, 9)},
		}}
	if failure := p.run(0, call); failure != nil {
		t.Fatal(failure)
	}
	if len(call.keyErrors) != 1 || call.keyErrors[0].Row != 1 || call.keyErrors[0].Message != "bob met boom" {
		t.Fatal(call.keyErrors)
	}
	output := columns.Read(p.output, 2, columns.Buffers(call.output))
	if !slices.Equal(call.keyOfOutput, []uint32{0, 2}) || !slices.Equal(columns.Values[int64](&output[0]), []int64{202, 4202}) {
		t.Fatal(call.keyOfOutput, columns.Values[int64](&output[0]))
	}
	if !slices.Equal(call.registered.dues, []int64{10, 20, 10, 20}) || !slices.Equal(call.registered.keys, []uint32{0, 0, 2, 2}) {
		t.Fatal(call.registered)
	}
	if !slices.Equal(call.changes[1].keyOfPut, []uint32{0, 0, 2}) || !slices.Equal(call.changes[2].keyOfPut, []uint32{0, 0, 2}) {
		t.Fatal(call.changes)
	}
	if !slices.Equal(call.changes[2].keyOfRemoved, []uint32{0}) || call.changes[2].cleared != nil {
		t.Fatal(call.changes[2])
	}
}

func TestTimersThatAreDueReachTheirKeys(t *testing.T) {
	p := registered[0]
	call := &invocation{keyCount: 2, keys: texts(p.key, "ann", "bob"), due: timers{[]uint32{1}, []int64{70}},
		state: []entries{
			{columns: numbers(visits.columns)},
			{keyOfEntry: []uint32{1}, columns: texts(history.columns, "a")},
			{mapKeys: texts(perPage.mapKey), columns: numbers(perPage.columns)},
		}}
	if failure := p.run(1, call); failure != nil {
		t.Fatal(failure)
	}
	output := columns.Read(p.output, 1, columns.Buffers(call.output))
	if !slices.Equal(call.keyOfOutput, []uint32{1}) || columns.Values[int64](&output[0])[0] != 70 {
		t.Fatal(call.keyOfOutput)
	}
	if !slices.Equal(call.changes[1].cleared, []uint32{1}) || !slices.Equal(call.changes[1].keyOfPut, []uint32{1}) ||
		!slices.Equal(call.changes[0].cleared, []uint32{1}) {
		t.Fatal(call.changes)
	}
	if p.run(2, &invocation{}) == nil {
		t.Fatal("there is no Initialise")
	}
}
