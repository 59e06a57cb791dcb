package program

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/cgroups"
)

// script writes a program of root's, in a directory of root's.
func script(t *testing.T, text string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: programs of the site's are root's")
	}
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func group(t *testing.T) *cgroups.Group {
	t.Helper()
	base, err := cgroups.Base("tests")
	if err != nil {
		t.Skip("SKIPPED: no control groups here: ", err)
	}
	g, err := cgroups.Find(filepath.Join(base, fmt.Sprintf("gbatch-program.%d", os.Getpid()), "run"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		above, _ := cgroups.Find(filepath.Dir(g.Path()))
		if err := errors.Join(g.Kill(10*time.Second), above.Remove()); err != nil {
			t.Error(err)
		}
	})
	return g
}

func TestDo(t *testing.T) {
	tests := map[string]struct {
		text  string
		limit time.Duration
		out   string
		err   error
	}{
		"well":     {"echo fine; echo \"$GBATCH_JOB_ID $HOME|$(id -u)|$(pwd)\"", time.Minute, "fine\n7 |0|/\n", nil},
		"failed":   {"echo one; echo two >&2; echo; exit 3", time.Minute, "one\ntwo\n\n", &Failure{"exit code 3", "two"}},
		"killed":   {"kill -9 $$", time.Minute, "", &Failure{"ended by signal SIGKILL", ""}},
		"hostile":  {"printf 'a\\033[31mred\\377\\ttab\\n'; exit 1", time.Minute, "a\x1b[31mred\xff\ttab\n", &Failure{"exit code 1", "a[31mred tab"}},
		"daemon":   {"sleep 1000 & exit 0", time.Minute, "", nil},
		"late":     {"echo waits; trap '' TERM; (trap '' TERM; sleep 1000) & setsid sleep 1000; sleep 1000", time.Second, "waits\n", &Failure{"not over after 1s, and ended", "waits"}},
		"no shell": {"exec /nonexistent", time.Minute, "", &Failure{"exit code 127", ""}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			g := group(t)
			r := Run{Path: script(t, tc.text), Env: []string{"PATH=/usr/bin:/bin", "GBATCH_JOB_ID=7"}, Limit: tc.limit, Group: g}
			out, err := r.Do(t.Context())
			if name == "no shell" {
				out = ""
				errors.As(err, new(*Failure))
				err.(*Failure).Last = ""
			}
			if diff := cmp.Diff(tc.out, out); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.err, err); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			want := 0
			if name == "daemon" {
				want = 1
			}
			if pids, err := g.Pids(); err != nil || len(pids) != want {
				t.Errorf("processes left: %v %v", pids, err)
			}
		})
	}
}

// What a program writes is bounded.
func TestLongOutput(t *testing.T) {
	r := Run{Path: script(t, "head -c 50000000 /dev/zero | tr '\\0' x; echo; i=0; while [ $i -lt 5000 ]; do echo line $i; i=$((i+1)); done; exit 1"), Env: []string{"PATH=/usr/bin:/bin"}, Limit: time.Minute, Group: group(t)}
	out, err := r.Do(t.Context())
	if len(out) > maxOutput || !strings.HasPrefix(out, "line ") || !strings.HasSuffix(out, "line 4999\n") || err == nil || err.Error() != "exit code 1: line 4999" {
		t.Errorf("%d bytes, %v", len(out), err)
	}
}

// The end of the context ends all of it, and is no failure.
func TestBrokenOff(t *testing.T) {
	g := group(t)
	began := filepath.Join(t.TempDir(), "began")
	r := Run{Path: script(t, "sleep 1000 & echo > "+began+"; wait"), Env: []string{"PATH=/usr/bin:/bin"}, Limit: time.Minute, Group: g}
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")
	go func() {
		untilThere(began)
		cancel(stopped)
	}()
	if _, err := r.Do(ctx); err != stopped {
		t.Errorf("error %v", err)
	}
	if pids, err := g.Pids(); err != nil || len(pids) != 0 {
		t.Errorf("processes left: %v %v", pids, err)
	}
}

func untilThere(path string) {
	for {
		if _, err := os.Stat(path); err == nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func TestCheck(t *testing.T) {
	good := script(t, "exit 0")
	dir := filepath.Dir(good)
	put := func(name string, mode os.FileMode, uid int) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.Chmod(path, mode), os.Chown(path, uid, 0)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	open := filepath.Join(dir, "open")
	if err := errors.Join(os.Mkdir(open, 0o777), os.Chmod(open, 0o777), os.Symlink(good, filepath.Join(open, "link")), os.Symlink(good, filepath.Join(dir, "link")),
		os.WriteFile(filepath.Join(open, "file"), nil, 0o755)); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct{ path, want string }{
		"good":         {good, ""},
		"link":         {filepath.Join(dir, "link"), ""},
		"missing":      {filepath.Join(dir, "none"), "no such file"},
		"directory":    {dir, "is not a file"},
		"not for root": {put("others", 0o755, 1000), "belongs to user 1000"},
		"group writes": {put("group", 0o775, 0), "chmod go-w"},
		"all write":    {put("all", 0o757, 0), "chmod go-w"},
		"no program":   {put("text", 0o644, 0), "chmod 755"},
		"open place":   {filepath.Join(open, "file"), open + " can be changed by others"},
		"open link":    {filepath.Join(open, "link"), open + " can be changed by others"},
	}
	for name, tc := range tests {
		err := Check(tc.path)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}
