package scrub

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"gbatch/internal/state"
)

// fake is a store that has records, and what its scrub says.
type fake struct {
	records     []state.Record
	damage, err error
}

func (f fake) Scrub(_ string, take func(state.Record) error) (error, error) {
	for _, r := range f.records {
		if err := take(r); err != nil {
			return nil, err
		}
	}
	return f.damage, f.err
}

// TestPass: each kind of damage is counted and said, with what to do about it; what could not be
// looked at is an error and no damage; and it reads no faster than it may.
func TestPass(t *testing.T) {
	good := state.Record{Kind: state.KindWindow, Name: "w", Value: []byte(`{}`)}
	large := state.Record{Kind: state.KindWindow, Name: "l", Value: []byte(`"` + strings.Repeat("x", 16<<20) + `"`)}
	for name, tc := range map[string]struct {
		store fake
		trees []string
		logs  []string
		found int
		says  string
		fails bool
		waits time.Duration
	}{
		"whole":     {store: fake{records: []state.Record{good}}},
		"slow":      {store: fake{records: []state.Record{large}}, waits: 2 * time.Second},
		"a record":  {store: fake{records: []state.Record{good, {Kind: state.KindWindow, Name: "bad", Value: []byte("\xff")}}}, found: 1, says: "fsck --quarantine"},
		"the store": {store: fake{damage: errors.New("3 commits are missing")}, found: 1, says: "gctld restore"},
		"a tree":    {trees: []string{"of ann"}, found: 1, says: "submitting again"},
		"a log":     {logs: []string{"of ann"}, found: 1, says: "nothing else is to be done"},
		"no room":   {store: fake{err: errors.New("no space left")}, fails: true},
		"all at once": {store: fake{records: []state.Record{{Kind: state.KindWindow, Name: "bad", Value: []byte("{")}}, damage: errors.New("gone")}, trees: []string{"x", "y"},
			found: 4, says: "of"},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			var waited time.Duration
			s := Scrub{Config{
				Dir: t.TempDir(), Store: tc.store, Log: slog.New(slog.NewTextHandler(&log, nil)),
				Trees: func(func(int64) error) ([]string, error) { return tc.trees, nil },
				Logs:  func(func(int64) error) ([]string, error) { return tc.logs, nil },
				Wait:  func(_ context.Context, d time.Duration) error { waited += d; return nil },
			}}
			found, err := s.pass(t.Context())
			if found != tc.found || (err != nil) != tc.fails {
				t.Errorf("found %d, %v; want %d", found, err, tc.found)
			}
			if tc.says != "" && !strings.Contains(log.String(), tc.says) || tc.found == 0 && log.Len() > 0 {
				t.Errorf("the log has %q", log.String())
			}
			if waited.Round(time.Second) != tc.waits {
				t.Errorf("it waited for %s, want %s", waited, tc.waits)
			}
		})
	}
}
