package pmix

import (
	"strconv"
	"strings"

	"gbatch/internal/launch"
	"gbatch/internal/launch/pmix/wire"
)

// factsKind says how facts are sent.
type factsKind struct {
	format wire.Format
	old    bool // nodes are told in the way that clients up to 3.1 know
}

// jobFacts are what a client is told of its job before all else. They are the same
// for all tasks here.
func (s *Server) jobFacts(p *peer) []byte {
	kind := factsKind{p.format, p.version.Before(wire.Version{Major: 3, Minor: 1, Release: 100})}
	if b := s.facts[kind]; b != nil {
		return b
	}
	w := wire.Writer{Format: p.format}
	w.Put(wire.String, wire.Text(s.c.Space))
	for _, kv := range s.whole() {
		w.KV(kv)
	}
	if kind.old {
		for _, kv := range s.node(s.c.Own) {
			w.KV(kv)
		}
		w.KV(s.map21(p.format))
	} else {
		for k := range s.c.Layout.Placed {
			w.KV(wire.KV{Key: "pmix.node.arr", Value: wire.Infos(append([]wire.KV{{Key: "pmix.hname", Value: wire.Text(s.c.Nodes[k])}}, s.node(k)...)...)})
		}
	}
	for k, at := range s.c.Layout.Placed {
		for _, t := range at.Tasks {
			w.KV(s.task(p.format, k, t))
		}
	}
	s.facts[kind] = w.Buf
	return w.Buf
}

func number(key string, t wire.Type, n int) wire.KV {
	return wire.KV{Key: key, Value: wire.Num(t, uint64(n))}
}

// whole is what is said of the step.
func (s *Server) whole() []wire.KV {
	n, nodes := s.c.Layout.Tasks, len(s.c.Layout.Placed)
	return []wire.KV{
		{Key: "pmix.jobid", Value: wire.Text(s.c.Job)},
		number("pmix.job.size", wire.Uint32, n), number("pmix.univ.size", wire.Uint32, n), number("pmix.max.size", wire.Uint32, n), number("pmix.app.size", wire.Uint32, n),
		number("pmix.job.napps", wire.Uint32, 1), number("pmix.num.nodes", wire.Uint32, nodes), number("pmix.spawned", wire.Bool, 0), number("pmix.aldr", wire.RankNo, 0),
		{Key: "pmix.nlist", Value: wire.Text(strings.Join(s.c.Nodes, ","))},
	}
}

// node is what is said of one node.
func (s *Server) node(k int) []wire.KV {
	tasks := s.c.Layout.Placed[k].Tasks
	first := 0
	if len(tasks) > 0 {
		first = tasks[0].ID
		for _, t := range tasks {
			first = min(first, t.ID)
		}
	}
	return []wire.KV{
		number("pmix.nodeid", wire.Uint32, k), number("pmix.local.size", wire.Uint32, len(tasks)), number("pmix.node.size", wire.Uint32, len(tasks)),
		number("pmix.lldr", wire.RankNo, first), {Key: "pmix.lpeers", Value: wire.Text(ids(tasks))},
	}
}

// ids are the numbers of tasks.
func ids(tasks []launch.Task) string {
	var list []string
	for _, t := range tasks {
		list = append(list, strconv.Itoa(t.ID))
	}
	return strings.Join(list, ",")
}

// map21 says which tasks are where, as clients up to 3.1 know it.
func (s *Server) map21(f wire.Format) wire.KV {
	w := wire.Writer{Format: f}
	w.Put(wire.Size, wire.Num(wire.Size, uint64(len(s.c.Nodes))))
	for k, at := range s.c.Layout.Placed {
		w.KV(wire.KV{Key: s.c.Nodes[k], Value: wire.Text(ids(at.Tasks))})
	}
	return wire.KV{Key: "pmix.mblob", Value: wire.Value{Type: wire.Bytes, Data: w.Buf}}
}

// task is what is said of one task.
func (s *Server) task(f wire.Format, node int, t launch.Task) wire.KV {
	w := wire.Writer{Format: f}
	w.Put(wire.RankNo, wire.Rank(t.ID))
	for _, kv := range []wire.KV{
		number("pmix.appnum", wire.Uint32, 0), number("pmix.grank", wire.RankNo, t.ID), number("pmix.apprank", wire.RankNo, t.ID),
		number("pmix.lrank", wire.Uint16, t.Local), number("pmix.nrank", wire.Uint16, t.Local),
		{Key: "pmix.hname", Value: wire.Text(s.c.Nodes[node])}, number("pmix.nodeid", wire.Uint32, node),
	} {
		w.KV(kv)
	}
	return wire.KV{Key: "pmix.pblob", Value: wire.Value{Type: wire.Bytes, Data: w.Buf}}
}
