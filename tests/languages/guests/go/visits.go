package main

import (
	"fmt"

	"millstream"
	"millstream/processor"
)

type count struct{ N int64 }

type page struct{ Page string }

type visit struct {
	Page string
	At   millstream.Timestamp
}

type seen struct {
	Event         string
	Visits, Pages int64
	Last          null[string]
}

type user = processor.Key[string, seen]

var (
	visits  = processor.NewValue[count]("visits", "1")
	history = processor.NewList[page]("history", "1")
	perPage = processor.NewMap[page, count]("per_page", "1")
)

func row(key *user, event string) seen {
	counted, _ := visits.Get(key)
	out := seen{Event: event, Visits: counted.N, Pages: int64(perPage.Len(key))}
	if pages := history.All(key); len(pages) > 0 {
		out.Last = millstream.Some(pages[len(pages)-1].Page)
	}
	return out
}

func process(key *user, rows []visit) error {
	latest := rows[0].At
	for _, row := range rows {
		if row.Page == "boom" {
			return fmt.Errorf("%s met boom", key.Value)
		}
		counted, _ := visits.Get(key)
		visits.Set(key, count{counted.N + 1})
		history.Append(key, page{row.Page})
		ofPage, _ := perPage.Get(key, page{row.Page})
		perPage.Put(key, page{row.Page}, count{ofPage.N + 1})
		latest = max(latest, row.At)
	}
	for _, timer := range key.Timers() {
		key.DeleteTimer(timer)
	}
	ms := int64(latest) / 1000
	if latest%1000 < 0 {
		ms--
	}
	key.RegisterTimer(ms + 10_000)
	key.Emit(row(key, "seen"))
	return nil
}

func expire(key *user, _ []int64) error {
	key.Emit(row(key, "gone"))
	visits.Clear(key)
	history.Clear(key)
	perPage.Clear(key)
	return nil
}

type initial struct{ Visits int64 }

func init() {
	processor.Register("visits", processor.Code[string, visit, seen, initial]{
		Key:       "user",
		Variables: []processor.Variable{visits, history, perPage},
		Time:      processor.EventTime,
		Modes:     processor.Append | processor.Update,
		Process:   process,
		Expire:    expire,
		Initialise: func(key *user, rows []initial) error {
			visits.Set(key, count{rows[len(rows)-1].Visits})
			return nil
		},
	})
}
