package noded

import (
	"testing"

	"gbatch/internal/noded/config"
)

// Each sync says what the GPUs are doing; what the driver does not tell is
// absent, not zero.
func TestSamples(t *testing.T) {
	s := newSite(t, func(c *config.Config) { c.GPU.Simulate = "h100:2" }).start()
	gpus := s.offered().GPUs
	s.await("samples", func() bool { return len(s.last.Samples) == 2 })
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, got := range s.last.Samples {
		if got.UUID != gpus[i].UUID || got.Utilization == nil || got.MemUsed == nil {
			t.Errorf("sample %d of %s: %s", i, gpus[i].UUID, toJSON(got))
		}
	}
}
