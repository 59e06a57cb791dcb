package rank

import (
	"log/slog"
	"testing"
	"time"

	"gbatch/internal/job"
	"gbatch/internal/noded/contact"
	"gbatch/oci/image"
)

// TestImageIsTold: which image a rank has found is told at once where others wait for it, and once.
func TestImageIsTold(t *testing.T) {
	for awaited, want := range map[bool]time.Duration{false: contact.WithinPull, true: contact.AtOnce} {
		var told []time.Duration
		s := newState(job.RankID{}, slog.New(slog.DiscardHandler), func(within time.Duration) { told = append(told, within) })
		for range 2 {
			s.pullProgress(image.Progress{Phase: image.PhaseUnpack, Digest: "sha256:1"}, awaited)
		}
		if s.status.Image != "sha256:1" || told[0] != want || told[1] != contact.WithinPull {
			t.Errorf("of %q it is told within %v, want %v at first", s.status.Image, told, want)
		}
	}
}
