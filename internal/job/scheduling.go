package job

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/adhocore/gronx"

	"gbatch/internal/document"
)

// readScheduling reads "scheduling" and checks what no single field shows.
func readScheduling(d *decoder, n *node, r *Request) {
	s := &r.Scheduling
	if !document.Object(d, n, schedulingFields, s) {
		return
	}
	for _, alias := range [][2]string{{"minDuration", "killableAfter"}, {"reservationIds", "reservationId"}} {
		if n.Given(alias[0]) != nil && n.Given(alias[1]) != nil {
			d.ProblemAt(n, alias[1], fmt.Sprintf("is another name for %q, which is given too", alias[0]), "keep one of them")
		}
	}
	for _, key := range []string{"notBefore", "notAfter"} {
		if s.Interactive && n.Given(key) != nil {
			d.ProblemAt(n, key, "cannot be combined with \"interactive\": an interactive job starts at once or fails", "remove one of them")
		}
	}
	if s.NotBefore != 0 && s.NotAfter != 0 && s.NotBefore >= s.NotAfter {
		d.ProblemAt(n, "notAfter", fmt.Sprintf("must be later than notBefore (%s), is %s", s.NotBefore, s.NotAfter), "")
	}
	if s.MinDuration > s.MaxDuration && s.MaxDuration > 0 {
		d.Note(n, fmt.Sprintf("minDuration (%s) is longer than maxDuration: the job is ended at maxDuration (%s)", s.MinDuration, s.MaxDuration))
	}
	if s.AllowHaltWithoutSignal && !s.Restartable {
		d.Note(n, "allowHaltWithoutSignal matters for restartable jobs only, and this job is not restartable")
	}
}

// HasTerminal says whether the program gets a terminal that can be attached to.
func (s *Spec) HasTerminal() bool { return s.Gbatch != nil && s.Gbatch.Terminal }

// MakeInteractive makes the job one that starts at once or fails and that has a
// terminal. It returns Problems where the document asks for what that rules out.
func (s *Spec) MakeInteractive() error {
	var ps Problems
	add := func(path string, set bool) {
		if set {
			ps = append(ps, Problem{Path: path, Message: "cannot be combined with --interactive: an interactive job starts at once or fails", Hint: "remove one of them"})
		}
	}
	add("request.scheduling.notBefore", s.Request.Scheduling.NotBefore != 0)
	add("request.scheduling.notAfter", s.Request.Scheduling.NotAfter != 0)
	g := s.gbatch()
	add("gbatch.maxQueued", g.MaxQueued > 0)
	add("gbatch.dependencies", len(g.Dependencies) > 0)
	add("gbatch.tasks", g.Tasks != nil)
	add("gbatch.cron", len(g.Cron) > 0)
	if len(ps) > 0 {
		return ps
	}
	g.Terminal = true
	s.Gbatch = &g
	s.Request.Scheduling.Interactive = true
	return nil
}

// cronForm checks a line of cron's five fields: minute, hour, day of the month,
// month, day of the week. Times are UTC, and Sunday is 0 or 7.
func cronForm(s string) string {
	if _, err := NextCron(s, 0); err != nil {
		return fmt.Sprintf("is %s: %v", document.Quote(s), err)
	}
	return ""
}

// NextCron is the first time after the moment given that a line of cron names.
func NextCron(line string, after Instant) (Instant, error) {
	if len(strings.Fields(line)) != 5 || len(line) > 256 {
		return 0, errors.New(`want five fields, as "30 6 * * 1-5": minute, hour, day of the month, month, day of the week`)
	}
	if !gronx.IsValid(line) {
		return 0, errors.New(`is no time table: each field is *, numbers, ranges as 1-5, lists as 1,3, or steps as */15`)
	}
	next, err := gronx.NextTickAfter(line, time.UnixMilli(int64(after)).UTC(), false)
	if err != nil {
		return 0, errors.New("names no day that ever comes")
	}
	return Instant(next.UnixMilli()), nil
}
