package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/client"
)

// followJob shows what becomes of a job: a status line until it runs, then its
// log, then how it ended; of one that was halted, what becomes of the job that
// continues it. It ends with the job's exit code.
func (a *App) followJob(ctx context.Context, id string) error {
	d, err := a.awaitRun(ctx, id)
	if err != nil {
		return a.interrupted(err, id, d)
	}
	if hasLog(d) {
		if d, err = a.followLog(ctx, id, d); err != nil {
			return a.interrupted(err, id, d)
		}
	}
	if next, ok := a.successor(d); ok {
		return a.followJob(ctx, next)
	}
	return a.jobEnd(d)
}

// awaitRun shows where a job stands until it runs or has ended.
func (a *App) awaitRun(ctx context.Context, id string) (*api.JobDetail, error) {
	var status string
	d, err := a.watch(ctx, id, func(d *api.JobDetail) bool {
		if hasLog(d) || d.State.Final() {
			return true
		}
		status = a.showStatus(d, status)
		return false
	})
	a.clearStatus()
	return d, err
}

// jobEnd tells how a job has ended, and ends with its exit code.
func (a *App) jobEnd(d *api.JobDetail) error {
	a.say("%s", outcome(d))
	if code := jobExit(d); code != 0 {
		return &exitError{code: code}
	}
	return nil
}

// drain is how long the log of a job that has ended may take to end, too.
const drain = 15 * time.Second

// followLog copies the log while it watches the job, so that a log which never
// ends (its node was lost) does not hold the user for ever.
func (a *App) followLog(ctx context.Context, id string, d *api.JobDetail) (*api.JobDetail, error) {
	logCtx, stop := context.WithCancel(ctx)
	defer stop()
	t := &tail{app: a, id: id, options: client.LogOptions{Follow: true}, tries: len(d.Attempts)}
	done := make(chan error, 1)
	go func() { done <- t.run(logCtx) }() // ended by stop; its end is awaited below
	quiet := &App{Out: a.Out, Err: discard{}, Client: a.Client, Now: a.Now, Sleep: a.Sleep}
	end, err := quiet.watch(ctx, id, func(*api.JobDetail) bool { return false })
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
		a.say("the end of the log is missing: %v; try glog %s", err, id)
	} else if err != nil {
		a.say("the log did not end with the job; the rest, if there is any: glog %s", id)
	}
	return end, nil
}

// discard takes the notes of the second of two watchers.
type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// showStatus shows where the job stands. On a terminal it is one line that
// changes; elsewhere a line for each change of what is worth a line, which is
// what statusKey has. It returns that.
func (a *App) showStatus(d *api.JobDetail, last string) string {
	key := statusKey(d)
	text := clean(statusText(d, a.Now()))
	switch {
	case a.Term.Err:
		if b := bar(d.Progress); b != "" {
			text += " " + b
		}
		if a.Term.Width > 0 {
			text = cut(text, a.Term.Width-1)
		}
		fmt.Fprint(a.Err, "\r\x1b[K"+text)
	case key != last:
		a.say("%s", text)
	}
	return key
}

// statusKey leaves out what changes all the time.
func statusKey(d *api.JobDetail) string {
	return string(d.State) + " " + d.Reason + " " + compressHosts(d.Nodes)
}

// statusText is where a job stands that does not run yet.
func statusText(d *api.JobDetail, now time.Time) string {
	parts := []string{fmt.Sprintf("job %s %s", jobID(&d.Job), d.State)}
	if d.Tasks != nil {
		parts = append(parts, taskCounts(d.Tasks))
	}
	if d.Position > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d in the queue", d.Position, d.NumQueued))
	}
	if d.State.Pending() && !d.EstStart.IsZero() {
		parts = append(parts, "start expected "+relTime(d.EstStart, now))
	}
	switch {
	case d.ReasonText != "":
		parts = append(parts, d.ReasonText)
	case d.Reason != "":
		parts = append(parts, d.Reason)
	}
	if d.State.Active() && len(d.Nodes) > 0 {
		parts = append(parts, "on "+compressHosts(d.Nodes))
	}
	if d.Done != nil {
		parts = append(parts, d.Done.String())
	}
	if d.Progress != "" {
		parts = append(parts, d.Progress)
	}
	return strings.Join(parts, ", ")
}
