package submit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gbatch/internal/api"
	"gbatch/internal/cli"
)

// What is remembered does not grow with the number of jobs.
const (
	maxPlaces = 20  // runs of lines that are named for one text
	maxTexts  = 500 // texts that are known again
)

// repeats tells what is said of many jobs once, and at the end of which others the same
// holds: of 12,000 lines that a program wrote, all mostly have the same fault. The zero
// value has told nothing.
type repeats struct {
	texts map[string]*repeat
	order []*repeat // as they were told
	notes map[api.Note]int
	noted []api.Note // as they were told
}

// repeat is one text.
type repeat struct {
	first string
	more  []run
	rest  int // runs behind those
}

// run is lines of a file one after the other, or one job whose name has no number (0).
type run struct {
	file     string
	from, to int
}

// wrong tells what is wrong with a job, which is named in the text.
func (r *repeats) wrong(a *cli.App, name string, err error) {
	text := strings.ReplaceAll(err.Error(), name+": ", "")
	if t := r.texts[text]; t != nil {
		t.add(name)
		return
	}
	a.Say("%v", err)
	if len(r.order) == maxTexts {
		return
	}
	if r.texts == nil {
		r.texts = map[string]*repeat{}
	}
	r.texts[text] = &repeat{first: name}
	r.order = append(r.order, r.texts[text])
}

// news is those notes that were not told of a job before.
func (r *repeats) news(notes []api.Note) []api.Note {
	if r.notes == nil {
		r.notes = map[api.Note]int{}
	}
	return slices.DeleteFunc(slices.Clone(notes), func(n api.Note) bool {
		if r.notes[n] == 0 && len(r.noted) < maxTexts {
			r.noted = append(r.noted, n)
		} else if r.notes[n] == 0 {
			return false
		}
		r.notes[n]++
		return r.notes[n] > 1
	})
}

// end tells of which others the same holds.
func (r *repeats) end(a *cli.App) {
	for _, n := range r.noted {
		if more := r.notes[n] - 1; more > 0 {
			printNotes(a, []api.Note{{Path: n.Path, Message: fmt.Sprintf("%s (%s)", n.Message, others(more))}})
		}
	}
	for _, t := range r.order {
		if len(t.more) > 0 {
			a.Say("%s: the same as %s", t.places(), t.first)
		}
	}
}

func others(n int) string {
	if n == 1 {
		return "the same for another job"
	}
	return fmt.Sprintf("the same for %d more jobs", n)
}

// add takes in a job of which the same is to be told.
func (t *repeat) add(name string) {
	next := run{file: name}
	if i := strings.LastIndexByte(name, ':'); i >= 0 {
		if n, err := strconv.Atoi(name[i+1:]); err == nil && n > 0 {
			next = run{name[:i], n, n}
		}
	}
	if last := len(t.more) - 1; last >= 0 && next.from > 0 && t.more[last].file == next.file && t.more[last].to+1 == next.from {
		t.more[last].to = next.to
	} else if len(t.more) < maxPlaces {
		t.more = append(t.more, next)
	} else {
		t.rest++
	}
}

// places names the jobs, as jobs.ndjson:2-12000.
func (t *repeat) places() string {
	var b strings.Builder
	for i, r := range t.more {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(r.file)
		if r.from > 0 {
			fmt.Fprintf(&b, ":%d", r.from)
		}
		if r.to > r.from {
			fmt.Fprintf(&b, "-%d", r.to)
		}
	}
	if t.rest > 0 {
		fmt.Fprintf(&b, " and %d more places", t.rest)
	}
	return b.String()
}
