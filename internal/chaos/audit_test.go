package chaos

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"gbatch/internal/job"
	"gbatch/internal/state"
)

// audit looks at what truly happens, whatever the controller believes, and at what clients are told.
type audit struct {
	w     *world
	lease time.Duration // of nodes

	suspect time.Duration // for so long nodes may be silent

	mu     sync.Mutex
	first  string // violation
	tally  tally
	begun  map[string]begun         // ranks of attempts whose program began
	ends   map[string]int           // with which code programs ended by themselves
	ran    map[string]time.Duration // how long programs of ranks of attempts did
	arrays map[job.Number]int       // tasks of arrays
	tasks  map[taskEnd]bool         // how tasks' programs ended by themselves
	alive  map[string]*container    // by job and rank
	acked  map[job.Number]string    // submissions, by the key
	uuids  map[job.Number]string    // of jobs, as they were first shown
	cancel map[job.Number]bool      // somebody wanted it
	vague  map[job.Number]bool      // nobody can tell when a program of it ended
	past   []porcupine.Operation    // what clients asked and were told

	common commonClock
}

func newAudit(w *world) *audit {
	return &audit{w: w, begun: map[string]begun{}, ends: map[string]int{}, ran: map[string]time.Duration{}, alive: map[string]*container{}, acked: map[job.Number]string{},
		uuids: map[job.Number]string{}, cancel: map[job.Number]bool{}, vague: map[job.Number]bool{}, arrays: map[job.Number]int{}, tasks: map[taskEnd]bool{}, tally: newTally()}
}

// violation notes what does not hold, and ends the history.
func (a *audit) violation(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.violated(format, args...)
}

func (a *audit) violated(format string, args ...any) {
	if a.first == "" && a.w.ctx.Err() == nil {
		a.first = fmt.Sprintf("after %s: ", a.w.now().Round(time.Millisecond)) + fmt.Sprintf(format, args...)
		a.w.note("VIOLATION: %s", a.first)
		a.w.over()
	}
}

func (a *audit) fault(kind string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tally.faults[kind]++
}

func (a *audit) message(lost bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tally.messages++
	if lost {
		a.tally.lost++
	}
}

// saw counts what a history is to have at times.
func (a *audit) saw(what string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tally.seen[what]++
}

func (a *audit) again() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tally.repeated++
}

func (a *audit) counted() tally {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.tally
}

// step looks at the controller after each of its steps.
func (a *audit) step(p *process) {
	if err := p.ctl.Check(); err != nil && p.ctx.Err() == nil {
		a.violation("the controller contradicts itself: %v", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tally.steps++
}

// started looks at what a new process of the controller knows.
func (a *audit) started(p *process) {
	a.mu.Lock()
	defer a.mu.Unlock()
	v := p.loop.View()
	for _, n := range keys(a.acked) {
		if v.Job(n) == nil {
			a.violated("job %d was acknowledged (%s) and is gone after a restart", n, a.acked[n])
		}
	}
	for j := range v.All() {
		a.seen(j.Number, j.Identity())
		a.named(j)
	}
}

// named checks that a job is what was submitted by its key, which its name ends with.
func (a *audit) named(j *state.Job) {
	if key := a.acked[j.Number]; key != "" && !strings.HasSuffix(j.Name, "-"+key) {
		a.violated("job %d was submitted as %s and has the name %q", j.Number, key, j.Name)
	}
}

// seen checks that a number is that of one job for ever.
func (a *audit) seen(n job.Number, uuid string) {
	if was, ok := a.uuids[n]; ok && was != uuid {
		a.violated("the number %d was given twice", n)
	}
	a.uuids[n] = uuid
}

func keys[V any](m map[job.Number]V) (out []job.Number) {
	for n := range m {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// begun is when a program began, and when its node was told of it.
type begun struct {
	on       *machine
	at, told time.Duration
}

// taskEnd is the end of a task of a job of this name.
type taskEnd struct {
	job  string
	task uint32
	well bool
}

// begin is the begin of a program, before it runs.
func (a *audit) begin(m *machine, c *container) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tally.begun++
	once, who := c.uuid+" "+c.id.String(), fmt.Sprintf("%s %d", c.uuid, c.id.Rank)
	if was, ok := a.begun[once]; ok && m == was.on && m.unknowable(was) {
		a.tally.seen["ranks that ran twice by an image of just before"]++
	} else if ok {
		a.violated("rank %s runs twice", c.id)
	}
	a.begun[once], c.began = begun{m, a.w.now(), c.told}, a.w.now()
	if o := a.alive[who]; o != nil {
		a.violated("job %d runs on %s as %s while it runs on %s as %s", c.id.Job, m.name, c.id, o.m.name, o.id)
	}
	a.alive[who] = c
	cores := c.cores
	for _, id := range sorted(m.runs) {
		o := m.runs[id]
		cores += o.cores
		for _, g := range c.gpus {
			if slices.Contains(o.gpus, g) {
				a.violated("%s belongs to %s and to %s", g, o.id, c.id)
			}
		}
	}
	if cores > m.inventory().CPUs {
		a.violated("%d cores of %s are in use", cores, m.name)
	}
	a.w.note("%s begins %s", m.name, c.id)
}

// end is the end of a program.
func (a *audit) end(m *machine, c *container, code, signal int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over(c)
	if signal == 0 {
		a.ends[c.uuid+" "+c.id.String()] = code
		a.tasks[taskEnd{c.name, c.id.Task, code == 0}] = true
	}
	a.w.note("%s ends %s with %d", m.name, c.id, code)
}

// crashed is the end of a program with its machine.
func (a *audit) crashed(m *machine, c *container) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over(c)
	a.w.note("%s crashes with %s", m.name, c.id)
}

func (a *audit) over(c *container) {
	rank := c.uuid + " " + c.id.String()
	a.ran[rank] = max(a.ran[rank], a.w.now()-c.began)
	if who := fmt.Sprintf("%s %d", c.uuid, c.id.Rank); a.alive[who] == c {
		delete(a.alive, who)
	}
}

// array says how many tasks an array has that was acknowledged; 0: it is none.
func (a *audit) array(n job.Number, tasks int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if tasks > 0 {
		a.arrays[n] = tasks
		a.tally.seen["arrays"]++
	}
}

// wants says that somebody wants a job to be cancelled.
func (a *audit) wants(n job.Number) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cancel[n] = true
}

// unclear says that a job's node was started again and its clock set since a program ended there: when that was, nobody can tell.
func (a *audit) unclear(n job.Number) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.vague[n] = true
}

// call begins an operation of a client's.
func (a *audit) call() int64 { return int64(a.w.now()) }

// returned ends it.
func (a *audit) returned(client int, began int64, op operation) {
	a.mu.Lock()
	defer a.mu.Unlock()
	o := porcupine.Operation{ClientId: client, Input: op, Call: began, Output: op, Return: int64(a.w.now())}
	if op.unknown {
		if op.kind == "read" {
			return
		}
		o.Return = math.MaxInt64 // it may have its effect at any time
	}
	if op.kind == "submit" && !op.unknown {
		a.tally.submitted++
		a.acked[op.number] = op.key
	}
	if op.uuid != "" {
		a.seen(op.number, op.uuid)
	}
	a.past = append(a.past, o)
}
