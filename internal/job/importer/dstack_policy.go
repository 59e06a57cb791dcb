package importer

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gbatch/internal/job"
)

// Defaults of dstack.
const (
	dstackStop       job.Duration = 300
	dstackRetry      job.Duration = 3600
	dstackBackoff    job.Duration = 15
	dstackMaxBackoff job.Duration = 600
)

// offDuration reads a duration; off says that there is none, and true that it
// is as if left out.
func (d *decoder) offDuration(n *node) (x job.Duration, off, ok bool) {
	switch {
	case n.kind == boolKind:
		return 0, n.text == "false", n.text == "false"
	case n.kind == stringKind && (n.text == "off" || n.plain && slices.Contains([]string{"no", "No", "NO", "Off", "OFF"}, n.text)):
		return 0, true, true
	case n.kind != stringKind && n.kind != numberKind:
		d.wrongKind(n, `a duration such as "2h", a number of seconds, or off`)
		return 0, false, false
	}
	x, err := parseDstackDuration(n.text)
	if err == nil && x == 0 {
		err = errors.New("must be longer than zero")
	}
	if err != nil {
		d.problem(n, fmt.Sprintf("is %s: %v", quote(n.text), err), "")
		return 0, false, false
	}
	return x, false, true
}

func readDstackMaxDuration(d *decoder, n *node, t *dstack) {
	x, off, ok := d.offDuration(n)
	if !ok || off {
		return
	}
	if t.sub.Spec.Request.Scheduling.MaxDuration = x; x >= 60 { // a shorter one is refused
		t.sub.Spec.Gbatch.LimitScope = job.LimitAttempt
	}
	d.becomes("request.scheduling.maxDuration", n)
}

func readDstackStopDuration(d *decoder, n *node, t *dstack) {
	x, off, ok := d.offDuration(n)
	if !ok {
		return
	}
	if off {
		d.note(n, "is read as the longest time that the site allows: a job that does not end is killed then")
	}
	t.sub.Spec.Gbatch.StopGrace = x
	d.becomes("gbatch.stopGrace", n)
}

func readDstackIdle(d *decoder, n *node, _ *dstack) {
	if _, _, ok := d.offDuration(n); ok {
		d.note(n, cloudOnly)
	}
}

func readDstackPrice(d *decoder, n *node, _ *dstack) {
	if x, ok := d.number(n, "a number"); ok && x <= 0 {
		d.problem(n, "must be above 0, is "+n.text, "")
	} else if ok {
		d.note(n, cloudOnly)
	}
}

// readDstackPriority keeps the order of tasks with priorities. Jobs can only
// lower their own, so the highest is that of a job without one.
func readDstackPriority(d *decoder, n *node, t *dstack) {
	if x, ok := d.integer(n, 0, 100); ok {
		t.sub.Spec.Gbatch.Priority = x - 100
		d.becomes("gbatch.priority", n)
		if x < 100 {
			d.note(n, fmt.Sprintf("is read as %d, since jobs can only lower their priority: 100 is that of a job without one", x-100))
		}
	}
}

// dstackRetries is retry.
type dstackRetries struct {
	events   []string
	duration job.Duration
}

var dstackRetryFields = []field[dstackRetries]{
	{"on_events", func(d *decoder, n *node, r *dstackRetries) {
		r.events = nil
		d.elements(n, func(n *node) {
			if s, ok := d.oneOf(n, "no-capacity", "interruption", "error"); ok {
				r.events = append(r.events, s)
			}
		})
		if n.kind == arrayKind && len(n.kids) == 0 {
			d.problem(n, "must not be empty", "leave it out for all events, or write \"retry: false\"")
		}
	}, false},
	{"duration", func(d *decoder, n *node, r *dstackRetries) {
		if x, off, ok := d.offDuration(n); ok && off {
			d.problem(n, "must be a duration", "")
		} else if ok {
			r.duration = x
		}
	}, false},
}

// readDstackRetry reads true, false or an object. A task always waits in the
// queue; no-capacity says for how long.
func readDstackRetry(d *decoder, n *node, t *dstack) {
	r := dstackRetries{events: []string{"no-capacity", "interruption", "error"}, duration: dstackRetry}
	if n.kind == objectKind {
		object(d, n, dstackRetryFields, &r)
	} else if yes, ok := d.boolean(n); !ok || !yes {
		if ok {
			d.note(n, "does not make the task fail when nothing is free: it waits in the queue")
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
		d.note(n, fmt.Sprintf("is read as: wait in the queue for at most %s", r.duration))
	}
	if len(on) > 0 {
		g.Retry = &job.Retry{On: on, Window: r.duration, Backoff: dstackBackoff, MaxWait: dstackMaxBackoff}
	}
	d.becomes("gbatch.retry", n)
	d.becomes("gbatch.maxQueued", n)
}

var dstackUtilizationFields = []field[job.IdleGPU]{
	{"min_gpu_utilization", func(d *decoder, n *node, i *job.IdleGPU) { i.MinUtilization, _ = d.integer(n, 0, 100) }, true},
	{"time_window", func(d *decoder, n *node, i *job.IdleGPU) {
		x, off, ok := d.offDuration(n)
		switch {
		case ok && (off || x < 300):
			d.problem(n, "must be at least 5m", "")
		case ok:
			i.Window = x
		}
	}, true},
}

func readDstackUtilization(d *decoder, n *node, t *dstack) {
	var i job.IdleGPU
	before := len(d.found)
	if !object(d, n, dstackUtilizationFields, &i) || len(d.found) > before {
		return
	}
	if i.MinUtilization == 0 {
		d.note(n, "is not used: no utilization is below 0")
		return
	}
	t.sub.Spec.Gbatch.IdleGPU = &i
	d.becomes("gbatch.idleGpu", n)
	d.note(n, "ends the job when the mean of every GPU is too low, where dstack looks at each GPU alone")
}

func readDstackSchedule(d *decoder, n *node, t *dstack) {
	g := t.sub.Spec.Gbatch
	one := func(n *node) {
		s, ok := d.str(n)
		if !ok {
			return
		}
		line, err := convertCron(s)
		if err != nil {
			d.problem(n, fmt.Sprintf("is %s: %v", quote(s), err), "")
			return
		}
		if line != strings.Join(strings.Fields(s), " ") {
			d.note(n, fmt.Sprintf("is read as %q: day 0 is Monday in dstack, and Sunday here", line))
		}
		d.becomes(fmt.Sprintf("gbatch.cron[%d]", len(g.Cron)), n)
		g.Cron = append(g.Cron, line)
	}
	object(d, n, []field[dstack]{{"cron", func(d *decoder, n *node, _ *dstack) {
		if n.kind == stringKind {
			one(n)
			return
		}
		d.elements(n, one)
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
		return nil, fmt.Errorf("has the days %s: want 0 for Monday to 6 for Sunday", quote(item))
	}
	var days []string
	for day := first; day <= last; day += step {
		days = append(days, strconv.Itoa((day+1)%7))
	}
	return days, nil
}
