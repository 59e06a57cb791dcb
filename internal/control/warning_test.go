package control

import (
	"fmt"
	"strings"
)

// told is the changes since it was asked last that people may want to hear of.
func (w *world) told() string {
	var b strings.Builder
	for _, m := range w.moved {
		fmt.Fprintf(&b, "%d %s", m.Job, m.To)
		if m.Percent > 0 {
			fmt.Fprintf(&b, " %d %% used", m.Percent)
		}
		b.WriteString("\n")
	}
	w.moved = nil
	return b.String()
}
