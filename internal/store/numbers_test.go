package store

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gbatch/internal/job"
	"gbatch/internal/state"
)

// TestNumbersOfACopy: a start leaves out the numbers that may have been given since a copy was made, unless it can know
// that nothing was; then it leaves out none.
func TestNumbersOfACopy(t *testing.T) {
	const last = 7
	begun := time.Unix(1_800_000_000, 0)
	cases := map[string]struct {
		between func(t *testing.T, dir, recent string)
		boot    string
		later   time.Duration
		want    job.Number
	}{
		"an ordinary restart":               {boot: "1"},
		"after a boot":                      {boot: "2", later: 2 * time.Minute, want: last + 1 + 100_000 + 120*100},
		"after a boot, with a clock behind": {boot: "2", later: -time.Hour, want: last + 1 + 100_000 + 30*24*3600*100},
		"the mark is gone":                  {boot: "1", want: last + 1 + 100_000, between: func(t *testing.T, _, recent string) { removed(t, recent) }},
		"all was put back from a copy, the mark too": {boot: "1", later: time.Second, want: last + 1 + 100_000 + 100, between: func(t *testing.T, dir, recent string) {
			copied := t.TempDir()
			if err := errors.Join(os.CopyFS(copied, os.DirFS(dir)), os.RemoveAll(dir), os.CopyFS(dir, os.DirFS(copied))); err != nil {
				t.Fatal(err)
			}
		}},
		"written over from a copy that an earlier run made": {boot: "1", want: last + 1 + 100_000, between: func(t *testing.T, dir, recent string) {
			text, err := os.ReadFile(recent)
			if err != nil {
				t.Fatal(err)
			}
			s := openNumbers(t, dir, "1", begun)
			if err := errors.Join(s.Close(), os.WriteFile(recent, text, 0o600)); err != nil {
				t.Fatal(err)
			}
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := openNumbers(t, dir, "1", begun)
			if err := errors.Join(s.Commit([]state.Record{{Kind: state.KindJob, Job: last, Value: []byte("{}")}}), s.Close()); err != nil {
				t.Fatal(err)
			}
			if c.between != nil {
				c.between(t, dir, filepath.Join(dir, "recent"))
			}
			s = openNumbers(t, dir, c.boot, begun.Add(c.later))
			wantFloor(t, s, c.want)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = openNumbers(t, dir, c.boot, begun.Add(c.later+time.Hour)) // an ordinary one
			wantFloor(t, s, c.want)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func removed(t *testing.T, path string) {
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func openNumbers(t *testing.T, dir, boot string, now time.Time) *Store {
	t.Helper()
	s, err := Open(Config{Dir: filepath.Join(dir, "store"), Recent: filepath.Join(dir, "recent"), Boot: boot, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// wantFloor compares the number from which on jobs get theirs, 0: none is left out.
func wantFloor(t *testing.T, s *Store, want job.Number) {
	t.Helper()
	var got job.Number
	err := s.All(state.KindFloor, func(r state.Record) error {
		got = max(got, r.Job)
		return nil
	})
	if err != nil || got != want {
		t.Errorf("jobs get numbers from %d on (%v), want %d", got, err, want)
	}
}
