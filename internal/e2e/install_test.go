package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gbatch/internal/client"
	"gbatch/internal/job"
)

// TestInitAndJoin sets a site up as the documents say, word by word: init, start,
// join from another machine and from the same one, start, submit.
func TestInitAndJoin(t *testing.T) {
	needs(t)
	dir, err := os.MkdirTemp("/tmp", "gbatch-e2e-site-")
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, dir: dir, bin: bin, api: &client.Client{Address: "unix://" + dir + "/gctld.sock", Timeout: patience}}
	s.ctld = &daemon{s: s, name: "gctld", program: "gctld", bin: bin, config: dir + "/etc/gctld.yaml", log: dir + "/gctld.log"}
	t.Cleanup(s.close)

	init := []string{"init", "--config", s.ctld.config}
	r := s.run("gctld", append(init, "--dir", dir+"/ctld", "--socket", s.socket(), "--listen", "127.0.0.1:7177")...)
	if r.code != 0 {
		t.Fatalf("gctld init: %v", r)
	}
	address := regexp.MustCompile(`https://127\.0\.0\.1:7177#sha256=[\w-]+`).FindString(r.out)
	for _, want := range []string{"gctld run --config " + s.ctld.config, "gnoded join unix://" + s.socket(), "gadm node-token create --to join.token", "gnoded join '" + address + "' --token-file join.token"} {
		if address == "" || !strings.Contains(r.out, want) {
			t.Errorf("gctld init does not say %q:\n%s", want, r.out)
		}
	}
	before := s.read(s.ctld.config)
	if r := s.run("gctld", init...); r.code != 0 || !strings.Contains(r.out, address) {
		t.Errorf("gctld init again: %v; want the same controller", r)
	}
	if r := s.run("gctld", append(init, "--listen", "127.0.0.1:7178")...); r.code == 0 || !strings.Contains(r.err, "--force") {
		t.Errorf("gctld init over a file that is there: %v", r)
	}
	if s.read(s.ctld.config) != before {
		t.Error("gctld init changed a file that was there")
	}
	s.ctld.start()
	eventually(t, "the controller answers", func() bool { _, err := s.api.Status(t.Context()); return err == nil })

	join := func(i int, address string, more ...string) result {
		n := s.nodeName(i)
		config := filepath.Join(dir, "etc", n+".yaml")
		if i == len(s.nodes) {
			s.nodes = append(s.nodes, &daemon{s: s, name: n, program: "gnoded", bin: bin, config: config, log: filepath.Join(dir, n+".log")})
		}
		return s.run("gnoded", append([]string{"join", "--config", config, "--name", n, "--state-dir", filepath.Join(dir, n), address}, more...)...)
	}
	if r := join(0, address); r.code == 0 || !strings.Contains(r.err, "gadm node-token create") {
		t.Errorf("gnoded join without a token: %v", r)
	}
	token := s.must("gadm", "node-token", "create")
	bad := filepath.Join(dir, "bad.token")
	if err := os.WriteFile(bad, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := join(0, address, "--token-file", bad); r.code == 0 {
		t.Errorf("gnoded join with a bad token: %v", r)
	}
	if _, err := os.Stat(s.nodes[0].config); err == nil {
		t.Error("gnoded join that failed left a configuration file")
	}
	n := s.nodeName(0)
	args := []string{"join", "--config", s.nodes[0].config, "--name", n, "--state-dir", filepath.Join(dir, n), address, "--token-file", "-"}
	if r := s.runInput(token, "gnoded", args...); r.code != 0 || !strings.Contains(r.out, "gnoded run --config "+s.nodes[0].config) || !strings.Contains(r.out, "ok    controller at") {
		t.Fatalf("gnoded join: %v", r)
	}
	if r := s.run("gnoded", "join", "--config", s.nodes[0].config, address); r.code != 0 || !strings.Contains(r.out, "was not changed") {
		t.Errorf("gnoded join again: %v; want that it is fine", r)
	}
	if r := s.run("gnoded", "join", "--config", s.nodes[0].config, "unix://"+s.socket()); r.code == 0 || !strings.Contains(r.err, "--force") {
		t.Errorf("gnoded join to another address: %v", r)
	}
	if r := join(1, "unix://"+s.socket(), "--simulate-gpus", "h100:2"); r.code != 0 {
		t.Fatalf("gnoded join beside the socket: %v", r)
	}
	for _, d := range s.nodes {
		allowRegistry(t, d.config)
		d.start()
	}
	s.waitNodes("up", 2)
	if d := s.wait(s.submit(doc{name: "first", command: []string{"true"}})); d.State != job.Finished {
		t.Error(describe(d))
	}
}

// allowRegistry does what an administrator does whose registry is in the site.
func allowRegistry(t *testing.T, config string) {
	t.Helper()
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	before, after, found := strings.Cut(string(text), "images:\n")
	after = strings.Replace(after, "hosts: []", "hosts: [127.0.0.1]", 1)
	if !found || !strings.Contains(after, "127.0.0.1") {
		t.Fatalf("%s has no list of the site's registries", config)
	}
	if err := os.WriteFile(config, []byte(before+"images:\n"+after), 0o600); err != nil {
		t.Fatal(err)
	}
}
