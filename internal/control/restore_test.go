package control

import (
	"maps"
	"strconv"
	"strings"

	"github.com/cockroachdb/datadriven"

	"gbatch/internal/job"
	"gbatch/internal/node"
)

// backup is a step of a scenario about backups:
//
//	backup                                 keeps what is stored
//	restore [skip=100] [queue] [novault]   throws the rest away, and starts on what was kept
//	holds n1 1/1:running 2/3:ended         a node says all that it has: job/attempt:phase
func (w *world) backup(d *datadriven.TestData, first string, arg func(string, string) string, number func(string, string) int) (string, bool) {
	switch d.Cmd {
	case "backup":
		w.saved = maps.Clone(w.stored)
	case "restore":
		w.stored = maps.Clone(w.saved)
		w.epoch += 1000
		w.restart()
		w.apply(Restored{Skip: job.Number(number("skip", "100")), Queue: arg("queue", "") != "", NoVault: arg("novault", "") != ""})
	case "holds":
		n := w.c.nodes.get(first)
		ev := NodeSync{Name: first, Instance: n.Instance, Hash: n.Hash}
		for _, a := range d.CmdArgs[1:] {
			who, phase, _ := strings.Cut(a.Key, ":")
			num, attempt, _ := strings.Cut(who, "/")
			tries, _ := strconv.Atoi(attempt)
			st := node.RankStatus{ID: job.RankID{Job: job.Number(atoi(w.t, num)), Attempt: uint32(tries)}, Phase: node.Phase(phase)}
			if st.Phase == node.PhaseEnded {
				st.Exit = &node.Exit{StartedMS: 1, EndedMS: int64(w.now)}
			}
			ev.Ranks = append(ev.Ranks, st)
		}
		w.apply(ev)
	default:
		return "", false
	}
	state := ""
	if d.Cmd == "holds" {
		state, _ = w.c.nodes.get(first).State()
		state = first + " " + state + "\n"
	}
	return state + w.queue(), true
}
