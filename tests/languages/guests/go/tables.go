package main

import (
	"fmt"
	"strings"

	"millstream"
)

type numberedWord struct {
	Position int32
	Word     null[string]
}

func words(line string, emit func(string)) error {
	for word := range strings.SplitSeq(line, " ") {
		if word != "" {
			emit(word)
		}
	}
	return nil
}

func numbered(line string, emit func(numberedWord)) error {
	position := int32(0)
	return words(line, func(word string) {
		emit(numberedWord{position, null[string]{Value: word, Valid: word != "null"}})
		position++
	})
}

func elements(numbers []null[int64], emit func(null[int64])) error {
	for _, number := range numbers {
		emit(number)
	}
	return nil
}

func countdown(n int64, emit func(int64)) error {
	if n < 0 {
		return fmt.Errorf("%d is negative", n)
	}
	for ; n > 0; n-- {
		emit(n)
	}
	return nil
}

func echoRows(x everything, emit func(everything)) error {
	emit(x)
	return nil
}

func init() {
	millstream.Table1("words", words, "line", millstream.Column("word"))
	millstream.Table1("numbered", numbered, "line")
	millstream.Table1("elements", elements, "numbers", millstream.Column("element"))
	millstream.Table1("countdown", countdown, "n")
	millstream.Table1("echo_rows", echoRows, "x")
}
