package dstack

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gbatch/internal/document"
	"gbatch/internal/job"
)

// Defaults of dstack.
const (
	stopGrace     job.Duration = 300
	retryDuration job.Duration = 3600
	backoff       job.Duration = 15
	maxBackoff    job.Duration = 600
)

// offDuration reads a duration; off says that there is none, and true that it
// is as if left out.
func offDuration(d *decoder, n *node) (x job.Duration, off, ok bool) {
	switch {
	case n.Kind == document.BoolKind:
		return 0, n.Text == "false", n.Text == "false"
	case n.Kind == document.StringKind && (n.Text == "off" || n.Plain && slices.Contains([]string{"no", "No", "NO", "Off", "OFF"}, n.Text)):
		return 0, true, true
	case n.Kind != document.StringKind && n.Kind != document.NumberKind:
		d.WrongKind(n, `a duration such as "2h", a number of seconds, or off`)
		return 0, false, false
	}
	x, err := parseDuration(n.Text)
	if err == nil && x == 0 {
		err = errors.New("must be longer than zero")
	}
	if err != nil {
		d.Problem(n, fmt.Sprintf("is %s: %v", document.Quote(n.Text), err), "")
		return 0, false, false
	}
	return x, false, true
}

func readMaxDuration(d *decoder, n *node, t *task) {
	x, off, ok := offDuration(d, n)
	if !ok || off {
		return
	}
	if t.sub.Spec.Request.Scheduling.MaxDuration = x; x >= 60 { // a shorter one is refused
		t.sub.Spec.Gbatch.LimitScope = job.LimitAttempt
	}
	d.Becomes("request.scheduling.maxDuration", n)
}

func readStopDuration(d *decoder, n *node, t *task) {
	x, off, ok := offDuration(d, n)
	if !ok {
		return
	}
	if off {
		d.Note(n, "is read as the longest time that the site allows: a job that does not end is killed then")
	}
	t.sub.Spec.Gbatch.StopGrace = x
	d.Becomes("gbatch.stopGrace", n)
}

func readIdle(d *decoder, n *node, _ *task) {
	x, err := parseDuration(n.Text)
	atOnce := err == nil && x == 0 && n.Kind != document.BoolKind // a machine is given back at once
	if !atOnce {
		_, _, atOnce = offDuration(d, n)
	}
	if atOnce {
		d.Note(n, cloudOnly)
	}
}

func readPrice(d *decoder, n *node, _ *task) {
	if x, ok := d.Number(n, "a number"); ok && x <= 0 {
		d.Problem(n, "must be above 0, is "+n.Text, "")
	} else if ok {
		d.Note(n, cloudOnly)
	}
}

// readPriority keeps the order of tasks with priorities. Jobs can only
// lower their own, so the highest is that of a job without one.
func readPriority(d *decoder, n *node, t *task) {
	if x, ok := d.Integer(n, 0, 100); ok {
		t.sub.Spec.Gbatch.Priority = x - 100
		d.Becomes("gbatch.priority", n)
		if x < 100 {
			d.Note(n, fmt.Sprintf("is read as %d, since jobs can only lower their priority: 100 is that of a job without one", x-100))
		}
	}
}

// retries is retry.
type retries struct {
	events   []string
	duration job.Duration
}

var retryFields = []field[retries]{
	{"on_events", func(d *decoder, n *node, r *retries) {
		r.events = nil
		d.Elements(n, func(n *node) {
			if s, ok := d.OneOf(n, "no-capacity", "interruption", "error"); ok {
				r.events = append(r.events, s)
			}
		})
		if n.Kind == document.ArrayKind && len(n.Kids) == 0 {
			d.Problem(n, "must not be empty", "leave it out for all events, or write \"retry: false\"")
		}
	}, false},
	{"duration", func(d *decoder, n *node, r *retries) {
		if x, off, ok := offDuration(d, n); ok && off {
			d.Problem(n, "must be a duration", "")
		} else if ok {
			r.duration = x
		}
	}, false},
}

