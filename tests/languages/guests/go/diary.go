package main

import (
	"fmt"
	"strings"

	"millstream"
	"millstream/sink"
	"millstream/sink/transaction"
)

type memo struct {
	ID   int64 `ms:"id"`
	Item null[string]
}

type diary struct{ lines []string }

func (d *diary) Process(row memo) error {
	switch {
	case !row.Item.Valid:
		return fmt.Errorf("%d has no item", row.ID)
	case row.Item.Value == "boom":
		return millstream.InvalidInput("boom")
	}
	d.lines = append(d.lines, fmt.Sprintf("%d=%s", row.ID, row.Item.Value))
	return nil
}

func (d *diary) Close(failure string) error {
	if failure == "" {
		millstream.Log(millstream.Info, "closed")
	} else {
		millstream.Log(millstream.Info, "closed after %s", failure)
	}
	return nil
}

func (d *diary) Prepare() ([]byte, error) { return []byte(strings.Join(d.lines, "\n")), nil }

func openDiary(target sink.Target) (sink.Writer[memo], bool, error) {
	skip, skips := target.Options["skip"]
	if skip == "away" {
		return nil, false, millstream.Unavailable("the world is away")
	}
	mode := [...]string{"append", "update", "complete"}[target.Mode]
	first := fmt.Sprintf("%s %d %d %s", target.Options["tag"], target.Partition, target.Batch, mode)
	return &diary{[]string{first}}, !skips, nil
}

func checkToken(target sink.Target, token []byte) error {
	if !strings.HasPrefix(string(token), target.Options["tag"]+" ") {
		return millstream.InvalidInput("not of this diary")
	}
	return nil
}

func init() {
	transaction.Register("diary", transaction.Code[memo]{
		Code: sink.Code[memo]{
			Required: []string{"tag"}, Optional: []string{"skip"},
			Modes: []sink.Mode{sink.Append, sink.Update},
			Open:  openDiary,
		},
		Commit: checkToken,
		Abort:  checkToken,
	})
}
