package e2e

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gbatch/internal/job"
	"gbatch/internal/sparse"
)

// TestPasswordIsNowhere runs jobs whose image needs a login and looks for the
// password in everything that is left and shown, while they run and after.
func TestPasswordIsNowhere(t *testing.T) {
	s := newSite(t, siteOptions{})
	secret := login.Username + ":" + login.Password + "@" + private.host + "/secret/box:1"
	input := doc{name: "private", image: secret, command: sh("until [ -e /project/go ]; do sleep 0.05; done"), storage: []any{"/project"}}.json()
	wrong := doc{name: "refused", image: strings.Replace(secret, "@", "x@", 1), command: []string{"true"}}.json()
	dry := s.runInput(input, "gsubmit", "--dry-run", "-")
	first := s.runInput(input, "gsubmit", "-")
	second := s.runInput(wrong, "gsubmit", "-")
	held := s.runInput(input, "gsubmit", "--hold", "-")
	convert := s.runInput(input, "gsubmit", "--dry-run", "--json", "-")
	for _, r := range []result{dry, first, second, held, convert} {
		if r.code != 0 {
			t.Fatalf("gsubmit: %v", r)
		}
		look(t, "gsubmit", r.out+r.err)
	}
	running, refused := strings.TrimSpace(first.out), strings.TrimSpace(second.out)
	s.waitRunning(running)
	if d := s.wait(refused); d.State != job.Failed {
		t.Errorf("a job without its image:\n%s", describe(d))
	}
	s.lookEverywhere(running, refused, strings.TrimSpace(held.out))
	if err := os.WriteFile(filepath.Join(s.project(), "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if d := s.wait(running); d.State != job.Finished {
		t.Errorf("the private image did not run:\n%s", describe(d))
	}
	// A restart reads and writes everything again.
	s.ctld.kill()
	s.ctld.start()
	s.waitNodes("up", 1)
	s.must("gcancel", strings.TrimSpace(held.out))
	s.lookEverywhere(running, refused)
}

// lookEverywhere searches what commands print, all processes, and all files
// for the registry's password.
func (s *site) lookEverywhere(ids ...string) {
	s.t.Helper()
	s.nowhere(login.Password, ids...)
}

// nowhere searches what commands print, all processes but those of jobs, and
// all files on a disk for a text.
func (s *site) nowhere(text string, ids ...string) {
	s.t.Helper()
	look := func(where, in string) { s.t.Helper(); lookFor(s.t, text, where, in) }
	for _, args := range [][]string{{"-a", "-l"}, {"-a", "--json"}} {
		look("gqueue", s.must("gqueue", args...))
	}
	for _, id := range ids {
		look("gqueue show", s.must("gqueue", "show", id)+s.must("gqueue", "show", "--json", id))
	}
	procs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, p := range procs {
		if group, _ := os.ReadFile(p + "/cgroup"); bytes.Contains(group, []byte("/gbatch/")) {
			continue // the job's own may have it
		}
		for _, f := range []string{"cmdline", "environ"} {
			b, _ := os.ReadFile(p + "/" + f) // a process may go while we look
			look(p+"/"+f, string(b))
		}
	}
	seen := 0
	err = filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasSuffix(path, "/mnt/secrets") {
			return filepath.SkipDir // in memory
		}
		if err != nil || !d.Type().IsRegular() {
			return nil // as above
		}
		b, err := written(path)
		if err == nil {
			seen++
			look(path, string(b))
		}
		return nil
	})
	if err != nil || seen < 20 {
		s.t.Errorf("looked at %d files only, %v", seen, err)
	}
}

// written is what has been written to a file. The images of containers' disks are
// gigabytes of holes.
func written(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	var out []byte
	for from, until := range sparse.Written(f, st.Size()) {
		part, err := io.ReadAll(io.NewSectionReader(f, from, until-from))
		if err != nil {
			return nil, err
		}
		out = append(out, part...)
	}
	return out, nil
}

// look fails if a text holds the password.
func look(t *testing.T, where, text string) {
	t.Helper()
	lookFor(t, login.Password, where, text)
}

// lookFor fails if a text holds what is hidden, as it is or encoded.
func lookFor(t *testing.T, hidden, where, text string) {
	t.Helper()
	for _, form := range []string{hidden, fmt.Sprintf("%x", hidden)} {
		if bytes.Contains([]byte(text), []byte(form)) {
			t.Errorf("%s holds the password", where)
		}
	}
}
