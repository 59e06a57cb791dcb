package e2e

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/oci/image/imagetest"
)

// TestSave: what a job has written becomes an image, in a registry with a login of
// the user's own, and runs; the job goes on.
func TestSave(t *testing.T) {
	s := newSite(t, siteOptions{nodeConfig: "images: {hosts: [127.0.0.1]}\n"})
	base, err := open.push("demo/base:1", imagetest.Options{Busybox: true, Layers: [][]imagetest.File{{
		{Name: "opt/gone", Body: []byte("base\n")}, {Name: "opt/dir/old", Body: []byte("base\n")}, {Name: "opt/kept", Body: []byte("base\n")}}}})
	if err != nil {
		t.Fatal(err)
	}
	const work = `
mkdir -p /data/sub; echo new >/data/file; chown 1000:1001 /data/file; chmod 4750 /data/file; ln /data/file /data/hard; ln -s file /data/soft
rm /opt/gone; rm -r /opt/dir; mkdir /opt/dir; echo new >/opt/dir/new
echo mine >>/etc/hosts; echo stays >/project_ghent/stays; mkfifo /data/pipe
echo $SECRET >/dev/shm/secret; i=0; echo ready; trap 'exit 1' TERM
while :; do i=$((i+1)); echo $i >/dev/shm/beat; sleep 0.05; done`
	id := s.submit(doc{image: base, command: sh(work), storage: []any{map[string]any{"hostPath": "/project", "containerPath": "/project_ghent"}}})
	s.waitRunning(id)
	eventually(t, "the job has written", func() bool { return strings.Contains(s.run("glog", id).out, "ready") })
	config := filepath.Join(s.dir, "docker")
	if err := os.Mkdir(config, 0o700); err != nil {
		t.Fatal(err)
	}
	save := func(args ...string) result {
		cmd := exec.Command(filepath.Join(bin, "gqueue"), append([]string{"save"}, args...)...)
		cmd.Env = append(cleanEnv(), "GBATCH_CONTROLLER=unix://"+s.socket(), "DOCKER_CONFIG="+config)
		return execute(cmd)
	}
	to := private.host + "/mine/saved:1"
	if r := save(id, to); r.code == 0 || !strings.Contains(r.err, "nothing was saved, and the job was not touched") {
		t.Errorf("without a login: %v", r)
	}
	auth := base64.StdEncoding.EncodeToString([]byte(login.Username + ":" + login.Password))
	if err := os.WriteFile(config+"/config.json", fmt.Appendf(nil, `{"auths": {%q: {"auth": %q}}}`, private.host, auth), 0o600); err != nil {
		t.Fatal(err)
	}
	r := save(id, to)
	if r.code != 0 || !strings.HasPrefix(r.out, to+"@sha256:") {
		t.Fatalf("save: %v", r)
	}
	beat := s.must("gexec", id, "--", "cat", "/dev/shm/beat")
	eventually(t, "the job goes on", func() bool { return s.must("gexec", id, "--", "cat", "/dev/shm/beat") != beat })
	pull := strings.Replace(to, private.host, fmt.Sprintf("%s:%s@%s", login.Username, login.Password, private.host), 1)
	again := s.submit(doc{image: "docker://" + pull, command: sh(`
stat -c '%n %u:%g %a %h' /data/file; cat /data/hard; readlink /data/soft; ls -d /data/sub /data/pipe; ls /opt /opt/dir; cat /opt/kept; grep -c mine /etc/hosts; ls -a /project_ghent /dev/shm 2>&1; true`)})
	s.well(again)
	want := `/data/file 1000:1001 4750 2
new
file
/data/pipe
/data/sub
/opt:
dir
kept

/opt/dir:
new
base
0
ls: /project_ghent: No such file or directory
/dev/shm:
.
..
`
	if diff := cmp.Diff(want, s.must("glog", again)); diff != "" {
		t.Errorf("in the saved image (-want +got):\n%s", diff)
	}
	for name, args := range map[string][]string{
		"names a file of its own": {id, "oci:/tmp/x"},
		"a password":              {id, pull},
		"no such rank":            {"--rank", "2", id, to},
		"no such job":             {"999", to},
	} {
		if r := save(args...); r.code == 0 {
			t.Errorf("%s: %v", name, r)
		}
	}
	s.must("gexec", id, "--", "touch", "/data/.wh.x")
	if r := save(id, to); r.code == 0 || !strings.Contains(r.err, "/data/.wh.x: its name is one by which images say that a file is gone") {
		t.Errorf("a name that means something else in images: %v", r)
	}
	s.must("gcancel", id)
	s.wait(id)
	if r := save(id, to); r.code == 0 || !strings.Contains(r.err, "only while it runs") {
		t.Errorf("a job that has ended: %v", r)
	}
}

// TestSaveLetsGo: a job stands still only while it is saved, whoever dies, and its
// end is not held up.
func TestSaveLetsGo(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newSite(t, siteOptions{ctldConfig: quick})
	const work = `i=0; trap 'exit 1' TERM; head -c 64000000 /dev/zero >/data; while :; do i=$((i+1)); echo $i >/project_ghent/beat; sleep 0.05; done`
	id := s.submit(doc{command: sh(work), storage: []any{map[string]any{"hostPath": "/project", "containerPath": "/project_ghent"}}})
	s.waitRunning(id)
	beat := func() string {
		b, _ := os.ReadFile(s.project() + "/beat")
		return string(b)
	}
	moves := func() bool {
		was := beat()
		return poll(patience/30, func() bool { return beat() != was })
	}
	eventually(t, "the job works", func() bool { return beat() != "" })
	stand := func() {
		st, err := s.api.Enter(t.Context(), api.StreamSave, id, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { st.Close() })
		if err := st.Send(t.Context(), api.JSONFrame(api.FrameStart, api.SaveStart{})); err != nil {
			t.Fatal(err)
		}
		if f, err := st.Receive(t.Context()); err != nil || f.Type != api.FrameStart {
			t.Fatalf("%v, %v", f, err)
		}
		if moves() {
			t.Error("the job goes on while it is saved")
		}
	}
	stand()
	s.nodes[0].kill()
	s.nodes[0].cmd = nil
	s.nodes[0].start()
	eventually(t, "the job goes on after its node's daemon was killed", moves)
	s.waitNodes("up", 1)
	stand()
	s.must("gcancel", id)
	if d := s.wait(id); d.State != job.Cancelled {
		t.Errorf("a held job that is cancelled:\n%s", describe(d))
	}
}