// readRetry reads true, false or an object. A task always waits in the
// queue; no-capacity says for how long.
func readRetry(d *decoder, n *node, t *task) {
	r := retries{events: []string{"no-capacity", "interruption", "error"}, duration: retryDuration}
	if n.Kind == document.ObjectKind {
		document.Object(d, n, retryFields, &r)
	} else if yes, ok := d.Boolean(n); !ok || !yes {
		if ok {
			d.Note(n, "does not make the task fail when nothing is free: it waits in the queue")
		}
		return
	}
	g := t.sub.Spec.Gbatch
	var on []string
	for _, event := range []string{"error", "interruption"} {
		if slices.Contains(r.events, event) {
			on = append(on, event)
		}
	}
	if slices.Contains(r.events, "no-capacity") {
		g.MaxQueued = r.duration
		d.Note(n, fmt.Sprintf("is read as: wait in the queue for at most %s", r.duration))
	}
	if len(on) > 0 {
		g.Retry = &job.Retry{On: on, Window: r.duration, Backoff: backoff, MaxWait: maxBackoff}
	}
	d.Becomes("gbatch.retry", n)
	d.Becomes("gbatch.maxQueued", n)
}

var utilizationFields = []field[job.IdleGPU]{
	{"min_gpu_utilization", func(d *decoder, n *node, i *job.IdleGPU) { i.MinUtilization, _ = d.Integer(n, 0, 100) }, true},
	{"time_window", func(d *decoder, n *node, i *job.IdleGPU) {
		x, off, ok := offDuration(d, n)
		switch {
		case ok && (off || x < 300):
			d.Problem(n, "must be at least 5m", "")
		case ok:
			i.Window = x
		}
	}, true},
}

func readUtilization(d *decoder, n *node, t *task) {
	var i job.IdleGPU
	before := d.Count()
	if !document.Object(d, n, utilizationFields, &i) || d.Count() > before {
		return
	}
	if i.MinUtilization == 0 {
		d.Note(n, "is not used: no utilization is below 0")
		return
	}
	t.sub.Spec.Gbatch.IdleGPU = &i
	d.Becomes("gbatch.idleGpu", n)
	d.Note(n, "ends the job when the mean of every GPU is too low, where dstack looks at each GPU alone")
}

func readSchedule(d *decoder, n *node, t *task) {
	g := t.sub.Spec.Gbatch
	one := func(n *node) {
		s, ok := d.Str(n)
		if !ok {
			return
		}
		line, err := convertCron(s)
		if err != nil {
			d.Problem(n, fmt.Sprintf("is %s: %v", document.Quote(s), err), "")
			return
		}
		if line != strings.Join(strings.Fields(s), " ") {
			d.Note(n, fmt.Sprintf("is read as %q: day 0 is Monday in dstack, and Sunday here", line))
		}
		d.Becomes(fmt.Sprintf("gbatch.cron[%d]", len(g.Cron)), n)
		g.Cron = append(g.Cron, line)
	}
	document.Object(d, n, []field[task]{{"cron", func(d *decoder, n *node, _ *task) {
		if n.Kind == document.StringKind {
			one(n)
			return
		}
		d.Elements(n, one)
	}, true}}, t)
}

// convertCron turns a line whose days of the week start with Monday as 0 into
// one whose days start with Sunday. Names of days stay as they are.
func convertCron(line string) (string, error) {
	fields := strings.Fields(line)
	if len(fields) != 5 {
		return "", errors.New(`want five fields, as "30 6 * * 0-4": minute, hour, day of the month, month, day of the week`)
	}
	if fields[4] == "*" {
		return strings.Join(fields, " "), nil
	}
	if fields[2] != "*" {
		return "", errors.New("restricts the day of the month and that of the week: dstack wants both to fit, and here one is enough; write two files, or check the day in commands")
	}
	var days []string
	for item := range strings.SplitSeq(fields[4], ",") {
		some, err := convertDays(item)
		if err != nil {
			return "", err
		}
		days = append(days, some...)
	}
	fields[4] = strings.Join(slices.Compact(days), ",")
	return strings.Join(fields, " "), nil
}

// convertDays expands one item of days: N, N-M, * with /STEP, or names.
func convertDays(item string) ([]string, error) {
	base, stepText, stepped := strings.Cut(item, "/")
	if strings.Trim(base, "0123456789-*") != "" {
		return []string{item}, nil // names, which mean the same everywhere
	}
	first, last, step := 0, 6, 1
	low, high, ranged := strings.Cut(base, "-")
	var err error
	if base != "*" {
		first, err = strconv.Atoi(low)
		if last = first; ranged && err == nil {
			last, err = strconv.Atoi(high)
		} else if stepped {
			last = 6
		}
	}
	if stepped && err == nil {
		step, err = strconv.Atoi(stepText)
	}
	if err != nil || first > last || last > 6 || step < 1 {
		return nil, fmt.Errorf("has the days %s: want 0 for Monday to 6 for Sunday", document.Quote(item))
	}
	var days []string
	for day := first; day <= last; day += step {
		days = append(days, strconv.Itoa((day+1)%7))
	}
	return days, nil
}
