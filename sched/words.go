package sched

import (
	"fmt"
	"strings"
)

// thousandths as a decimal number: 1500 is "1.5".
func thousandths(n int64) string {
	s := fmt.Sprintf("%d.%03d", n/1000, n%1000)
	return strings.TrimRight(strings.TrimRight(s, "0"), ".")
}

// plural is a count with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func gib(mib int64) string { return thousandths(mib * 1000 / 1024) }

// span is a length of time in words, to the minute.
func span(t Time) string {
	switch {
	case t < Minute:
		return fmt.Sprintf("%d s", (t+Second-1)/Second)
	case t < Hour:
		return fmt.Sprintf("%d min", t/Minute)
	case t < Day:
		return fmt.Sprintf("%d h %d min", t/Hour, t%Hour/Minute)
	}
	return fmt.Sprintf("%d d %d h", t/Day, t%Day/Hour)
}

// orList is the words, quoted, of which one will do.
func orList(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = fmt.Sprintf("%q", w)
	}
	return strings.Join(quoted, " or ")
}
