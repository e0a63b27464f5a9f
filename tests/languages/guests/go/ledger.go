package main

import (
	"fmt"
	"strconv"

	"millstream"
	"millstream/source"
)

type entry struct {
	N     int64
	Label null[string]
	At    millstream.Timestamp
}

func number(text string) (uint64, error) { return strconv.ParseUint(text, 10, 64) }

func latest(options source.Options, start string, limits source.Limits) (string, error) {
	end := options.Get("rows")
	if limits.Until != nil {
		end = *limits.Until
	}
	if limits.MaxRows == 0 {
		return end, nil
	}
	from, err := number(start)
	if err != nil {
		return "", err
	}
	to, err := number(end)
	if err != nil {
		return "", err
	}
	return strconv.FormatUint(min(to, from+limits.MaxRows), 10), nil
}

func read(options source.Options, start, end, cursor string) (page source.Page[entry], err error) {
	if cursor == "" {
		cursor = start
	}
	from, err := number(cursor)
	if err != nil {
		return page, err
	}
	to, err := number(end)
	if err != nil {
		return page, err
	}
	last := min(to, from+1000)
	if away, err := number(options.Get("away")); err == nil && from <= away && away < last {
		return page, millstream.Unavailable(fmt.Sprintf("row %d is away", away))
	}
	for n := from; n < last; n++ {
		row := entry{N: int64(n), At: millstream.Timestamp(n * 1_000_000)}
		if n%3 != 0 {
			row.Label = millstream.Some(fmt.Sprintf("row %d", n))
		}
		page.Rows = append(page.Rows, row)
	}
	if last < to {
		page.Next = strconv.FormatUint(last, 10)
	}
	return page, nil
}

func init() {
	source.Register("ledger", source.Code[entry]{
		Options: []source.Option{{Name: "rows", Required: true}, {Name: "away"}},
		Initial: func(source.Options) (string, error) { return "0", nil },
		Latest:  latest,
		Read:    read,
		Commit: func(options source.Options, offset string) error {
			rows, err := number(options.Get("rows"))
			if err != nil {
				return err
			}
			if n, err := number(offset); err != nil || n > rows {
				return millstream.InvalidInput(fmt.Sprintf("there are %d rows, not %s", rows, offset))
			}
			return nil
		},
	})
}
