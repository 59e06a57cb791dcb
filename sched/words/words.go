// Package words writes quantities as people read them. It is functions, and owns
// nothing.
package words

import (
	"fmt"
	"strings"

	"gbatch/sched/spec"
)

// Thousandths as a decimal number: 1500 is "1.5".
func Thousandths(n int64) string {
	s := fmt.Sprintf("%d.%03d", n/1000, n%1000)
	return strings.TrimRight(strings.TrimRight(s, "0"), ".")
}

// Plural is a count with its noun.
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Cores is a number of thousandths of cores: "1 core", "1.5 cores".
func Cores(milli int64) string {
	if milli == 1000 {
		return "1 core"
	}
	return Thousandths(milli) + " cores"
}

// GPUs is a number of GPUs.
func GPUs(milli int64) string {
	if milli == 1000 {
		return "1 GPU"
	}
	return Thousandths(milli) + " GPUs"
}

// Names is a noun with names: "partition gpu", "partitions cpu, gpu".
func Names(noun string, names []string) string {
	if len(names) != 1 {
		noun += "s"
	}
	return noun + " " + strings.Join(names, ", ")
}

// GiB is a number of MiB in GiB.
func GiB(mib int64) string { return Thousandths(mib * 1000 / 1024) }

// Span is a length of time in words, to the minute.
func Span(t spec.Time) string {
	switch {
	case t < spec.Minute:
		return fmt.Sprintf("%d s", (t+spec.Second-1)/spec.Second)
	case t < spec.Hour:
		return fmt.Sprintf("%d min", t/spec.Minute)
	case t < spec.Day:
		return fmt.Sprintf("%d h %d min", t/spec.Hour, t%spec.Hour/spec.Minute)
	}
	return fmt.Sprintf("%d d %d h", t/spec.Day, t%spec.Day/spec.Hour)
}

// OrList is the words, quoted, of which one will do.
func OrList(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = fmt.Sprintf("%q", w)
	}
	return strings.Join(quoted, " or ")
}

// Window is what a window is, and when.
func Window(w *spec.Window, now spec.Time) string {
	what := "reservation"
	if w.Maintenance {
		what = "maintenance"
	}
	when := "is in force"
	if s := w.Next(now); s.Start > now {
		when = fmt.Sprintf("starts in %s, before the job's limit", Span(s.Start-now))
	}
	return fmt.Sprintf("%s %q %s", what, w.Name, when)
}

// Size is the cores and memory of an allocation.
func Size(a spec.Allocation) string {
	mem := fmt.Sprintf("%d MiB", a.MemMiB)
	if a.MemMiB%1024 == 0 {
		mem = fmt.Sprintf("%d GiB", a.MemMiB>>10)
	}
	return fmt.Sprintf("%s and %s", Cores(a.MilliCPU), mem)
}
