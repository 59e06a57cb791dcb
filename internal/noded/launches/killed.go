package launches

import (
	"context"

	"gbatch/internal/launch"
	"gbatch/internal/noded/record"
)

// counting notes in a rank's directory how many processes of steps the memory limit has ended,
// before anybody is told how a step ended: it decides how the rank ended.
type counting struct {
	Recorder
	dir string
}

// Counting is a recorder that notes for Killed what it is told.
func Counting(r Recorder, dir string) Recorder { return counting{r, dir} }

func (c counting) End(ctx context.Context, e launch.NodeEnd) error {
	if e.Killed > Killed(c.dir) {
		if err := record.SetNumber(c.dir, record.FileKilled, e.Killed); err != nil {
			return err
		}
	}
	return c.Recorder.End(ctx, e)
}

// Killed is what was noted of a rank; without, or where that cannot be read, nothing was theirs.
func Killed(dir string) uint64 {
	n, _ := record.Number(dir, record.FileKilled)
	return n
}
