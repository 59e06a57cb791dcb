package e2e

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/hosttest"
	"gbatch/oci/image/imagetest"
)

// sshSite is a site with a user's configuration for Debian's ssh.
type sshSite struct {
	*site
	config string
}

func newSSHSite(t *testing.T, o siteOptions, programs ...string) *sshSite {
	t.Helper()
	for _, p := range append(programs, "ssh") {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("SKIPPED: %s is missing: install openssh-client and rsync", p)
		}
	}
	s := &sshSite{site: newSite(t, o)}
	cmd := s.client("gexec", "--ssh-config")
	cmd.Path, cmd.Err = filepath.Join(bin, "gexec"), nil
	cmd.Env = append(cmd.Env, "GBATCH_CONTROLLER=unix://"+s.socket())
	r := execute(cmd)
	if r.code != 0 {
		t.Fatal(r)
	}
	s.config = filepath.Join(s.dir, "ssh_config")
	if err := os.WriteFile(s.config, []byte(r.out), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// client is a program of the user's that knows of the site what is in files.
func (s *sshSite) client(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env = append(cleanEnv(), "XDG_CONFIG_HOME="+s.dir+"/home")
	return cmd
}

func (s *sshSite) ssh(input string, args ...string) result {
	cmd := s.client("ssh", append([]string{"-F", s.config}, args...)...)
	cmd.Stdin = strings.NewReader(input)
	return execute(cmd)
}

// TestSSH: commands by Debian's ssh, as sshd would run them.
func TestSSH(t *testing.T) {
	s := newSSHSite(t, siteOptions{})
	id := s.submit(doc{command: idle, env: map[string]string{"OF_JOB": "1"}})
	s.waitRunning(id)
	host := id + ".gbatch"
	for _, tc := range []struct {
		name, input string
		args        []string
		want        result
	}{
		{name: "code", args: []string{host, "echo out; echo err >&2; exit 7"}, want: result{7, "out\n", "err\n"}},
		{name: "true", args: []string{host, "true"}},
		{name: "rank", args: []string{id + "-0.gbatch", "echo $OF_JOB"}, want: result{out: "1\n"}},
		{name: "words", args: []string{host, "echo", "a  'b  c'", "$OF_JOB"}, want: result{out: "a b  c 1\n"}},
		{name: "killed", args: []string{host, "kill -15 $$"}, want: result{code: 143}},
		{name: "input", input: "a b\n", args: []string{host, "cat"}, want: result{out: "a b\n"}},
		{name: "shell", input: "echo $OF_JOB; exit 9\n", args: []string{"-T", host}, want: result{code: 9, out: "1\n"}},
		{name: "environment", args: []string{"-o", "SetEnv=MINE=2", host, "echo $MINE$OF_JOB"}, want: result{out: "21\n"}},
		{name: "user", args: []string{"nosuch@" + host, "id"}, want: result{code: 125, err: "gexec: image has no user \"nosuch\" in /etc/passwd\n"}},
		{name: "missing", args: []string{host, "nosuch"}, want: result{127, "", "/bin/sh: nosuch: not found\n"}},
		{name: "no_such_job", args: []string{"999.gbatch", "true"}, want: result{code: 255}},
		{name: "no_such_rank", args: []string{id + "-3.gbatch", "true"}, want: result{255, "", "gexec: job 1 has ranks 0 to 0\n"}},
		{name: "no_agent", args: []string{"-R", "0:localhost:1", "-o", "ExitOnForwardFailure=yes", host, "true"}, want: result{code: 255}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := s.ssh(tc.input, tc.args...)
			if tc.want.err == "" && tc.want.code == 255 {
				tc.want.err = got.err // as gqueue and ssh say it
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(result{})); diff != "" {
				t.Errorf("ssh (-want +got):\n%s", diff)
			}
		})
	}
	if r := s.ssh("", "-R", "0:localhost:1", host, "true"); r.code != 0 || !strings.Contains(r.err, "-R and RemoteForward are not supported") {
		t.Errorf("-R: %v", r)
	}
	tm := s.program("/usr/bin/ssh", 41, 101, "-F", s.config, "-t", host, "tty; stty size; echo $TERM-; while [ \"$(stty size)\" != '30 90' ]; do sleep 0.05; done; stty size; sleep 1002; echo on; exit 5")
	tm.shows(`/dev/pts/0\r\n41 101\r\nvt100-`)
	tm.resize(30, 90)
	tm.shows(`\n30 90`)
	s.inJob("sleep 1002")
	tm.types("\x03")
	if code := tm.code(); code != 130 {
		t.Errorf("Ctrl-C at the terminal: code %d, want 130", code)
	}
	cmd := s.client("ssh", "-F", s.config, host, "echo up; sleep 1003")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Process.Kill() // what ran for it ends
	_ = cmd.Wait()
	eventually(t, "the command of a killed ssh has ended", func() bool { return !strings.Contains(s.run("gexec", id, "--", "ps").out, "sleep 1003") })
	s.must("gcancel", id)
	s.wait(id)
	if r := s.ssh("", host, "true"); r.code != 255 || !strings.Contains(r.err, "it can be entered only while it runs") {
		t.Errorf("ssh into an ended job: %v", r)
	}
}

