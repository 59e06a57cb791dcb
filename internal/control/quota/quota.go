// Package quota counts what each user has in jobs that are not over, and says
// when that is more than one user may have. It knows no roles: whom a limit does
// not bind is its caller's to say. The controller owns the one Book.
package quota

import (
	"fmt"

	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

// Limits are what one user may have. 0: no bound.
type Limits struct {
	Jobs      int64 // that are not over: they wait, are on hold or run; an array is one
	Tasks     int64 // of arrays, that are not over
	Templates int64 // jobs with a time table
	Needs     int64 // jobs that others wait for, each time that one is named
	Bytes     int64 // of documents and secrets of jobs that are not over
	DayBytes  int64 // that are stored in a day, of documents, secrets and other records
}

// Amount is what is counted. Records are those that are stored of a job beside its
// document: they count in a day alone.
type Amount struct{ Jobs, Tasks, Templates, Needs, Bytes, Records int64 }

// What a job leaves in the store: itself, its end, an attempt and a line or two;
// and how many bytes a record has, roughly.
const (
	RecordsOfJob = 4
	recordBytes  = 256
)

// stored is the bytes that count in a day.
func (a Amount) stored() int64 { return a.Bytes + a.Records*recordBytes }

// amountOf is what a job counts for. The tasks of an array count with the array,
// whether they are jobs yet or not.
func amountOf(j *state.Job) Amount {
	if j.State.Final() || j.Parent != 0 {
		return Amount{}
	}
	a := Amount{Jobs: 1, Bytes: int64(j.DocBytes) + int64(j.SealedBytes), Needs: NeedsOf(j.Waits)}
	if j.Cron != nil {
		a.Templates = 1
	}
	if t := j.Tasks; t != nil {
		a.Tasks = int64(t.Counts[state.TaskPending] + t.Counts[state.TaskLive])
	}
	return a
}

// NeedsOf is how many jobs are waited for.
func NeedsOf(w *state.Waits) int64 {
	if w == nil {
		return 0
	}
	return int64(len(w.Needs) + len(w.Tasks))
}

// Book is what each user has. Its invariant: the amounts are the sums of amountOf
// over the table, and held is how many jobs of each owner are on hold. Create it with
// New.
type Book struct {
	users map[string]*account
	held  map[state.Owner]int
}

type account struct {
	Amount
	stored int64      // bytes, of which a day's allowance is taken off in a day
	at     sched.Time // when it was that, to the minute
	noted  int64      // of stored, when Store said last that it is to be kept
}

// Stored is what a user has stored lately, as it is kept over restarts.
type Stored struct {
	Bytes int64      `json:"bytes"`
	At    sched.Time `json:"at"`
}

// fineness is the part of a day's allowance up to which it is kept.
const fineness = 100

// New is one in which nobody has anything.
func New() *Book { return &Book{users: map[string]*account{}, held: map[state.Owner]int{}} }

// Put takes in that old, nil for a new job, is j now.
func (b *Book) Put(old, j *state.Job) {
	if old != nil {
		b.count(old, -1)
	}
	b.count(j, +1)
}

func (b *Book) count(j *state.Job, sign int64) {
	if j.State == job.OnHold && j.Tasks == nil {
		if b.held[*j.Owner] += int(sign); b.held[*j.Owner] == 0 {
			delete(b.held, *j.Owner)
		}
	}
	more := amountOf(j)
	if more == (Amount{}) {
		return
	}
	a := b.of(j.Owner.User)
	a.Jobs += sign * more.Jobs
	a.Tasks += sign * more.Tasks
	a.Templates += sign * more.Templates
	a.Needs += sign * more.Needs
	a.Bytes += sign * more.Bytes
	if a.Amount == (Amount{}) && a.stored == 0 {
		delete(b.users, j.Owner.User)
	}
}

func (b *Book) of(user string) *account {
	a := b.users[user]
	if a == nil {
		a = &account{}
		b.users[user] = a
	}
	return a
}

// Held is how many jobs of each owner are on hold, in no order. Tasks that are no
// jobs yet are not among them.
func (b *Book) Held(yield func(state.Owner, int) bool) {
	for o, n := range b.held {
		if !yield(o, n) {
			return
		}
	}
}

// Refuse says why a user may not have so much more; nil: they may.
func (b *Book) Refuse(now sched.Time, user string, l Limits, more Amount) *state.Refusal {
	var has account
	if a := b.users[user]; a != nil {
		has = *a
	}
	for _, k := range []struct {
		key, what       string
		has, more, most int64
	}{
		{"jobs", "jobs that are not over", has.Jobs, more.Jobs, l.Jobs},
		{"tasks", "tasks of arrays that are not over", has.Tasks, more.Tasks, l.Tasks},
		{"templates", "jobs with a time table", has.Templates, more.Templates, l.Templates},
		{"dependencies", "dependencies of jobs that are not over", has.Needs, more.Needs, l.Needs},
		{"storedMiB", "bytes of documents and secrets of jobs that are not over", has.Bytes, more.Bytes, l.Bytes},
		{"storedMiBPerDay", "bytes stored within a day", has.since(now, l.DayBytes), more.stored(), l.DayBytes},
	} {
		if k.most > 0 && k.more > 0 && k.has+k.more > k.most {
			return &state.Refusal{Code: state.OverLimit,
				Message: fmt.Sprintf("user %s has %d of at most %d %s (limits.perUser.%s), and asks for %d more", user, k.has, k.most, k.what, k.key, k.more),
				Hint:    "try again when there are fewer; an administrator can raise the limit"}
		}
	}
	return nil
}

// Store notes what a user has stored. It says when that is to be kept, which is
// seldom: not before it is worth a hundredth of a day's allowance more or less.
func (b *Book) Store(now sched.Time, user string, l Limits, more Amount) (keep Stored, due bool) {
	bytes := more.stored()
	if l.DayBytes <= 0 || bytes <= 0 {
		return Stored{}, false
	}
	a := b.of(user)
	a.stored = a.since(now, l.DayBytes) + bytes
	a.at = max(a.at+(now-a.at)/sched.Minute*sched.Minute, now-sched.Day)
	if diff := a.stored - a.noted; max(diff, -diff) < l.DayBytes/fineness {
		return Stored{}, false
	}
	a.noted = a.stored
	return Stored{a.stored, a.at}, true
}

// Load takes in what was kept.
func (b *Book) Load(user string, s Stored) {
	if s.Bytes > 0 {
		a := b.of(user)
		a.stored, a.at, a.noted = s.Bytes, s.At, s.Bytes
	}
}

// Recount counts the jobs of a table anew, and has that do so, too. What was stored stays.
func (b *Book) Recount(jobs *state.Table) {
	jobs.Recount()
	clear(b.held)
	for _, a := range b.users {
		a.Amount = Amount{}
	}
	for j := range jobs.All() {
		b.count(j, +1)
	}
}

// since is what is left of what was stored, when a day takes off a day's allowance.
func (a *account) since(now sched.Time, perDay int64) int64 {
	minutes := min(max(now-a.at, 0), sched.Day) / sched.Minute // in milliseconds it could overflow
	return max(a.stored-perDay*int64(minutes)/int64(sched.Day/sched.Minute), 0)
}

// Check compares with the amounts of a table, whose own counts have to be right, too.
func (b *Book) Check(jobs *state.Table) error {
	want := New()
	for j := range jobs.All() {
		want.count(j, +1)
	}
	for user, a := range b.users {
		if w := want.of(user); w.Amount != a.Amount {
			return fmt.Errorf("user %s is said to have %+v, and has %+v", user, a.Amount, w.Amount)
		}
	}
	for user := range want.users {
		if b.users[user] == nil {
			return fmt.Errorf("what user %s has is not counted", user)
		}
	}
	if len(b.held) != len(want.held) {
		return fmt.Errorf("%d owners are said to have jobs on hold, want %d", len(b.held), len(want.held))
	}
	for o, n := range want.held {
		if b.held[o] != n {
			return fmt.Errorf("%+v is said to have %d jobs on hold, and has %d", o, b.held[o], n)
		}
	}
	return jobs.Check()
}
