package pmix

import (
	"slices"
	"time"

	"gbatch/internal/launch"
	"gbatch/internal/launch/pmix/wire"
)

// put is what a task has put.
type put struct {
	node, other []wire.KV // for tasks here, and elsewhere; of a task elsewhere: both the same
	size        int
}

// neutral is the format of what goes to other ranks.
var neutral = wire.Format{Flex: true}

// maxData bounds what a server keeps, in bytes.
const maxData = 256 << 20

// commit takes in what a task has put. What it puts again replaces what was there.
func (s *Server) commit(p *peer, r *wire.Reader) wire.Status {
	c := r.Commit()
	if r.Err() != nil {
		return why(r.Err())
	}
	old := s.data[p.task]
	if old == nil {
		old = &put{}
	}
	d := &put{node: merge(old.node, c.Node), other: merge(old.other, c.Other)}
	if d.size = len(encode(d.node)) + len(encode(d.other)); len(encode(d.other)) > launch.PMIxTask || !s.keep(p.task, d) {
		return wire.TooMuch
	}
	for w := range s.waits {
		if w.task == p.task {
			s.look(w)
		}
	}
	return wire.OK
}

// keep keeps what a task has put, unless that is too much.
func (s *Server) keep(task int, d *put) bool {
	was := 0
	if old := s.data[task]; old != nil {
		was = old.size
	}
	if s.size+d.size-was > maxData {
		return false
	}
	s.data[task], s.size = d, s.size+d.size-was
	return true
}

func (s *Server) drop(task int) {
	if old := s.data[task]; old != nil {
		s.size -= old.size
		delete(s.data, task)
	}
}

func merge(old, more []wire.KV) []wire.KV {
	list := slices.Clone(old)
	at := make(map[string]int, len(list))
	for k, kv := range list {
		at[kv.Key] = k
	}
	for _, kv := range more {
		if k, ok := at[kv.Key]; ok {
			list[k] = kv
			continue
		}
		at[kv.Key] = len(list)
		list = append(list, kv)
	}
	return list
}

func encode(list []wire.KV) []byte {
	w := wire.Writer{Format: neutral}
	for _, kv := range list {
		w.KV(kv)
	}
	return w.Buf
}

// elsewhere takes in what a task of another rank has put.
func (s *Server) elsewhere(task int, b []byte) bool {
	if task < 0 || task >= s.c.Layout.Tasks || s.own[task] {
		return false
	}
	r := wire.NewReader(neutral, b)
	list := r.KVs()
	return r.Err() == nil && s.keep(task, &put{node: list, other: list, size: len(b)})
}

// want is somebody who waits for what a task puts.
type want struct {
	task  int
	key   string // that is looked for; empty: any
	other bool   // it is on another node
	given bool   // it said for how long it waits
	done  func(wire.Status, []wire.KV)
	timer *time.Timer // nil: it waits for the task's first commit
}

func (w *want) stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// keyTime is how long one waits for a key of a task that has put others.
const keyTime = 2 * time.Second

// look answers a want if it can be. One that waits goes on waiting.
func (s *Server) look(w *want) {
	d := s.data[w.task]
	if d == nil && !s.ended[w.task] {
		s.waits[w] = true
		return
	}
	if d == nil {
		s.answer(w, wire.NotFound, nil)
		return
	}
	list := d.node
	if w.other {
		list = d.other
	}
	if has(list, w.key) {
		s.answer(w, wire.OK, list)
		return
	}
	s.waits[w] = true
	if w.timer == nil {
		s.within(w, keyTime)
	}
}

// within bounds a wait.
func (s *Server) within(w *want, d time.Duration) {
	w.timer = time.AfterFunc(d, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.waits[w] {
			return
		}
		went := wire.NotFound
		if w.given {
			went = wire.TimedOut
		}
		s.answer(w, went, nil)
	})
}

func (s *Server) answer(w *want, went wire.Status, list []wire.KV) {
	w.stop()
	delete(s.waits, w)
	w.done(went, list)
}

func has(list []wire.KV, key string) bool {
	return key == "" || slices.ContainsFunc(list, func(kv wire.KV) bool { return kv.Key == key })
}
