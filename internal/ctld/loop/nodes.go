package loop

import (
	"context"
	"log/slog"

	"gbatch/internal/control/effects"
)

// tellOfNodes writes what became of nodes into the log: each change once, as the
// controller says nothing of a node twice.
func (l *Loop) tellOfNodes(list []effects.NodeUpdate) {
	for _, c := range list {
		level := slog.LevelInfo
		switch c.State {
		case "suspect", "lost", "unhealthy", "penalized":
			level = slog.LevelWarn
		}
		args := []any{"node", c.Name, "state", c.State, "what", c.Text}
		if c.Reason != "" {
			args = append(args, "reason", c.Reason)
		}
		if c.By != "" {
			args = append(args, "by", c.By)
		}
		l.log.Log(context.Background(), level, "node changed", args...)
	}
}
