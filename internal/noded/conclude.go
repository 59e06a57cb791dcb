package noded

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/oci/atomicfile"
)

// conclude does what comes between the program's end and telling of it: saving
// the outputs, judging the progress. Without a result the daemon is going, and
// the next one goes on here.
func (r *rank) conclude(out *node.Exit) {
	r.blameGPU(out)
	r.a.clean(r)
	r.a.reached("cleaned")
	if r.concludes(out) {
		r.judge(out)
		if !r.save(out) {
			return
		}
		r.a.reached("saved")
		if err := saveVerdict(r.dir, out); err != nil {
			r.log.Warn("a restart of the daemon could save the outputs again", "error", err)
		}
		r.a.reached("concluded")
	}
	r.undo()
	r.a.reached("undone")
	r.setEnded(out)
	r.a.reached("told")
}

// concludes says whether more than the program's exit decides how a rank ended.
func (r *rank) concludes(out *node.Exit) bool {
	g := r.order.Spec.Gbatch
	return g != nil && out.StartedMS > 0 && (len(g.Outputs) > 0 || g.ProgressFile != "")
}

// verdict is how a rank ended when all was done that comes after its program.
// It is written before that is told, and is the same for ever.
type verdict struct {
	Code    int        `json:"code"`
	Reason  job.Reason `json:"reason"`
	Message string     `json:"message"`
}

func saveVerdict(dir string, out *node.Exit) error {
	b, err := json.Marshal(verdict{out.Code, out.Reason, out.Message})
	if err == nil {
		err = atomicfile.WriteDurable(filepath.Join(dir, "verdict.json"), b)
	}
	if err != nil {
		return fmt.Errorf("note how the rank ended: %w", err)
	}
	return nil
}

// applyVerdict puts what saveVerdict wrote over a program's exit, and says
// whether there was any.
func applyVerdict(dir string, out *node.Exit) bool {
	b, err := os.ReadFile(filepath.Join(dir, "verdict.json"))
	var v verdict
	if err != nil || json.Unmarshal(b, &v) != nil {
		return false // the outputs are saved again, which changes nothing
	}
	out.Code, out.Reason, out.Message = v.Code, v.Reason, v.Message
	return true
}
