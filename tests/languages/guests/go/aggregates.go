package main

import (
	"fmt"
	"unicode/utf8"

	"millstream"
	"millstream/aggregate"
)

type mean struct {
	Count int64
	Sum   float64
}

type longest struct{ Text null[string] }

func (l *longest) take(text string) {
	if !l.Text.Valid || utf8.RuneCountInString(text) > utf8.RuneCountInString(l.Text.Value) {
		l.Text = millstream.Some(text)
	}
}

type strictSum struct{ Sum int64 }

func init() {
	aggregate.Register("mean", "1", aggregate.Code[mean, float64, null[float64]]{
		Add:    func(s *mean, x float64) error { s.Count++; s.Sum += x; return nil },
		Remove: func(s *mean, x float64) error { s.Count--; s.Sum -= x; return nil },
		Merge:  func(s *mean, other mean) error { s.Count += other.Count; s.Sum += other.Sum; return nil },
		Result: func(s mean) (null[float64], error) {
			if s.Count == 0 {
				return null[float64]{}, nil
			}
			return millstream.Some(s.Sum / float64(s.Count)), nil
		},
	}, aggregate.Argument("x"))
	aggregate.Register("longest", "1", aggregate.Code[longest, string, null[string]]{
		Add: func(s *longest, text string) error { s.take(text); return nil },
		Merge: func(s *longest, other longest) error {
			if other.Text.Valid {
				s.take(other.Text.Value)
			}
			return nil
		},
		Result: func(s longest) (null[string], error) { return s.Text, nil },
	}, aggregate.Argument("text"))
	aggregate.Register("strict_sum", "1", aggregate.Code[strictSum, int64, int64]{
		Add: func(s *strictSum, x int64) error {
			if x < 0 {
				return fmt.Errorf("%d is negative", x)
			}
			s.Sum += x
			return nil
		},
		Merge:  func(s *strictSum, other strictSum) error { s.Sum += other.Sum; return nil },
		Result: func(s strictSum) (int64, error) { return s.Sum, nil },
	}, aggregate.Argument("x"))
}
