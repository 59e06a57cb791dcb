package pod

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Run begins the programs, sees to it that all have ended, and returns the one by whose end
// it is to be told how that was: the first that failed, else the own. An error is that it
// could not begin.
func (p *Pod) Run(programs []*Program) (*Program, error) {
	said, err := p.run(programs)
	p.endAll()
	return said, err
}

func (p *Pod) run(programs []*Program) (*Program, error) {
	of, i := 0, 0
	for _, one := range programs {
		if one.Role == First {
			of++
		}
	}
	var together []*Program
	for _, one := range programs {
		if one.Role == Own || one.Role == Beside {
			together = append(together, one)
			continue
		}
		if one.Role == First {
			i++
			Announce(p.Log, one.Name, i, of)
		}
		if err := p.begin(one); err != nil {
			return one, err
		}
		if one.Role == Sidecar {
			continue
		}
		p.until(func() bool { return !p.runs(one) }, 0)
		if one.code != 0 || p.Stopped() {
			return one, nil
		}
		one.Drop()
	}
	if of > 0 {
		Announce(p.Log, "", 0, 0)
	}
	slices.SortStableFunc(together, func(a, b *Program) int { return int(a.Role) - int(b.Role) })
	return p.runTogether(together)
}

// Announce tells in the log whose output follows; "": the job's own.
func Announce(log io.Writer, name string, i, of int) {
	text := "the job itself"
	if name != "" {
		text = fmt.Sprintf("%s, %d of %d that run before the job", name, i, of)
	}
	_, _ = fmt.Fprintf(log, "gbatch: %s\n", text)
}

// runTogether runs the own program, the first of the list, and those beside it.
func (p *Pod) runTogether(list []*Program) (*Program, error) {
	for i, one := range list {
		if err := p.begin(one); err != nil {
			return one, err
		}
		if i == 0 {
			p.Served()
		}
	}
	var failed *Program // the first
	over := func() bool {
		left := 0
		for _, one := range list {
			if p.runs(one) {
				left++
			} else if failed == nil && one.code != 0 {
				failed = one
			}
		}
		return left == 0
	}
	p.until(func() bool { return over() || failed != nil && p.FailTogether }, 0)
	if !over() {
		p.end(p.mains())
		over()
	}
	if failed == nil || p.Stopped() {
		return list[0], nil
	}
	return failed, nil
}

func (p *Pod) begin(one *Program) error {
	one.began = time.Now()
	return one.Begin()
}

func (p *Pod) runs(one *Program) bool { return slices.Contains(p.Running(), one) }

// mains are those that run and are no sidecars.
func (p *Pod) mains() []*Program {
	return slices.DeleteFunc(p.Running(), func(one *Program) bool { return one.Role == Sidecar })
}

// endAll ends what still runs: programs beside one that could not begin, then sidecars, the
// last first.
func (p *Pod) endAll() {
	p.end(p.mains())
	p.mu.Lock()
	p.closes = true
	p.mu.Unlock()
	sidecars := p.Running()
	slices.Reverse(sidecars)
	deadline := time.Now().Add(p.Grace)
	for _, one := range sidecars {
		if p.runs(one) {
			p.stop(one, unix.SIGTERM)
			p.until(func() bool { return !p.runs(one) }, max(1, time.Until(deadline)))
		}
	}
	p.kill(sidecars)
}

// end ends programs at the same time.
func (p *Pod) end(list []*Program) {
	for _, one := range list {
		p.stop(one, p.Signal)
	}
	p.until(func() bool { return !slices.ContainsFunc(list, p.runs) }, max(1, p.Grace))
	p.kill(list)
}

func (p *Pod) kill(list []*Program) {
	for _, one := range list {
		if p.runs(one) {
			p.stop(one, unix.SIGKILL)
		}
	}
	p.until(func() bool { return !slices.ContainsFunc(list, p.runs) }, 0)
}

func (p *Pod) stop(one *Program, sig syscall.Signal) {
	if err := one.Stop(sig); err != nil {
		_, _ = fmt.Fprintf(p.Log, "gbatch: %s cannot be ended yet\n", cmp.Or(one.Name, "the job itself"))
	}
}

// until does what comes up until something has come true, or for so long; 0: for ever.
func (p *Pod) until(come func() bool, limit time.Duration) {
	var late <-chan time.Time
	if limit > 0 {
		late = time.After(limit)
	}
	for !come() {
		var due <-chan time.Time
		if one := p.next(); one != nil {
			due = time.After(time.Until(one.again))
		}
		select {
		case f := <-p.Calls:
			f()
		case e := <-p.ends:
			e.of.code = e.taken()
			p.plan(e.of)
		case <-due:
			p.beginAgain(p.next())
		case <-p.wake:
		case <-late:
			return
		}
	}
}

// Sidecars begin again when they end: at once, then after 10 seconds, twice as long each
// time up to 5 minutes, and at once again after one that ran for 10 minutes.
const (
	againFirst = 10 * time.Second
	againMost  = 5 * time.Minute
	againGood  = 10 * time.Minute
)

// plan decides whether a program that has ended begins again.
func (p *Pod) plan(one *Program) {
	p.mu.Lock()
	closes := p.closes
	p.mu.Unlock()
	if one.Role != Sidecar || closes || p.Stopped() {
		return
	}
	if time.Since(one.began) >= againGood {
		one.restarts = 0
	}
	wait := time.Duration(0)
	if one.restarts > 0 {
		wait = min(againMost, againFirst<<min(one.restarts-1, 10))
	}
	one.restarts++
	_, _ = fmt.Fprintf(p.Log, "gbatch: %s %s; it begins again in %s\n", one.Name, one.Text(), wait)
	p.mu.Lock()
	one.again = time.Now().Add(wait)
	p.mu.Unlock()
}

// next is who begins again first; nil: nobody does now.
func (p *Pod) next() (first *Program) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paused || p.closes {
		return nil
	}
	for _, one := range p.all {
		if !one.again.IsZero() && (first == nil || one.again.Before(first.again)) {
			first = one
		}
	}
	return first
}

// beginAgain begins a program with its files as they were.
func (p *Pod) beginAgain(one *Program) {
	if one == nil {
		return
	}
	p.mu.Lock()
	one.again = time.Time{}
	p.mu.Unlock()
	err := one.Renew()
	if err == nil {
		err = p.begin(one)
	}
	if err != nil {
		p.plan(one)
	}
}
