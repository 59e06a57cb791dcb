package lab

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing/synctest"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/job"
)

// promise is when a job was said to start, and when that was said.
type promise struct {
	job    job.Number
	at, on time.Time
	calm   int // how often the site was disturbed by then
}

// oracle compares what commands print with each other and with the truth.
type oracle struct {
	s         *site
	p         *people
	promises  []promise
	disturbed []time.Time // what nobody can have reckoned with
	looks     int
	apart     map[job.Number]bool // that were expected at two times when it was looked last
}

func holds(st job.State) bool {
	return st == job.Assigned || st == job.Starting || st == job.Running
}

var sample = regexp.MustCompile(`(?m)^(gctld_[a-z_]+)(?:\{([^}]*)\})? ([0-9.e+]+)$`)

// metric is the sum of a metric's samples whose labels contain some text.
func metric(text, name, labels string) (sum float64) {
	for _, m := range sample.FindAllStringSubmatch(text, -1) {
		if m[1] == name && strings.Contains(m[2], labels) {
			v, _ := strconv.ParseFloat(m[3], 64)
			sum += v
		}
	}
	return sum
}

// look compares all that shows the present. Nothing happens meanwhile.
func (o *oracle) look() {
	s := o.s
	time.Sleep(1500 * time.Millisecond) // metrics are counted anew then
	synctest.Wait()
	o.looks++
	metrics := s.scrape()
	var list api.JobList
	var info api.ClusterInfo
	s.read(&list, "root", "gqueue", "--json")
	s.read(&info, "root", "ginfo", "--json")
	byState, gpus, byUser := map[job.State]int{}, 0.0, map[string]float64{}
	truly, nodes := s.truth.placed()
	calm, whole := o.calmFor(15*time.Minute), true
	for _, j := range list.Jobs {
		if !holds(j.State) {
			o.expect(j)
			continue
		}
		byState[j.State]++
		gpus += j.GPUs
		byUser[j.User] += j.GPUs
		if j.NumNodes > 1 && j.State != job.Running { // its other ranks are ordered when the first one has the image
			whole = false
			continue
		}
		if on := slices.Sorted(slices.Values(j.Nodes)); calm && !slices.Equal(on, nodes[j.Number]) {
			s.found.wrong("job %s is shown on %v and is on %v", j.ID, on, nodes[j.Number])
		}
	}
	for _, st := range []job.State{job.Assigned, job.Starting, job.Running} {
		if n := metric(metrics, "gctld_jobs", fmt.Sprintf("state=%q", st)); int(n) != byState[st] {
			s.found.wrong("gqueue shows %d jobs %s, /metrics %v", byState[st], st, n)
		}
	}
	free, total, jobs := 0.0, 0.0, 0
	for _, n := range info.Nodes {
		for _, g := range n.GPUs {
			free, total = free+float64(g.FreeMilli)/1000, total+1
		}
		jobs += n.Jobs
	}
	if held := metric(metrics, "gctld_gpus", `state="allocated"`); held != gpus || total-free != gpus || calm && whole && float64(truly) != gpus {
		s.found.wrong("GPUs held: gqueue %v, /metrics %v, ginfo %v, truly %d", gpus, held, total-free, truly)
	}
	for user, want := range byUser {
		if got := metric(metrics, "gctld_user_gpus", fmt.Sprintf("user=%q", user)); got != want {
			s.found.wrong("%s holds %v GPUs by gqueue, %v by /metrics", user, want, got)
		}
	}
	o.columns(list)
	o.start(list)
}

