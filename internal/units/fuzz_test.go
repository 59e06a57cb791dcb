package units

import (
	"testing"
	"time"

	"gbatch/internal/job"
)

// FuzzParseDuration: what is taken is within bounds.
func FuzzParseDuration(f *testing.F) {
	for _, s := range []string{"5 minutes", "90s", "1h30m", "0", "-1s", "1e9h", "9223372036854775807ns", "2 weeks", "+5s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if d, err := ParseDuration(s); err == nil && (d < 0 || d > time.Duration(job.MaxDuration)*time.Second) {
			t.Errorf("%q is %v", s, d)
		}
	})
}
