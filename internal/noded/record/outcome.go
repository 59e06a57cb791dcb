package record

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/oci/atomicfile"
)

// outcome is how a rank ended when all was done that comes after its program.
// It is written before that is told, and is the same for ever. (Its file is
// named by an older word.)
type outcome struct {
	Code    int        `json:"code"`
	Reason  job.Reason `json:"reason"`
	Message string     `json:"message"`
}

// SaveOutcome writes it.
func SaveOutcome(dir string, out *node.Exit) error {
	b, err := json.Marshal(outcome{out.Code, out.Reason, out.Message})
	if err == nil {
		err = atomicfile.WriteDurable(filepath.Join(dir, "verdict.json"), atomicfile.Sum(b))
	}
	if err != nil {
		return fmt.Errorf("note how the rank ended: %w", err)
	}
	return nil
}

// LoadOutcome puts what SaveOutcome wrote over a program's exit, and says
// whether there was any.
func LoadOutcome(dir string, out *node.Exit) bool {
	b, err := atomicfile.Read(filepath.Join(dir, "verdict.json"))
	var o outcome
	if err != nil || json.Unmarshal(b, &o) != nil {
		return false // the outputs are saved again, which changes nothing
	}
	out.Code, out.Reason, out.Message = o.Code, o.Reason, o.Message
	return true
}