// columns looks at tables that people read: no line of them may be lost, and their numbers are those of the list.
func (o *oracle) columns(list api.JobList) {
	lines := strings.Split(strings.TrimSpace(o.s.must("root", "gqueue", "-h", "-o", "id,state,gpus,nodes/reason")), "\n")
	if len(list.Jobs) > 0 && len(lines) != len(list.Jobs) {
		o.s.found.wrong("gqueue has %d lines, and %d jobs by --json", len(lines), len(list.Jobs))
	}
	for _, words := range [][]string{{"ginfo"}, {"ginfo", "--gpus"}, {"ginfo", "--users"}, {"ginfo", "--plan"}, {"ginfo", "-R"}, {"ginfo", "-T"}, {"ginfo", "--licenses"}, {"gqueue", "--start"}, {"gqueue", "-l"}, {"gacct", "shares"}, {"gacct"}} {
		if text := o.s.must("root", words...); strings.Contains(text, "!(") || strings.Contains(text, "<nil>") {
			o.s.found.wrong("%v prints %q", words, text)
		}
	}
}

// expect notes when a waiting job is expected to start.
func (o *oracle) expect(j api.Job) {
	if j.EstStart.IsZero() || j.Tasks != nil || j.Parent != 0 {
		return
	}
	o.promises = append(o.promises, promise{job: j.Number, at: j.EstStart, on: time.Now(), calm: len(o.disturbed)})
}

// start compares what `gqueue --start` says of jobs with what `gqueue explain` says. A list
// has the plan of the last round, and an explanation that of the next one: they may differ
// once, and not again when rounds have gone by.
func (o *oracle) start(list api.JobList) {
	said, before := 0, o.apart
	o.apart = map[job.Number]bool{}
	for _, j := range list.Jobs {
		if j.State != job.Queued || j.Tasks != nil || said == 4 {
			continue
		}
		said++
		var e api.Explanation
		o.s.read(&e, "root", "gqueue", "explain", "--json", j.ID)
		switch {
		case e.Estimate == nil:
			o.s.found.wrong("explain of job %s has no estimate", j.ID)
		case !j.EstStart.IsZero() && !e.Estimate.Now && !e.Estimate.At.IsZero() && e.Estimate.At.Sub(j.EstStart).Abs() > time.Minute:
			if o.apart[j.Number] = true; !before[j.Number] {
				continue
			}
			o.s.found.wrong("job %s (%s) is expected at %s by gqueue --start and at %s by explain", j.ID, j.Reason, j.EstStart.Format(time.DateTime), e.Estimate.At.Format(time.DateTime))
		case len(e.Reasons) == 0 && !e.Estimate.Now:
			o.s.found.wrong("explain of job %s gives no reason", j.ID)
		}
	}
}

// disturb notes that something has happened that nobody can have reckoned with.
func (o *oracle) disturb() { o.disturbed = append(o.disturbed, time.Now()) }

func (o *oracle) calmFor(d time.Duration) bool {
	return len(o.disturbed) == 0 || time.Since(o.disturbed[len(o.disturbed)-1]) > d
}

// kept says how many of the promises were kept: a job that was said to start by some time has started by then,
// if nothing disturbed the site between. It gives a line for people.
func (o *oracle) kept() (told, kept int, line string) {
	var late, early []float64
	first := map[job.Number]time.Time{}
	for _, x := range o.s.truth.runs {
		if at, ok := first[x.id.Job]; !ok || x.assigned.Before(at) {
			first[x.id.Job] = x.assigned
		}
	}
	for _, p := range o.promises {
		at, ok := first[p.job]
		if !ok || at.Before(p.on) || p.calm < len(o.disturbed) && o.disturbed[p.calm].Before(at) {
			continue
		}
		told++
		if d := at.Sub(p.at); d <= time.Minute {
			kept++
			early = append(early, -d.Hours())
		} else {
			late = append(late, d.Hours())
		}
	}
	return told, kept, fmt.Sprintf("%d expected starts, %d came by then (%.1f h earlier in the mean), %d later (%.1f h)", told, kept, mean(early), len(late), mean(late))
}

func mean(list []float64) (m float64) {
	for _, x := range list {
		m += x / float64(len(list))
	}
	return m
}

