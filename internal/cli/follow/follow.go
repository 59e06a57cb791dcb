// Package follow shows people what becomes of a job: where it stands until it
// runs, its log while it runs, and how it ended. It outlives restarts of the
// controller and of the job, and leaves the job alone when its user leaves.
package follow

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dustin/go-humanize"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/human"
	"gbatch/internal/cli/jobs"
	"gbatch/internal/cli/watch"
	"gbatch/internal/client"
)

// Job shows what becomes of a job: a status line until it runs, then its
// log, then how it ended; of one that was halted, what becomes of the job that
// continues it. It ends with the job's exit code.
func Job(ctx context.Context, a *cli.App, id string) error {
	d, err := UntilRun(ctx, a, id)
	if err != nil {
		return Interrupted(a, err, id, d)
	}
	if HasLog(d) {
		if d, err = Log(ctx, a, id, d); err != nil {
			return Interrupted(a, err, id, d)
		}
	}
	if next, ok := successor(a, d); ok {
		return Job(ctx, a, next)
	}
	return End(a, d)
}

// UntilRun shows where a job stands until it runs or has ended.
func UntilRun(ctx context.Context, a *cli.App, id string) (*api.JobDetail, error) {
	var status string
	d, err := watch.Job(ctx, a, id, func(d *api.JobDetail) bool {
		if HasLog(d) || d.State.Final() {
			return true
		}
		status = showStatus(a, d, status)
		return false
	})
	a.ClearStatus()
	return d, err
}

// End tells how a job has ended, and ends with its exit code.
func End(a *cli.App, d *api.JobDetail) error {
	a.Say("%s", jobs.Outcome(d))
	if code := jobs.ExitCode(d); code != 0 {
		return &exit.Error{Code: code}
	}
	return nil
}

// drain is how long the log of a job that has ended may take to end, too.
const drain = 15 * time.Second

// Log copies the log of each try while it watches the job, so that a log which never
// ends (its node was lost) does not hold the user for ever.
func Log(ctx context.Context, a *cli.App, id string, d *api.JobDetail) (*api.JobDetail, error) {
	logCtx, stop := context.WithCancel(ctx)
	defer stop()
	t := &Tail{App: a, ID: id, Options: client.LogOptions{Try: firstTry(d), Follow: true}}
	done := make(chan error, 1)
	go func() { done <- t.Run(logCtx) }() // ended by stop; its end is awaited below
	end, err := watch.Job(ctx, a.Quiet(), id, func(*api.JobDetail) bool { return false })
	if err != nil {
		stop()
		<-done
		if end == nil {
			end = d
		}
		return end, err
	}
	late := time.AfterFunc(drain, stop)
	defer late.Stop()
	if err := <-done; err != nil && logCtx.Err() == nil {
		a.Say("the end of the log is missing: %v; try glog %s", err, id)
	} else if err != nil {
		a.Say("the log did not end with the job; the rest, if there is any: glog %s", id)
	}
	return end, nil
}

// showStatus shows where the job stands. On a terminal it is one line that
// changes; elsewhere a line for each change of what is worth a line, which is
// what statusKey has. It returns that.
func showStatus(a *cli.App, d *api.JobDetail, last string) string {
	key := statusKey(d)
	text := human.Clean(statusText(d, a.Now()))
	switch {
	case a.Term.Err && !a.Term.Dumb:
		if b := bar(d.Progress); b != "" {
			text += " " + b
		}
		if a.Term.Width > 0 {
			text = human.Cut(text, a.Term.Width-1)
		}
		fmt.Fprint(a.Err, "\r\x1b[K"+text)
	case key != last:
		a.Say("%s", text)
	}
	return key
}

// statusKey leaves out what changes all the time.
func statusKey(d *api.JobDetail) string {
	return jobs.StateAs("", &d.Job) + " " + d.Reason + " " + human.Hosts(d.Nodes)
}

// statusText is where a job stands that does not run yet.
func statusText(d *api.JobDetail, now time.Time) string {
	parts := []string{fmt.Sprintf("job %s %s", jobs.ID(&d.Job), jobs.StateAs("", &d.Job))}
	if d.Tasks != nil {
		parts = append(parts, jobs.TaskCounts(d.Tasks))
	}
	if d.Position > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d in the queue", d.Position, d.NumQueued))
	}
	if d.State.Pending() && !d.EstStart.IsZero() {
		parts = append(parts, "start expected "+human.Ago(d.EstStart, now))
	}
	switch {
	case d.ReasonText != "":
		parts = append(parts, d.ReasonText)
	case d.Reason != "":
		parts = append(parts, d.Reason)
	}
	if d.State.Active() && len(d.Nodes) > 0 {
		parts = append(parts, "on "+human.Hosts(d.Nodes))
	}
	if d.Done != nil {
		parts = append(parts, d.Done.String())
	}
	if d.Progress != "" {
		parts = append(parts, d.Progress)
	}
	return strings.Join(parts, ", ")
}

// amounts finds "12 of 80 MiB", "1.5 GiB of 2 GiB" and "3 of 7" in what a node
// says of its progress.
var amounts = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`([0-9.]+) ?([KMGT]?i?B)? of ([0-9.]+) ?([KMGT]?i?B)?`)
})

const barWidth = 20

// bar draws how far a node is, if its words have amounts: [######    ]  31%.
func bar(progress string) string {
	all := amounts().FindAllStringSubmatch(progress, -1)
	if len(all) == 0 {
		return ""
	}
	m := all[len(all)-1] // of files, and of bytes: the bytes
	if m[2] == "" {
		m[2] = m[4]
	}
	done, ok := amount(m[1], m[2])
	total, ok2 := amount(m[3], m[4])
	if !ok || !ok2 || total <= 0 {
		return ""
	}
	part := min(max(done/total, 0), 1)
	full := int(part * barWidth)
	return "[" + strings.Repeat("#", full) + strings.Repeat(" ", barWidth-full) + "] " + strconv.Itoa(int(part*100)) + "%"
}

func amount(number, unit string) (float64, bool) {
	if unit == "" {
		v, err := strconv.ParseFloat(number, 64)
		return v, err == nil
	}
	v, err := humanize.ParseBytes(number + unit)
	return float64(v), err == nil
}
