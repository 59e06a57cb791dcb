package lab

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"gbatch/internal/job"
)

// sent is a job, or an array, that was acknowledged.
type sent struct {
	number    job.Number
	user      string
	tasks     int // of an array
	runs      time.Duration
	limit     time.Duration
	code      int
	retries   int
	cancelled bool // somebody asked for it
	depends   bool
	again     bool // it may be halted, or begin anew by itself
}

// people is who submits.
type people struct {
	s      *site
	all    map[job.Number]*sent
	recent []*sent // that somebody may look at, cancel or change
}

// work is what everybody does in a step of the lab: more by day than by night, less on weekends.
func (p *people) work(step time.Duration, load float64) {
	t := time.Now().UTC()
	rate := 12 * load // submissions in an hour
	switch h := t.Hour(); {
	case t.Weekday() == time.Saturday || t.Weekday() == time.Sunday:
		rate *= 0.5
	case h >= 8 && h < 19:
		rate *= 1.7
	default:
		rate *= 0.6
	}
	for want := rate * step.Hours(); want > 0; want-- {
		if p.s.rand.Float64() < want {
			p.submit()
		}
	}
	if len(p.recent) > 0 && p.s.rand.IntN(4) == 0 {
		p.change(p.recent[p.s.rand.IntN(len(p.recent))])
	}
	if len(p.recent) > 60 {
		p.recent = p.recent[len(p.recent)-60:]
	}
}

// submit has somebody submit a job of a kind that is drawn.
func (p *people) submit() {
	r, s := p.s.rand, p.s
	x := &sent{user: s.users[r.IntN(len(s.users))], runs: time.Duration(5+r.IntN(240)) * time.Minute}
	project := []string{"default", "vision", "vision", "robotics", "nlp"}[r.IntN(5)]
	words := []string{"gsubmit", "--image", "debian:stable", "-A", project, "--mem", "16G"}
	gpus := []int{1, 1, 1, 2, 2, 4, 8}[r.IntN(7)]
	switch k := r.IntN(20); {
	case k < 2: // a sweep
		x.tasks, x.runs, gpus = 5+r.IntN(30), time.Duration(5+r.IntN(40))*time.Minute, 1
		words = append(words, "-a", fmt.Sprintf("0-%d%%%d", x.tasks-1, 4+r.IntN(8)))
	case k < 4: // on several nodes
		words, gpus = append(words, "-N", strconv.Itoa(2+r.IntN(3))), 8
		x.again = true
	case k < 5: // without a GPU
		gpus = 0
		words = append(words, "-c", strconv.Itoa(4+r.IntN(20)), "-L", "matlab:1")
	case k < 7: // that may be interrupted
		words = append(words, "-q", "scavenge", "--requeue")
		x.again = true
	case k < 8:
		words = append(words, "-q", "urgent")
	case k < 9 && len(p.recent) > 0: // after another one
		words = append(words, "-d", fmt.Sprintf("afterok:%d", p.recent[len(p.recent)-1].number))
		x.depends = true
	case k < 10:
		words = append(words, "--begin", "+"+strconv.Itoa(1+r.IntN(10))+"h")
	}
	if r.IntN(9) == 0 {
		x.code, x.runs = 1+r.IntN(3), time.Duration(1+r.IntN(20))*time.Minute
		if r.IntN(2) == 0 {
			x.retries = 2
			words = append(words, "--retry", "2")
		}
	}
	if x.limit = x.runs + x.runs*time.Duration(r.IntN(200))/100 + 8*time.Minute; r.IntN(25) == 0 {
		x.limit = x.runs / 2 // it is ended by it
	}
	if x.limit = x.limit.Truncate(time.Minute); r.IntN(10) > 0 || x.limit < x.runs {
		words = append(words, "-t", strconv.Itoa(int(x.limit.Minutes())))
	}
	words = append(words, "-G", strconv.Itoa(gpus), "-J", fmt.Sprintf("%s-r%d-x%d", project, int(x.runs.Seconds()), x.code), "--", "python", "train.py")
	p.sent(x, words)
}

// sent types a submission and notes what was acknowledged.
func (p *people) sent(x *sent, words []string) {
	a := p.s.command(x.user, words...)
	n, err := strconv.ParseUint(strings.TrimSpace(a.out), 10, 64)
	if a.code == 6 && strings.Contains(a.err, "GPUs at once, and the job asks for") {
		return // as the rules are just then
	}
	if a.code != 0 || err != nil {
		p.s.found.wrong("%s: exit code %d: %s%s", strings.Join(words, " "), a.code, a.out, a.err)
		return
	}
	x.number = job.Number(n)
	p.all[x.number] = x
	p.recent = append(p.recent, x)
}

// change has a user do something to a job of theirs, which may have ended meanwhile.
func (p *people) change(x *sent) {
	id, s := fmt.Sprint(x.number), p.s
	switch s.rand.IntN(6) {
	case 0:
		x.cancelled = true
		s.command(x.user, "gcancel", "-y", id)
	case 1:
		s.command(x.user, "gqueue", "update", id, "--priority", "-50")
	case 2:
		if a := s.command(x.user, "gcancel", "--hold", id); a.code == 0 && strings.Contains(a.out, ": held") {
			time.Sleep(20 * time.Minute)
			s.must(x.user, "gcancel", "--release", id)
		}
	case 3: // more time, where that breaks no promise
		if a := s.command(x.user, "gqueue", "update", id, "--time", "+1:00:00"); a.code == 0 {
			x.limit += time.Hour
		}
	case 4:
		s.must(x.user, "gqueue", "show", id)
	case 5:
		s.command(x.user, "gqueue", "explain", id)
	}
}
