// Package templates knows the jobs with a time table: each waits for the next of
// its times, makes a job like it then, and waits for the one after. The package
// says which are due and makes nothing itself. The controller owns the one Set.
package templates

import (
	"fmt"
	"slices"

	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// Set is the templates that are not over, by number, and when the first of them
// is to make its next job. Its zero value is that of an empty table.
type Set struct {
	numbers []job.Number
	next    sched.Time // 0: none waits for its time
}

// Next is when Due may have something; 0: nothing waits for its time.
func (s *Set) Next() sched.Time { return s.next }

// Add takes in a template that is not over. FindNext is to be called after.
func (s *Set) Add(n job.Number) {
	at, _ := slices.BinarySearch(s.numbers, n)
	s.numbers = slices.Insert(s.numbers, at, n)
}

// Changed takes in that a template has another state: what is due next is looked
// up anew the next time that somebody asks.
func (s *Set) Changed(now sched.Time) { s.next = now }

// FindNext finds out when the next job is due, and forgets templates that have
// ended.
func (s *Set) FindNext(jobs *state.Table) {
	s.next = 0
	s.numbers = slices.DeleteFunc(s.numbers, func(n job.Number) bool {
		j := jobs.Get(n)
		if j == nil || j.State.Final() {
			return true
		}
		if j.State == job.Queued && (s.next == 0 || j.Cron.Next < s.next) {
			s.next = j.Cron.Next
		}
		return false
	})
}

// Due are the templates whose time has come. Who makes their jobs calls FindNext
// after.
func (s *Set) Due(now sched.Time, jobs *state.Table) (due []job.Number) {
	for _, n := range s.numbers {
		if j := jobs.Get(n); j != nil && j.State == job.Queued && j.Cron.Next <= now {
			due = append(due, n)
		}
	}
	return due
}

// Check verifies that every template of the table that is not over is known.
func (s *Set) Check(jobs *state.Table) error {
	if !slices.IsSorted(s.numbers) {
		return fmt.Errorf("templates %v are not in order", s.numbers)
	}
	for j := range jobs.All() {
		if _, known := slices.BinarySearch(s.numbers, j.Number); j.Cron != nil && !j.State.Final() && !known {
			return fmt.Errorf("job %d is a template that makes no jobs", j.Number)
		}
	}
	return nil
}

// After is the first time after a moment that a time table names.
func After(lines []string, moment sched.Time) (sched.Time, error) {
	var first sched.Time
	for _, line := range lines {
		t, err := job.NextCron(line, job.Instant(moment))
		if err != nil {
			return 0, err
		}
		if first == 0 || sched.Time(t) < first {
			first = sched.Time(t)
		}
	}
	return first, nil
}

// Maker is who made a job and makes more, nil if nobody does.
func Maker(j *state.Job, jobs *state.Table) *state.Job {
	if m := jobs.Get(j.Template); j.Template != 0 && m != nil && !m.State.Final() {
		return m
	}
	return nil
}

// KeepsSealed says that what is sealed for a job is needed still when it ends: by
// who continues it, by its template, or by the job that its template made last.
func KeepsSealed(j *state.Job, jobs *state.Table) bool {
	if j.State == job.Halted || Maker(j, jobs) != nil {
		return true
	}
	if j.Cron == nil {
		return false
	}
	last := jobs.Get(j.Cron.Last)
	return last != nil && !last.State.Final()
}
