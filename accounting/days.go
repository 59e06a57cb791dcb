package accounting

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// DayMS is the length of a day, which is one of UTC.
const DayMS = 86_400_000

// maxSpan bounds how many days are told apart in one go: 100 years.
const maxSpan = 36_500 * DayMS

// Slice is what a user held in a project of one GPU model in one cluster during
// a day, and what became of jobs there.
type Slice struct {
	Model   string           `json:"model,omitempty"` // empty: without GPUs
	Cluster int              `json:"cluster,omitempty"`
	Used    Amount           `json:"used,omitzero"` // x milliseconds
	Starts  int64            `json:"starts,omitempty"`
	WaitMS  int64            `json:"waitMs,omitempty"` // all that those waited which started
	Ended   map[string]int64 `json:"ended,omitempty"`  // jobs by outcome
	Rate    Amount           `json:"rate,omitzero"`    // is held now; only of the day that is open
}

// Day is the account of one user in one project over one day.
type Day struct {
	Day     int64   `json:"day"` // since 1970-01-01
	Project string  `json:"project"`
	User    string  `json:"user"`
	Slices  []Slice `json:"slices"` // by model, then cluster
}

// Add puts another slice's amounts and counts to this one's.
func (s *Slice) Add(o Slice) {
	s.Used.add(o.Used, 1)
	s.Starts, s.WaitMS = s.Starts+o.Starts, plus(s.WaitMS, o.WaitMS)
	if len(o.Ended) > 0 && s.Ended == nil {
		s.Ended = map[string]int64{}
	}
	for what, n := range o.Ended { // sums: order does not matter
		s.Ended[what] += n
	}
}

func (s *Slice) empty() bool { return s.Used == (Amount{}) && s.Starts == 0 && len(s.Ended) == 0 }

func bySlice(a, b Slice) int {
	return cmp.Or(cmp.Compare(a.Model, b.Model), cmp.Compare(a.Cluster, b.Cluster))
}

// slice is the open day's slice of a charge.
func (r *Row) slice(c Charge) *Slice {
	s := Slice{Model: c.Model, Cluster: c.Cluster}
	i, ok := slices.BinarySearchFunc(r.Open, s, bySlice)
	if !ok {
		r.Open = slices.Insert(r.Open, i, s)
	}
	return &r.Open[i]
}

// daysTo brings the open day to a later moment and gives the days that ended on
// the way. Nothing is told of days on which nothing was.
func (r *Row) daysTo(now int64) []Day {
	var closed []Day
	at := r.AsOf
	if skip := now - at - maxSpan; skip > 0 { // the clock was wrong: it all counts for one day
		for i := range r.Open {
			r.Open[i].Used.add(r.Open[i].Rate, skip)
		}
		at += skip
	}
	for at < now {
		midnight := (at/DayMS + 1) * DayMS
		to := min(midnight, now)
		held := false
		for i := range r.Open {
			s := &r.Open[i]
			s.Used.add(s.Rate, to-at)
			held = held || s.Rate != Amount{}
		}
		if to == midnight {
			if d := r.close(at / DayMS); len(d.Slices) > 0 {
				closed = append(closed, d)
			}
			if !held {
				break
			}
		}
		at = to
	}
	return closed
}

// close takes the open day's account out of the row. What is held stays.
func (r *Row) close(day int64) Day {
	d := r.day(day)
	var held []Slice
	for _, s := range r.Open {
		if s.Rate != (Amount{}) {
			held = append(held, Slice{Model: s.Model, Cluster: s.Cluster, Rate: s.Rate})
		}
	}
	r.Open = held
	return d
}

// day is the open day's account as one of a day that is over.
func (r *Row) day(day int64) Day {
	d := Day{Day: day, Project: r.Project, User: r.User}
	for _, s := range r.Open {
		if !s.empty() {
			s.Rate, s.Ended = Amount{}, maps.Clone(s.Ended)
			d.Slices = append(d.Slices, s)
		}
	}
	return d
}

// monthTo brings what was billed in the present month to a later moment.
func (r *Row) monthTo(now int64) {
	begin := month(now)
	if r.AsOf < begin {
		r.MonthBilled = 0
	}
	r.MonthBilled = plus(r.MonthBilled, times(r.Rate.Billed, now-max(r.AsOf, begin)))
}

// month is when the calendar month of a moment began.
func month(at int64) int64 {
	t := time.UnixMilli(at).UTC()
	return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC).UnixMilli()
}

// CountStart counts an attempt that begins at c.Start and waited so long.
func (l *Ledger) CountStart(c Charge, waitMS int64) {
	r := l.row(c)
	l.advance(r, c.Start)
	r.Began = max(r.Began, c.Start)
	s := r.slice(c)
	s.Starts++
	s.WaitMS = plus(s.WaitMS, max(waitMS, 0))
}

// CountEnd counts a job that is over at c.End.
func (l *Ledger) CountEnd(c Charge, outcome string) {
	r := l.row(c)
	l.advance(r, c.End)
	s := r.slice(c)
	if s.Ended == nil {
		s.Ended = map[string]int64{}
	}
	s.Ended[outcome]++
}

// RollAt is when the next day begins after a moment.
func RollAt(now int64) int64 { return (now/DayMS + 1) * DayMS }

// Roll closes the open day of rows on which it is over, of at most so many, and
// says whether there are more.
func (l *Ledger) Roll(now int64, most int) (more bool) {
	var due []*Row
	for _, r := range l.rows {
		if r.AsOf/DayMS < now/DayMS && len(r.Open) > 0 {
			due = append(due, r)
		}
	}
	slices.SortFunc(due, byOwner)
	for _, r := range due[:min(most, len(due))] {
		l.advance(r, now)
	}
	return len(due) > most
}

func byOwner(a, b *Row) int {
	return cmp.Or(cmp.Compare(a.Project, b.Project), cmp.Compare(a.User, b.User))
}

// Changed gives the rows that are not as they were when it was called last, and
// the days that were closed since. Both are to be stored in one go.
func (l *Ledger) Changed() ([]Row, []Day) {
	var out []Row
	for k := range l.changed { // sorted below
		out = append(out, l.rows[k].clone())
	}
	slices.SortFunc(out, func(a, b Row) int { return byOwner(&a, &b) })
	days := l.closed
	clear(l.changed)
	l.closed = nil
	return out, days
}

// Days is what is not in a stored Day yet, as of now: of each row the open day,
// and days before it that nobody has closed.
func (l *Ledger) Days(now int64) []Day {
	var out []Day
	for _, r := range l.rows { // sorted below
		c := r.clone()
		out = append(out, c.daysTo(now)...)
		if d := c.day(max(now, c.AsOf) / DayMS); len(d.Slices) > 0 {
			out = append(out, d)
		}
	}
	slices.SortFunc(out, func(a, b Day) int {
		return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Project, b.Project), cmp.Compare(a.User, b.User))
	})
	return out
}
