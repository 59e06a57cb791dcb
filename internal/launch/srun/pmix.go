package srun

import (
	"fmt"
	"maps"
	"os"

	"gbatch/internal/launch"
)

// fence is where tasks of several ranks wait for each other.
type fence struct {
	tasks   []int // none: all
	arrived map[*link]bool
	data    map[int][]byte
}

// pmix takes what a rank says for its tasks that speak PMIx.
func (r *run) pmix(w *watch, l *link, f launch.Frame) {
	var m launch.PMIx
	if f.Read(&m) != nil {
		return
	}
	switch {
	case m.Abort != nil:
		r.pmixAbort(w, int(f.Task), *m.Abort)
	case m.Fence != nil:
		r.arrive(w, l, *m.Fence)
	case m.Want != nil && m.Want.Done:
		if k := m.Want.From; k >= 0 && k < len(r.links) {
			_ = r.links[k].Send(launch.KindPMIx, 0, m)
		}
	case m.Want != nil:
		r.want(l, m)
	}
}

// pmixAbort ends the step. If a task asked for that with a code, srun ends with that
// code, whatever those have that are killed. That a task has gone which was told to
// is no news, and others may still save their work.
func (r *run) pmixAbort(w *watch, task int, a launch.PMIxAbort) {
	if r.killed || r.ending && a.Code == nil {
		return
	}
	r.ended.tell()
	fmt.Fprintf(os.Stderr, "srun: error: task %d %s\n", task, a.Text)
	if a.Code != nil {
		code := *a.Code & 0xff
		if code == 0 {
			code = 1
		}
		r.ended.aborted = code
	} else {
		r.ended.code = max(r.ended.code, 1)
	}
	r.abort(w, 0)
}

// want passes on what one rank wants of a task of another. A rank that has gone
// has nothing.
func (r *run) want(from *link, m launch.PMIx) {
	for _, l := range r.links {
		if has(l.at, m.Want.Task) && !l.over && l.Send(launch.KindPMIx, 0, m) == nil {
			return
		}
	}
	m.Want.Done, m.Want.Status = true, notFound
	_ = from.Send(launch.KindPMIx, 0, m)
}

// notFound is PMIx's word for what is not there.
const notFound = -46

// arrive takes in that a rank has arrived at a fence, and lets all go on when it is
// the last.
func (r *run) arrive(w *watch, l *link, m launch.PMIxFence) {
	key := fmt.Sprint(m.Tasks)
	f := w.fences[key]
	if f == nil {
		f = &fence{tasks: m.Tasks, arrived: map[*link]bool{}, data: map[int][]byte{}}
		w.fences[key] = f
	}
	maps.Copy(f.data, m.Data)
	if m.More {
		return
	}
	f.arrived[l] = true
	if r.missing(f) != nil {
		r.stuck(w)
		return
	}
	delete(w.fences, key)
	for l := range f.arrived {
		others := launch.PMIxFence{Tasks: m.Tasks, Data: map[int][]byte{}}
		for task, data := range f.data {
			if !has(l.at, task) {
				others.Data[task] = data
			}
		}
		for _, part := range others.Parts() {
			_ = l.Send(launch.KindPMIx, 0, part)
		}
	}
}

// missing is a rank that has not arrived at a fence, one that has ended before
// others; nil: all have arrived.
func (r *run) missing(f *fence) (found *link) {
	for _, l := range r.links {
		if f.arrived[l] || !takesPart(l.at, f.tasks) {
			continue
		}
		if found = l; l.over {
			return l
		}
	}
	return found
}

func takesPart(at launch.Placed, tasks []int) bool {
	if len(tasks) == 0 {
		return len(at.Tasks) > 0
	}
	for _, id := range tasks {
		if has(at, id) {
			return true
		}
	}
	return false
}

// stuck ends the step if tasks wait at a fence for a rank all of whose tasks have
// ended.
func (r *run) stuck(w *watch) {
	for _, f := range w.fences {
		if l := r.missing(f); l != nil && l.over && len(f.arrived) > 0 && !r.ending && r.ended.left > 0 {
			r.ended.tell()
			fmt.Fprintf(os.Stderr, "srun: error: all tasks on %s have ended, and others wait for them in MPI\n", l.name)
			r.ended.code = max(r.ended.code, 1)
			r.abort(w, 0)
			return
		}
	}
}
