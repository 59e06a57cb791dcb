package noded

import (
	"path/filepath"

	"gbatch/internal/noded/keep"
	"gbatch/internal/noded/rank"
	"gbatch/internal/noded/record"
	"gbatch/oci"
	"gbatch/oci/logs"
)

// newKeeper sends the logs of ranks to where they are kept beside this node.
func (a *Agent) newKeeper() *keep.Keeper {
	return keep.New(keep.Options{
		Node: a.cfg.Name, Controller: a.controller, Log: a.log,
		Open: func(dir string) (*logs.Log, error) { return openLog(a, dir) },
		Done: func(dir string) {
			if err := record.MarkKept(dir); err != nil {
				a.log.Warn("a log will be sent once more after a restart", "error", err)
			}
		},
	})
}

// openLog opens the log of a rank with this directory.
func openLog(a *Agent, dir string) (*logs.Log, error) {
	if id, err := record.ParseDir(filepath.Base(dir)); err == nil && a.node.Dir(id) == dir {
		a.mu.Lock()
		r := a.ranks[id]
		a.mu.Unlock()
		if r != nil {
			return rank.OpenLog(r)
		}
	}
	return oci.OpenLog(filepath.Join(dir, "box"))
}

// keepLog has a rank's log kept where its order says.
func (a *Agent) keepLog(r *rank.Rank) {
	if to := r.Order().Logs; to != nil && to.Controller {
		id := r.Status().ID
		a.keeper.Add(keep.Source{ID: id, UUID: r.UUID(), Dir: a.node.Dir(id)})
	}
}
