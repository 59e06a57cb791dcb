package ctld

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gbatch/internal/ctld/backup"
	"gbatch/internal/ctld/fsck"
	"gbatch/internal/ctld/site"
	"gbatch/internal/state"
	"gbatch/internal/store"
	"gbatch/sched"
)

// refused starts the controller, which must not start, and returns why.
func (s *testSite) refused() string {
	s.t.Helper()
	server, err := Open(func() (site.Config, error) { return s.cfg, nil }, slog.New(slog.DiscardHandler))
	if err == nil {
		s.t.Fatalf("the controller started: %v", server.Close())
	}
	s.t.Log(err)
	return err.Error()
}

func wants(t *testing.T, text, want string) {
	t.Helper()
	if !strings.Contains(text, want) {
		t.Errorf("%q does not say %q", text, want)
	}
}

// TestLostCommits puts an older copy of the store into the place of the present
// one: the controller says so, and goes on without the jobs between only if
// this loss is named. No number is given twice.
func TestLostCommits(t *testing.T) {
	s := newSite(t, nil)
	s.submit(hello(1), "")
	s.stop()
	dir, older := filepath.Join(s.cfg.Dir, site.StoreDir), filepath.Join(t.TempDir(), "older")
	if err := os.CopyFS(older, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	s.start()
	last := s.submit(hello(1), "").Number
	s.stop()
	if err := errors.Join(os.RemoveAll(dir), os.CopyFS(dir, os.DirFS(older))); err != nil {
		t.Fatal(err)
	}
	why := s.refused()
	wants(t, why, "commits that were made to it are missing")
	_, rest, _ := strings.Cut(why, "gctld accept-loss ")
	named, _, _ := strings.Cut(rest, "`")
	if err := backup.AcceptLoss(s.cfg, "9999-1"); err == nil {
		t.Error("a loss was accepted by another name")
	}
	if err := backup.AcceptLoss(s.cfg, named); err != nil {
		t.Fatal(err)
	}
	s.start()
	if n := s.submit(hello(1), "").Number; n <= last {
		t.Errorf("number %d was given again, or one below it: %d", last, n)
	}
}

// TestLostKeys takes key files away: none is made anew without a word.
func TestLostKeys(t *testing.T) {
	for name, want := range map[string]string{"ca.key": "join anew", site.TokenKeyFile: "all tokens", site.VaultFile: "registry passwords"} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, nil)
			s.stop()
			path := filepath.Join(s.cfg.Dir, name)
			text, err := os.ReadFile(path)
			if err == nil {
				err = os.Remove(path)
			}
			if err != nil {
				t.Fatal(err)
			}
			wants(t, s.refused(), want)
			if _, err := os.Stat(path); err == nil {
				t.Error("the refused start made a new key")
			}
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
			s.start()
			s.stop()
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if err := backup.AcceptLoss(s.cfg, name); err != nil {
				t.Fatal(err)
			}
			s.start()
		})
	}
}

// TestGarbledRecords garbles a record of each kind in turn. A controller either
// starts, or says which record it is and starts when that is taken out. Other jobs
// are as they were.
func TestGarbledRecords(t *testing.T) {
	s := newSite(t, nil)
	n := s.node("n1")
	s.submit(hello(1), "")
	s.submit(hello(1), "")
	n.until(2)
	s.stop()
	whole := s.cfg.Dir
	for kind, text := range map[state.Kind]string{state.KindToken: `{"id":"lab"}`, state.KindNodeKey: `{}`, state.KindProject: `{"name":"lab"}`} {
		garble(t, whole, state.Record{Kind: kind, Name: "lab", Value: []byte(text)})
	}
	var kinds []state.Record
	each(t, whole, func(r state.Record) {
		if r.Kind == state.KindKeyFile {
			return // TestLostKeys
		}
		if len(kinds) == 0 || kinds[len(kinds)-1].Kind != r.Kind {
			kinds = append(kinds, r)
		}
	})
	for _, r := range kinds {
		t.Run(string(r.Kind), func(t *testing.T) {
			s.t, s.cfg.Dir = t, t.TempDir()
			if err := os.CopyFS(s.cfg.Dir, os.DirFS(whole)); err != nil {
				t.Fatal(err)
			}
			r.Value = []byte("{\"garbled")
			garble(t, s.cfg.Dir, r)
			server, err := Open(func() (site.Config, error) { return s.cfg, nil }, slog.New(slog.DiscardHandler))
			if err == nil {
				err = server.Close()
			} else {
				wants(t, err.Error(), r.Where())
				found, err := fsck.Check(s.cfg, sched.Time(time.Now().UnixMilli()), true)
				if r.Kind == state.KindNode && found.Aside == 1 && len(found.Bad) == 2 {
					wants(t, found.Bad[1], "it runs on n1, which is no node")
					return // a job holds it: only a backup helps
				}
				if err != nil || found.Aside != 1 || len(found.Bad) != 1 {
					t.Fatalf("fsck found %+v, %v", found, err)
				}
			}
			if err != nil {
				t.Log(err)
			}
			s.start()
			defer s.stop()
			states := s.states()
			if delete(states, 1); len(states) != 1 || r.Kind == state.KindJob && s.submit(hello(1), "").Number < 3 {
				t.Errorf("the other jobs are %v", states)
			}
		})
	}
}

// each calls f with every record of a directory.
func each(t *testing.T, dir string, f func(state.Record)) {
	t.Helper()
	st, err := store.Open(store.Config{Dir: filepath.Join(dir, site.StoreDir)})
	if err != nil {
		t.Fatal(err)
	}
	err = st.Everything(func(r state.Record) error { f(r); return nil })
	if err := errors.Join(err, st.Close()); err != nil {
		t.Fatal(err)
	}
}

func garble(t *testing.T, dir string, r state.Record) {
	t.Helper()
	st, err := store.Open(store.Config{Dir: filepath.Join(dir, site.StoreDir)})
	if err == nil {
		err = errors.Join(st.Commit([]state.Record{r}), st.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}
