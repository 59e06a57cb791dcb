package ctld

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/ctld/backup"
	"gbatch/internal/ctld/site"
	"gbatch/internal/job"
	"gbatch/internal/node"
)

// backup writes a backup of the site into a file.
func (s *testSite) backup(vault bool) string {
	s.t.Helper()
	r, err := s.Backup(s.t.Context(), vault)
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		s.t.Fatal(err)
	}
	path := filepath.Join(s.t.TempDir(), "backup")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// lose takes the controller's disk away, and gives it a new one.
func (s *testSite) lose() {
	s.t.Helper()
	s.stop()
	s.Close()
	s.cfg.Dir = s.t.TempDir()
}

// states are the jobs' states, by number.
func (s *testSite) states() map[job.Number]job.State {
	s.t.Helper()
	l, err := s.Jobs(s.t.Context(), client.JobFilter{All: true})
	if err != nil {
		s.t.Fatal(err)
	}
	out := map[job.Number]job.State{}
	for _, j := range l.Jobs {
		out[j.Number] = j.State
	}
	return out
}

// until syncs until the node holds so many ranks.
func (n *fakeNode) until(ranks int) {
	n.s.t.Helper()
	for end := time.Now().Add(time.Minute); len(n.held) != ranks; n.sync(nil) {
		if time.Now().After(end) {
			n.s.t.Fatalf("node %s holds %v, want %d ranks", n.name, n.held, ranks)
		}
	}
}

// TestBackup makes a backup while jobs run, goes on, loses everything, and goes
// on from the backup under the same name.
func TestBackup(t *testing.T) {
	s := newSite(t, nil)
	n := s.node("n1")
	for range 2 {
		s.submit(hello(4), "")
	}
	n.until(2)
	for id := range n.held {
		n.report(id, node.PhaseRunning, nil)
	}
	waits := s.submit(hello(8), "once")
	file, pin := s.backup(true), s.pin()

	quick := hello(1) // it is over before the one that waits could start
	quick.Job = bytes.Replace(quick.Job, []byte(`"docker"`), []byte(`"scheduling":{"maxDuration":"1 minute"},"docker"`), 1)
	later := s.submit(quick, "")
	first, second := job.RankID{Job: 1, Attempt: 1}, job.RankID{Job: 2, Attempt: 1}
	n.report(second, node.PhaseEnded, &node.Exit{})
	n.until(2) // the later job is there
	s.lose()
	if _, err := backup.Restore(s.cfg, backup.Options{File: file}); err != nil {
		t.Fatal(err)
	}
	s.start()
	if got := s.pin(); got != pin {
		t.Errorf("the pin is %s, was %s: nodes and clients would not speak to it", got, pin)
	}
	if again := s.submit(hello(8), "once"); again.Number != waits.Number {
		t.Errorf("the same submission again is job %d, was %d", again.Number, waits.Number)
	}
	fresh := s.submit(hello(4), "")
	if fresh.Number <= later.Number {
		t.Errorf("number %d is given twice", fresh.Number)
	}
	held := n.held
	delete(held, second) // it has ended, and the controller knew
	n.sync(nil)
	if _, ok := n.held[first]; !ok || len(n.held) != 1 {
		t.Errorf("the node goes on with %v, want the first job's rank alone", n.held)
	}
	n.sync(nil)
	n.until(2)
	want := map[job.Number]job.State{1: job.Running, 2: job.Failed, waits.Number: job.OnHold, fresh.Number: job.Assigned}
	if diff := cmp.Diff(want, s.states()); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
	s.stop() // what was restored is an ordinary state
	s.start()
	if diff := cmp.Diff(want, s.states()); diff != "" {
		t.Errorf("states after another start (-want +got):\n%s", diff)
	}
}

// TestBackupWithoutSecrets: the key of secrets is left out, and then brought
// along or given up.
func TestBackupWithoutSecrets(t *testing.T) {
	s := newSite(t, nil)
	doc := strings.Replace(string(hello(1).Job), `"request"`, `"gbatch":{"secrets":[{"name":"TOKEN","value":"hush"}]},"request"`, 1)
	sealed := s.submit(&api.SubmitRequest{Job: []byte(doc)}, "")
	plain := s.submit(hello(1), "")
	file := s.backup(false)
	key, err := os.ReadFile(filepath.Join(s.cfg.Dir, site.VaultFile))
	if err != nil {
		t.Fatal(err)
	}
	keyFile := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(keyFile, key, 0o600); err != nil {
		t.Fatal(err)
	}
	s.lose()
	if _, err := backup.Restore(s.cfg, backup.Options{File: file}); err == nil || !strings.Contains(err.Error(), "--secrets-key") {
		t.Errorf("without the key: %v; want what to do", err)
	}
	if _, err := backup.Restore(s.cfg, backup.Options{File: file, VaultKey: keyFile}); err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Restore(s.cfg, backup.Options{File: file, VaultKey: keyFile}); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("restored over a directory in use: %v", err)
	}
	s.cfg.Dir = t.TempDir()
	if _, err := backup.Restore(s.cfg, backup.Options{File: file, DropSecrets: true, Queue: true}); err != nil {
		t.Fatal(err)
	}
	s.start()
	if diff := cmp.Diff(map[job.Number]job.State{sealed.Number: job.Failed, plain.Number: job.Queued}, s.states()); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
}

// TestDamagedBackup: whatever is cut off or changed is refused, and nothing is
// left behind.
func TestDamagedBackup(t *testing.T) {
	s := newSite(t, nil)
	good, err := os.ReadFile(s.backup(true))
	if err != nil {
		t.Fatal(err)
	}
	turned := bytes.Clone(good)
	turned[len(turned)/2] ^= 1
	for name, data := range map[string][]byte{"empty": nil, "cut": good[:len(good)-5], "half": good[:len(good)/2], "turned": turned, "text": []byte("hello")} {
		file, dir := filepath.Join(t.TempDir(), "b"), t.TempDir()
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := backup.Restore(site.Config{Dir: dir}, backup.Options{File: file}); err == nil {
			t.Errorf("%s: restored", name)
		} else if len(data) > len(good)/3 && !strings.Contains(err.Error(), "it is damaged or cut off") {
			t.Errorf("%s: %v", name, err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s: left %v (%v)", name, left, err)
		}
	}
}
