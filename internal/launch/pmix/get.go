package pmix

import (
	"strings"
	"time"

	"gbatch/internal/launch"
	"gbatch/internal/launch/pmix/wire"
)

// get answers who wants what a task has put: at once, or when it has.
func (s *Server) get(p *peer, tag uint32, r *wire.Reader) {
	g := r.Get()
	if r.Err() != nil {
		p.status(tag, why(r.Err()))
		return
	}
	now, refresh, wait := false, false, time.Duration(0)
	for _, i := range g.Infos {
		switch i.Key {
		case "pmix.immediate":
			now = i.True()
		case "pmix.get.refresh":
			refresh = i.True()
		case "pmix.timeout":
			wait = duration(i)
		}
	}
	task, there := s.find(g)
	if !there {
		p.status(tag, wire.NotFound)
		return
	}
	if d := s.data[task]; d != nil && has(d.node, g.Key) && !(refresh && !s.own[task]) {
		p.reply(tag, found(p, s.proc(task), d.node))
		return
	}
	if now {
		p.status(tag, wire.NotFound)
		return
	}
	p.open++
	w := &want{task: task, key: g.Key, given: wait > 0, done: func(went wire.Status, list []wire.KV) {
		p.open--
		if went != wire.OK {
			p.status(tag, went)
			return
		}
		p.reply(tag, found(p, s.proc(task), list))
	}}
	s.wait(w, wait)
}

// find is the task that one asks for. What the job says of a task all have been
// told: what of that is not there is nowhere.
func (s *Server) find(g wire.GetRequest) (int, bool) {
	if g.Proc.Space != s.c.Space || strings.HasPrefix(g.Key, "pmix") {
		return 0, false
	}
	if g.Proc.Rank == wire.NoRank && g.Key != "" {
		for task, d := range s.data {
			if has(d.node, g.Key) {
				return task, true
			}
		}
	}
	return int(g.Proc.Rank), g.Proc.Rank < uint32(s.c.Layout.Tasks)
}

func (s *Server) proc(task int) wire.Proc { return wire.Proc{Space: s.c.Space, Rank: uint32(task)} }

// found is the answer to one who gets what a task has put.
func found(p *peer, whose wire.Proc, list []wire.KV) []byte {
	in := wire.Writer{Format: p.format}
	in.Put(wire.ProcID, wire.Value{Type: wire.ProcID, Data: whose})
	for _, kv := range list {
		in.KV(kv)
	}
	w := wire.Writer{Format: p.format}
	w.Status(wire.OK)
	w.Blob(in.Buf)
	return w.Buf
}

// wait has a want wait here, or asks where its task is.
func (s *Server) wait(w *want, most time.Duration) {
	if s.own[w.task] {
		if most > 0 {
			s.within(w, most)
		}
		s.look(w)
		return
	}
	s.last++
	s.asked[s.last] = w
	s.send(w.task, launch.PMIx{Want: &launch.PMIxWant{From: s.c.Own, ID: s.last, Task: w.task, Key: w.key, WaitMS: most.Milliseconds()}})
}

// wanted answers what another rank wants of a task here.
func (s *Server) wanted(m launch.PMIxWant) {
	m.Done = true
	w := &want{task: m.Task, key: m.Key, other: true, given: m.WaitMS > 0, done: func(went wire.Status, list []wire.KV) {
		if m.Status = int32(went); went == wire.OK {
			m.Data = encode(list)
		}
		s.send(m.Task, launch.PMIx{Want: &m})
	}}
	if !s.own[m.Task] {
		w.done(wire.NotFound, nil)
		return
	}
	s.wait(w, time.Duration(m.WaitMS)*time.Millisecond)
}

// answered takes what another rank says of one of its tasks.
func (s *Server) answered(m launch.PMIxWant) {
	w := s.asked[m.ID]
	if w == nil {
		return
	}
	delete(s.asked, m.ID)
	went := wire.Status(m.Status)
	if went == wire.OK && !s.elsewhere(w.task, m.Data) {
		went = wire.Failed
	}
	if went != wire.OK {
		w.done(went, nil)
		return
	}
	w.done(wire.OK, s.data[w.task].node)
}
