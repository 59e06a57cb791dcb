package noded

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/noded/config"
)

// setSecrets gives a rank values, as the controller does.
func (f *fakeController) setSecrets(id job.RankID, version uint32, values map[string]string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.secrets == nil {
		f.secrets = map[job.RankID]*api.Secrets{}
	}
	f.secrets[id] = &api.Secrets{Version: version, Values: values}
	f.version++
	f.touch()
}

// secretOrder is a rank with secrets of the given names.
func secretOrder(line string, names ...string) *api.RunOrder {
	return order(line, func(o *api.RunOrder) {
		o.Spec.Gbatch = &job.Gbatch{}
		for _, n := range names {
			o.Spec.Gbatch.Secrets = append(o.Spec.Gbatch.Secrets, job.Secret{Name: n})
		}
	})
}

const hidden = "xyzzy-never-on-a-disk"

// TestSecrets: a program that is not root finds its secrets as variables and
// files; a new value comes into the files while it runs, also through a daemon
// that was killed in between; and no file of the node ever has one.
func TestSecrets(t *testing.T) {
	top := shared(t)
	if err := os.Chmod(top, 0o777); err != nil {
		t.Fatal(err)
	}
	s := newSite(t, func(c *config.Config) { c.Storage = []config.StorageRoot{{Name: "/out", Path: top}} })
	p := s.spawn(0)
	id := rankID(1)
	s.setSecrets(id, 1, map[string]string{"TOKEN": hidden + "-1", "key.json": `{"a":1}`})
	s.want(id, order(`cd /var/secrets; echo "$TOKEN"; cat TOKEN; echo; tr -d ' \n' <secrets.json; echo
stat -c '%n %a %u' secrets.json TOKEN; touch /var/secrets/x 2>&1; env | grep -c key.json; echo ready
until grep -q -- -2 TOKEN; do sleep 0.02; done; cat TOKEN; echo; echo "$TOKEN"; touch /out/second
until grep -q -- -3 TOKEN; do sleep 0.02; done; cat TOKEN NEW; echo; tr -d ' \n' <secrets.json; echo`, func(o *api.RunOrder) {
		o.Spec.Gbatch = &job.Gbatch{Secrets: []job.Secret{{Name: "TOKEN"}, {Name: "key.json"}}}
		o.Spec.Request.Docker.User = "bob"
		o.Spec.Request.Docker.Storage = []job.Storage{{HostPath: "/out", ContainerPath: "/out"}}
	}))
	s.ready(id)
	s.noFileHas(hidden)
	s.setSecrets(id, 2, map[string]string{"TOKEN": hidden + "-2", "key.json": `{"a":1}`})
	until(t, "the program to see the second value", func() bool {
		_, err := os.Stat(filepath.Join(top, "second"))
		return err == nil
	})
	p.kill()
	p = s.spawn(1)
	s.await("the daemon to have the secrets again", func() bool { return s.status[id].Secrets == 2 })
	s.setSecrets(id, 3, map[string]string{"TOKEN": hidden + "-3", "key.json": `{"a":1}`, "NEW": "new"})
	if e := s.exit(id); e.Code != 0 {
		t.Errorf("exit %+v", e)
	}
	want := strings.ReplaceAll(`H-1
H-1
{"TOKEN":"H-1","key.json":{"a":1}}
secrets.json 400 1000
TOKEN 400 1000
touch: /var/secrets/x: Read-only file system
0
ready
H-2
H-1
H-3new
{"NEW":"new","TOKEN":"H-3","key.json":{"a":1}}
`, "H", hidden)
	if diff := cmp.Diff(want, s.output(id)); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	text := p.text()
	s.empty()
	s.leavesNothing()
	p.term()
	if strings.Contains(text, hidden) {
		t.Errorf("the daemon's log has a secret:\n%s", text)
	}
}

// noFileHas looks for text in all files of the node but in the file system in
// memory that has to have it, and in what all processes but the job's show.
func (s *site) noFileHas(text string) {
	s.t.Helper()
	seen := 0
	err := filepath.WalkDir(s.cfg.StateDir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil // it went meanwhile
		case d.IsDir() && filepath.Base(path) == "secrets" && strings.HasSuffix(filepath.Dir(path), "/mnt"):
			return filepath.SkipDir
		case !d.Type().IsRegular() || strings.Contains(path, "/log/"):
			return nil // the program prints them
		}
		if filepath.Base(filepath.Dir(path)) == "disk" {
			return nil // gigabytes of holes: disks of containers, looked at where they are mounted
		}
		b, err := os.ReadFile(path)
		if seen++; err == nil && bytes.Contains(b, []byte(text)) {
			s.t.Errorf("%s has a secret", path)
		}
		return nil
	})
	if err != nil || seen < 10 {
		s.t.Errorf("looked through %d files: %v", seen, err)
	}
	for _, pid := range append(shims(s.cfg.StateDir), os.Getpid()) {
		for _, name := range []string{"cmdline", "environ"} {
			b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), name))
			if err != nil || bytes.Contains(b, []byte(text)) {
				s.t.Errorf("process %d has a secret in its %s (%v)", pid, name, err)
			}
		}
	}
}

// TestSecretsMissing: a rank that has to have secrets does not run without.
func TestSecretsMissing(t *testing.T) {
	s := newSite(t, nil).start()
	e, _ := s.runNoLog(rankID(1), secretOrder("echo ran", "TOKEN"))
	if e.Reason != job.Server || e.StartedMS != 0 {
		t.Errorf("exit %+v", e)
	}
	s.empty()
	s.leavesNothing()
}
