package control

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gbatch/internal/job"
	"gbatch/internal/state"
)

// timeline is the lines that were stored of a job, in their order.
func (w *world) timeline(n job.Number) string {
	var b strings.Builder
	lines := map[uint64]state.Line{}
	for _, r := range w.stored {
		if r.Kind == state.KindEvent && r.Job == n {
			var l state.Line
			if err := json.Unmarshal(r.Value, &l); err != nil {
				w.t.Fatal(err)
			}
			lines[r.Seq] = l
		}
	}
	for _, seq := range slices.Sorted(maps.Keys(lines)) {
		fmt.Fprintln(&b, strings.TrimSpace(fmt.Sprintf("%-9s %s", lines[seq].State, lines[seq].Message)))
	}
	return b.String()
}
