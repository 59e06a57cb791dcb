package rank

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"gbatch/internal/launch"
	"gbatch/internal/launch/pmix"
)

// servePMIx begins to serve a step's tasks here.
func (g *group) servePMIx() (err error) {
	l, i := g.order.Layout, g.s.info
	name := fmt.Sprintf("%d.%d", i.Job, l.Step)
	if l.Tasks < 1 || l.Tasks > launch.MaxTasks {
		return fmt.Errorf("%d tasks are not between 1 and %d", l.Tasks, launch.MaxTasks)
	}
	c := pmix.Config{Space: "slurm.pmix." + name + "." + pmixToken(i.Secret, name), Job: name, Layout: l, Own: g.order.Own}
	for _, at := range l.Placed {
		if at.Rank < 0 || at.Rank >= len(i.Nodes) {
			return fmt.Errorf("there is no rank %d", at.Rank)
		}
		c.Nodes = append(c.Nodes, i.Nodes[at.Rank].Name)
	}
	c.Send = func(task int, m launch.PMIx) { _ = g.conn.Send(launch.KindPMIx, task, m) }
	c.Print = func(task int, errs bool, s string) {
		kind := launch.KindOutput
		if errs {
			kind = launch.KindErrors
		}
		for b := []byte(s); len(b) > 0; {
			n := min(len(b), launch.ChunkBytes)
			_ = g.send(kind, task, b[:n])
			b = b[n:]
		}
	}
	g.pmix, err = pmix.Listen(c)
	return err
}

// pmixToken is what makes the name of a step one that only its tasks know: with the
// node's network others of the node reach the server too. All ranks make the same.
func pmixToken(secret, name string) string {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte("pmix " + name))
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// receivePMIx takes what srun says of other ranks.
func (g *group) receivePMIx(f launch.Frame) {
	var m launch.PMIx
	if g.pmix != nil && f.Read(&m) == nil {
		g.pmix.Receive(m)
	}
}