// TestSSHFiles: sftp, scp and rsync, with much data, and as the job's user.
func TestSSHFiles(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newSSHSite(t, siteOptions{}, "sftp", "scp", "rsync")
	box, err := withRsync()
	if err != nil {
		t.Fatal(err)
	}
	name, err := open.push("demo/rsync:1", box)
	if err != nil {
		t.Fatal(err)
	}
	id := s.submit(doc{image: name, command: idle, gb: 2})
	s.waitRunning(id)
	host := id + ".gbatch"
	const size = 64 << 20
	data := make([]byte, size)
	rand.NewChaCha8([32]byte{2}).Read(data)
	file := filepath.Join(s.dir, "data")
	if err := os.WriteFile(file, data, 0o640); err != nil {
		t.Fatal(err)
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(data))
	copies := map[string][][]string{
		"sftp":  {{"scp", "-F", s.config, "-p", file, host + ":/tmp/sftp"}, {"scp", "-F", s.config, host + ":/tmp/sftp", s.dir + "/sftp"}},
		"rsync": {{"rsync", "-a", "-e", "ssh -F " + s.config, file, host + ":/tmp/rsync"}, {"rsync", "-a", "-e", "ssh -F " + s.config, host + ":/tmp/rsync", s.dir + "/rsync"}},
	}
	for way, both := range copies {
		t.Run(way, func(t *testing.T) {
			for _, args := range both {
				if r := execute(s.client(args[0], args[1:]...)); r.code != 0 {
					t.Fatalf("%s: %v", args, r)
				}
			}
			if there := s.ssh("", host, "sha256sum /tmp/"+way).out; !strings.HasPrefix(there, sum) {
				t.Errorf("in the job: %s, want %s", there, sum)
			}
			if back, err := os.ReadFile(s.dir + "/" + way); err != nil || !bytes.Equal(back, data) {
				t.Errorf("what came back: %d bytes, %v", len(back), err)
			}
		})
	}
	batch := filepath.Join(s.dir, "batch")
	if err := os.WriteFile(batch, []byte("mkdir /tmp/d\nput "+file+" /tmp/d/x\nchmod 600 /tmp/d/x\nrename /tmp/d/x /tmp/d/y\nln -s y /tmp/d/z\nls -l /tmp/d\npwd\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := execute(s.client("sftp", "-F", s.config, "-b", batch, host))
	if r.code != 0 || !regexp.MustCompile(`(?m)^-rw-------.* 67108864 .* y$`).MatchString(r.out) || !strings.Contains(r.out, " z\n") {
		t.Errorf("sftp: %v", r)
	}
	if owner := s.ssh("", host, "stat -c %u:%g /tmp/d/y; id -u; stat -c %u:%g /tmp").out; !strings.HasPrefix(owner, "0:0\n0\n") {
		t.Errorf("owners of what sftp wrote: %q", owner)
	}
}

// TestSSHToolIsTheNodes: the program that serves files is the node's, and whoever
// is root in the container cannot change it.
func TestSSHToolIsTheNodes(t *testing.T) {
	s := newSSHSite(t, siteOptions{}, "sftp")
	id := s.submit(doc{command: idle})
	s.waitRunning(id)
	cmd := s.client("sftp", "-F", s.config, id+".gbatch")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { in.Close(); _ = cmd.Wait() }()
	const attack = `for p in /proc/[0-9]*; do case "$(readlink $p/exe)" in *gbatch-rank*)
echo seen; chmod 777 $p/exe; for f in exe fd/3; do (: >>$p/$f) && echo written; done;; esac; done`
	var r result
	eventually(t, "the program runs in the job", func() bool {
		r = s.run("gexec", id, "--", "sh", "-c", attack)
		return strings.Contains(r.out, "seen")
	})
	if strings.Contains(r.out, "written") || strings.Count(r.err, "chmod: ") == 0 {
		t.Errorf("the job changes the node's program: %v", r)
	}
}

// withRsync is an image with the machine's rsync.
func withRsync() (imagetest.Options, error) {
	out, err := exec.Command("ldd", "/usr/bin/rsync").Output()
	if err != nil {
		return imagetest.Options{}, err
	}
	var files []imagetest.File
	for _, name := range append(regexp.MustCompile(`/\S+`).FindAllString(string(out), -1), "/usr/bin/rsync") {
		body, err := os.ReadFile(name)
		if err != nil {
			return imagetest.Options{}, err
		}
		files = append(files, imagetest.File{Name: strings.TrimPrefix(name, "/"), Mode: 0o755, Body: body})
	}
	return imagetest.Options{Busybox: true, Layers: [][]imagetest.File{files}}, nil
}

// TestSSHForward: -L to a port and to a socket, and -W to what the job reaches
// from inside, over one connection.
func TestSSHForward(t *testing.T) {
	s := newSSHSite(t, siteOptions{})
	id := s.submit(doc{command: sh("mkdir -p /tmp/w; echo hello >/tmp/w/index.html; httpd -p 8080 -h /tmp/w; trap 'exit 1' TERM; sleep 1000 & wait")})
	s.waitRunning(id)
	host := id + ".gbatch"
	eventually(t, "the server listens", func() bool {
		return s.run("gexec", id, "--", "wget", "-qO-", "http://127.0.0.1:8080/").out == "hello\n"
	})
	address := strings.Fields(s.must("gexec", id, "--", "hostname", "-i"))[0]
	ports := make([]string, 3)
	for i := range ports {
		a, err := hosttest.FreeAddress()
		if err != nil {
			t.Fatal(err)
		}
		_, ports[i], _ = net.SplitHostPort(a)
	}
	control := filepath.Join(s.dir, "control")
	master := s.client("ssh", "-F", s.config, "-M", "-S", control, "-N", "-o", "ExitOnForwardFailure=yes",
		"-L", ports[0]+":localhost:8080", "-L", ports[1]+":"+address+":8080", "-L", ports[2]+":/tmp/none.sock", host)
	var said lockedBuffer
	master.Stderr = &said
	if err := master.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = master.Wait(); close(ended) }() // awaited below
	defer func() {
		_ = master.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("ssh said: %s", said.String())
		}
	}()
	for _, port := range ports[:2] {
		eventually(t, "a forwarded port answers", func() bool {
			select {
			case <-ended:
				t.Fatal("ssh has ended")
			default:
			}
			return fetch(port) == "hello\n"
		})
	}
	if got := fetch(ports[2]); got != "" {
		t.Errorf("a socket that is not there: %q", got)
	}
	// A second session over the same connection.
	if r := execute(s.client("ssh", "-F", s.config, "-S", control, host, "echo again")); r.out != "again\n" {
		t.Errorf("over the same connection: %v", r)
	}
	request := "GET / HTTP/1.0\r\n\r\n"
	if r := s.ssh(request, "-W", address+":8080", host); !strings.HasSuffix(r.out, "hello\n") {
		t.Errorf("-W: %v", r)
	}
	if r := s.ssh("", "-W", address+":8081", host); r.code == 0 || !strings.Contains(r.err, "connection refused") {
		t.Errorf("-W to a closed port: %v", r)
	}
}

// fetch is what a server at a port here answers.
func fetch(port string) string {
	c := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := c.Get("http://127.0.0.1:" + port)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return string(body)
}

// TestSSHMany: as many commands at once over one connection as a person may start.
func TestSSHMany(t *testing.T) {
	s := newSSHSite(t, siteOptions{})
	id := s.submit(doc{command: idle})
	s.waitRunning(id)
	done := make(chan result)
	for i := range 8 {
		go func() { done <- s.ssh("", id+".gbatch", "echo "+strconv.Itoa(i)) }() // ends with its ssh, awaited below
	}
	sum := 0
	for range 8 {
		r := <-done
		n, err := strconv.Atoi(strings.TrimSpace(r.out))
		if err != nil {
			t.Errorf("ssh: %v", r)
		}
		sum += n
	}
	if sum != 28 {
		t.Errorf("the answers sum up to %d", sum)
	}
}
