package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"gbatch/internal/hosttest"
)

// stranger is a user who is in no project but the open one.
const stranger = 65534

// TestOtherUsers looks at a project's jobs with the eyes of somebody who is
// not in it, and of a member of the open project.
func TestOtherUsers(t *testing.T) {
	s := newSite(t, siteOptions{ctldConfig: "projects:\n  - name: default\n  - name: closed\n    members: [root]\n"})
	asStranger := s.as(stranger)
	closed := s.submit(doc{name: "hush-hush", owner: "closed", command: sh("echo hush-output; trap 'exit 1' TERM; sleep 1000 & wait"), env: map[string]string{"HUSH": "hush-value"}})
	s.waitRunning(closed)
	for _, tc := range []struct {
		name string
		args []string
		code int
	}{
		{"list", []string{"gqueue", "-l"}, 0},
		{"list_json", []string{"gqueue", "--json"}, 0},
		{"show", []string{"gqueue", "show", closed}, 0},
		{"log", []string{"glog", closed}, 4},
		{"cancel", []string{"gcancel", closed}, 4},
		{"hold", []string{"gcancel", "--hold", closed}, 4},
		{"exec", []string{"gexec", closed, "--", "env"}, 125},
		{"attach", []string{"gexec", "--attach", closed}, 125},
		{"update", []string{"gqueue", "update", closed, "--mem", "2G"}, 4},
		{"forward", []string{"gexec", "--forward", "0:80", closed}, 125},
		{"submit_there", []string{"gsubmit", s.write(doc{owner: "closed"}.json())}, 4},
		{"raise_priority", []string{"gsubmit", s.write(doc{gbatch: map[string]any{"priority": 5}}.json())}, 4},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := asStranger(tc.args[0], tc.args[1:]...)
			if r.code != tc.code {
				t.Errorf("%s: %v; want exit code %d", tc.args[0], r, tc.code)
			}
			if strings.Contains(r.out+r.err, "hush") || strings.Contains(r.out+r.err, image) {
				t.Errorf("%s shows what is not theirs: %v", tc.args[0], r)
			}
			if tc.code == 0 && !strings.Contains(r.out, closed) {
				t.Errorf("%s does not show that there is a job: %v", tc.args[0], r)
			}
		})
	}
	r := asStranger("gsubmit", "--wait", s.write(doc{name: "theirs", command: sh("echo $GPULAB_USERNAME-$GPULAB_PROJECT")}.json()))
	if r.code != 0 {
		t.Errorf("a job of their own: %v", r)
	}
	own := strings.TrimSpace(strings.SplitN(r.out, "\n", 2)[0])
	if out := asStranger("glog", own); out.out != "nobody-default\n" {
		t.Errorf("the log of their own job: %v", out)
	}
	if s.job(closed).State.Final() {
		t.Errorf("somebody ended the job:\n%s", describe(s.job(closed)))
	}
}

// TestTokens lets a node and users come over TLS: the node joins by a token and
// is known by its key from then on; a user has a token, which can be revoked.
func TestTokens(t *testing.T) {
	listen, err := hosttest.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	address := ""
	s := newSite(t, siteOptions{listen: listen, nodeConfig: "joinTokenFile: DIR/join.token\n",
		nodesDial: func(_ int, controller string) string {
			dir := filepath.Dir(strings.TrimPrefix(controller, "unix://"))
			r := execute(exec.Command(filepath.Join(bin, "gctld"), "init", "--config", dir+"/gctld.yaml"))
			address = regexp.MustCompile(`https://[^']+`).FindString(r.out)
			if address == "" {
				t.Fatalf("gctld init says no address: %v", r)
			}
			return "'" + address + "'"
		},
		ready: func(s *site) {
			if err := os.WriteFile(s.dir+"/join.token", []byte(s.must("gadm", "node-token", "create")), 0o600); err != nil {
				t.Fatal(err)
			}
		}})
	if out := strings.TrimSpace(s.must("gadm", "join-string")); out != address {
		t.Errorf("gctld init said %q, gadm join-string says %q", address, out)
	}
	file := s.write(doc{command: []string{"true"}}.json())
	secret := func(name, text string) string {
		path := filepath.Join(s.dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := secret("good", s.must("gadm", "token", "create", "-u", "ann"))
	revoked := secret("revoked", s.must("gadm", "token", "create", "-u", "ann", "--note", "revoked"))
	for line := range strings.Lines(s.must("gadm", "token", "list", "-a")) {
		if strings.Contains(line, "revoked") {
			s.must("gadm", "token", "revoke", strings.Fields(line)[0])
		}
	}
	for _, tc := range []struct {
		name string
		args []string
		code int
		text string // in stderr
	}{
		{"none", nil, 4, "token"},
		{"wrong", []string{"--token-file", secret("wrong", "no-such-token")}, 4, "token"},
		{"to_join", []string{"--token-file", s.dir + "/join.token"}, 4, "join"},
		{"revoked", []string{"--token-file", revoked}, 4, "revoked"},
		{"good", []string{"--token-file", good}, 0, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			args := append(tc.args, "--controller", address, file)
			if r := s.run("gsubmit", args...); r.code != tc.code || !strings.Contains(r.err, tc.text) {
				t.Errorf("gsubmit: %v; want exit code %d and %q", r, tc.code, tc.text)
			}
		})
	}
	if d := s.wait("1"); endOf(d) != finished || d.User != "ann" {
		t.Errorf("a job over TLS:\n%s", describe(d))
	}
	out := s.run("gexec", "--controller", address, "--token-file", good, "1", "--", "true")
	if out.code != 125 || !strings.Contains(out.err, "FINISHED") {
		t.Errorf("entering a job that has ended: %v", out)
	}
	if out := s.must("gadm", "audit"); !strings.Contains(out, "ann") || !strings.Contains(out, "job 1") || strings.Contains(out, strings.TrimSpace(s.read(good))) {
		t.Errorf("the audit log:\n%s", out)
	}
}

func (s *site) read(path string) string {
	s.t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(b)
}

// as gives a function that runs commands as another user. The commands are
// copied to where everyone may read.
func (s *site) as(uid uint32) func(name string, args ...string) result {
	s.t.Helper()
	if err := os.Chmod(s.dir, 0o755); err != nil {
		s.t.Fatal(err)
	}
	dir := filepath.Join(s.dir, "bin")
	if err := os.Mkdir(dir, 0o755); err != nil {
		s.t.Fatal(err)
	}
	for _, name := range []string{"gsubmit", "gqueue", "gcancel", "glog", "gexec"} {
		b, err := os.ReadFile(filepath.Join(bin, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), b, 0o755)
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
	return func(name string, args ...string) result {
		cmd := exec.Command(filepath.Join(dir, name), args...)
		cmd.Dir, cmd.Env = "/", append(cleanEnv(), "GBATCH_CONTROLLER=unix://"+s.socket())
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		return execute(cmd)
	}
}