// final compares what is recorded of all jobs with what people asked for and what ran.
func (o *oracle) final() {
	s := o.s
	var past api.History
	s.read(&past, "root", "gacct", "--json", "-S", s.began.Format("2006-01-02T15:04"))
	ended := map[job.Number]api.PastJob{}
	tasks, gpuSeconds := map[job.Number]int{}, 0.0
	for _, j := range past.Jobs {
		ended[j.Number] = j
		if j.Parent != 0 {
			tasks[j.Parent]++
		}
		if j.Used != nil {
			gpuSeconds += j.Used.GPUSeconds
		}
	}
	for n, x := range o.p.all {
		j, ok := ended[n]
		if !ok {
			s.found.wrong("job %d of %s was acknowledged, and gacct does not have it", n, x.user)
			continue
		}
		o.outcome(x, j, tasks[n])
	}
	var used api.UsageReport
	s.read(&used, "root", "gacct", "usage", "--json", "--by", "user", "-S", s.began.Format(time.DateOnly))
	truly := 0.0
	for _, r := range s.truth.runs {
		truly += float64(r.gpus) * r.ended.Sub(r.assigned).Seconds()
	}
	hours := []float64{gpuSeconds / 3600, used.Total.GPUSeconds / 3600, truly / 3600}
	if math.Abs(hours[0]-hours[1]) > 0.01*hours[1] || math.Abs(hours[2]-hours[1]) > 0.02*hours[1] {
		s.found.wrong("GPU-hours: %.2f by gacct's jobs, %.2f by gacct usage, %.2f truly", hours[0], hours[1], hours[2])
	}
	csv := s.must("root", "gacct", "-n", "--csv", "-o", "id,state", "-S", s.began.Format("2006-01-02T15:04"))
	if n := strings.Count(csv, "\n"); n != len(past.Jobs) {
		s.found.wrong("gacct --csv has %d lines, and %d jobs by --json", n, len(past.Jobs))
	}
	s.t.Logf("%d jobs and arrays of people, %d records, %.0f GPU-hours, %d ranks ran", len(o.p.all), len(past.Jobs), hours[1], len(s.truth.runs))
}

// lateWord is how far what is accounted may be off: an end that is told within ten seconds counts as of then.
const lateWord = 11 * time.Second

// outcome says whether a job ended as it should.
func (o *oracle) outcome(x *sent, j api.PastJob, tasks int) {
	if x.tasks > 0 {
		if tasks != x.tasks && !x.cancelled && j.State != job.Cancelled {
			o.s.found.wrong("array %d has %d tasks, and gacct %d", x.number, x.tasks, tasks)
		}
		return
	}
	want := job.Finished
	switch {
	case x.cancelled || x.again || x.depends:
		return
	case j.State == job.Cancelled && j.Reason == string(job.ByAdmin) && strings.Contains(j.ReasonText, "is drained: moved"):
		return // it may not be restarted, and had to leave its node
	case x.code != 0 || x.limit < x.runs:
		want = job.Failed
	}
	runs := o.s.truth.of(x.number)
	lost := slices.ContainsFunc(runs, func(r *run) bool { return r.code == -1 })
	if j.State != want && j.Reason == string(job.NodeFail) && o.s.truth.untold(x.number, j.ReasonText) {
		lost = true
	}
	if j.State != want && !lost {
		o.s.found.wrong("job %d of %s ends %s %s (%s), want %s; truly %v", x.number, x.user, j.State, j.Reason, j.ReasonText, want, runs)
	}
	if want == job.Failed && j.Reason != string(job.MaxRuntime) && !lost && len(runs) != 1+x.retries {
		o.s.found.wrong("job %d was tried %d times, and has %d retries", x.number, len(runs), x.retries)
	}
	if n := len(runs); n > 0 && j.Used != nil {
		if d := runs[n-1].ended.Sub(runs[n-1].begun) - time.Duration(j.Used.ElapsedS)*time.Second; d.Abs() > lateWord && !lost {
			o.s.found.wrong("job %d ran %s longer than gacct says", x.number, d)
		}
	}
}
