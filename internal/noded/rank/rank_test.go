package rank

import (
	"bytes"
	"strings"
	"testing"
	"unicode"

	"gbatch/internal/job"
)

// TestJobName: metrics name a job as its user does.
func TestJobName(t *testing.T) {
	for want, task := range map[string]*job.ArrayTask{"7": nil, "4_2": {Parent: 4, Index: 2}} {
		if got := jobName(job.RankID{Job: 7, Attempt: 1}, task); got != want {
			t.Errorf("task %v is %s, want %s", task, got, want)
		}
	}
}

func FuzzReadProgress(f *testing.F) {
	f.Add([]byte(`{"percentComplete":42,"name":"epoch-3","metadata":{"a":1}}`))
	f.Add([]byte(`{"percentComplete":1e308,"name":"\u001b[2J"}`))
	f.Add([]byte(`{"percentComplete":-1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		d := readProgress(bytes.NewReader(b))
		if d == nil {
			return
		}
		if d.Percent < 0 || d.Percent > 100 || len(d.Name) > maxProgressName+3 || strings.ContainsFunc(d.Name, unicode.IsControl) {
			t.Errorf("%+v", d)
		}
	})
}
