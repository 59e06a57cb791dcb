package e2e

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gbatch/internal/hosttest"
)

// peaks samples the most memory, in KiB, that each of our programs has held.
type peaks map[string]int

func (p peaks) sample() {
	procs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range procs {
		exe, _ := os.Readlink(dir + "/exe")
		if cmdline, _ := os.ReadFile(dir + "/cmdline"); bytes.Contains(cmdline, []byte("\x00shim\x00")) {
			exe = "shim"
		}
		status, err := os.ReadFile(dir + "/status")
		if err != nil || exe != "shim" && !strings.HasPrefix(exe, bin+"/") {
			continue
		}
		if _, text, ok := strings.Cut(string(status), "VmHWM:"); ok {
			var kib int
			_, _ = fmt.Sscan(text, &kib)
			p[filepath.Base(exe)] = max(p[filepath.Base(exe)], kib)
		}
	}
}

// during runs a command, and samples until it has ended.
func (p peaks) during(cmd *exec.Cmd) result {
	done := make(chan result)
	go func() { done <- execute(cmd) }() // ends with the command, awaited below
	for tick := time.NewTicker(100 * time.Millisecond); ; {
		select {
		case r := <-done:
			tick.Stop()
			return r
		case <-tick.C:
			p.sample()
		}
	}
}

// TestSSHLarge: no program on the way of a large file holds much of it.
func TestSSHLarge(t *testing.T) {
	t.Parallel()                   // it mostly waits
	size, most := 160<<20, 128<<10 // bytes, KiB
	if os.Getenv("GBATCH_E2E_LARGE") != "" {
		size = 1 << 30
	}
	s := newSSHSite(t, siteOptions{}, "scp", "rsync")
	box, err := withRsync()
	if err != nil {
		t.Fatal(err)
	}
	name, err := open.push("large:1", box)
	if err != nil {
		t.Fatal(err)
	}
	id := s.submit(doc{image: name, command: idle, gb: 2})
	s.waitRunning(id)
	host := id + ".gbatch"
	file, back := filepath.Join(s.dir, "data"), filepath.Join(s.dir, "back")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.CopyN(io.MultiWriter(f, h), rand.NewChaCha8([32]byte{3}), int64(size)); err != nil {
		t.Fatal(err)
	}
	sum := fmt.Sprintf("%x", h.Sum(nil))
	ssh := "ssh -F " + s.config
	for _, way := range []struct{ name, to, from string }{
		{"ssh", ssh + " " + host + " 'cat >/tmp/x' <" + file, ssh + " " + host + " 'cat /tmp/x' >" + back},
		{"scp", "scp -F " + s.config + " " + file + " " + host + ":/tmp/x", "scp -F " + s.config + " " + host + ":/tmp/x " + back},
		{"rsync", "rsync -e '" + ssh + "' " + file + " " + host + ":/tmp/x", "rsync -e '" + ssh + "' " + host + ":/tmp/x " + back},
	} {
		t.Run(way.name, func(t *testing.T) {
			p := peaks{}
			for _, line := range []string{way.to, way.from} {
				if r := p.during(s.client("sh", "-c", line)); r.code != 0 {
					t.Fatalf("%s: %v", line, r)
				}
			}
			if there := s.ssh("", host, "sha256sum </tmp/x; rm /tmp/x").out; !strings.HasPrefix(there, sum) {
				t.Errorf("in the job: %s, want %s", there, sum)
			}
			if here := execute(exec.Command("sha256sum", back)).out; !strings.HasPrefix(here, sum) {
				t.Errorf("back here: %s, want %s", here, sum)
			}
			_ = os.Remove(back)
			t.Logf("%d MiB each way; most memory in KiB: %v", size>>20, p)
			for _, program := range []string{"gctld", "gnoded", "gexec", "shim"} {
				if kib, ok := p[program]; !ok || kib > most {
					t.Errorf("%s held up to %d KiB, want %d at most", program, kib, most)
				}
			}
		})
	}
}

// remoteStart is what an editor does to start its server on another machine: it
// writes the program, runs it behind the shell's back, and says at which port.
const remoteStart = `
set -e
mkdir -p ~/.server/bin
cat >~/.server/bin/server <<'EOF'
#!/bin/sh
mkdir -p /tmp/www && echo from the server >/tmp/www/index.html
exec httpd -f -p 127.0.0.1:8391 -h /tmp/www
EOF
chmod +x ~/.server/bin/server
if ! [ -e ~/.server/pid ]; then
	setsid ~/.server/bin/server >~/.server/log 2>&1 </dev/null &
	echo $! >~/.server/pid
fi
echo "listeningOn==8391=="
`

// TestSSHEditor: what VS Code's Remote SSH does with stock ssh. Its files come as an
// archive by the input of a command; the server is started by a script on the input
// of a shell, reached by -D and -L over a connection that stays and that many commands
// share, and is still there after that was lost and made anew.
func TestSSHEditor(t *testing.T) {
	s := newSSHSite(t, siteOptions{})
	id := s.submit(doc{command: idle})
	s.waitRunning(id)
	host := id + ".gbatch"
	first := ""
	for i := range 2 {
		address, err := hosttest.FreeAddress()
		if err != nil {
			t.Fatal(err)
		}
		_, port, _ := net.SplitHostPort(address)
		control := filepath.Join(s.dir, fmt.Sprint("control", i))
		master := s.client("ssh", "-F", s.config, "-T", "-M", "-S", control, "-D", port, "-o", "ConnectTimeout=15", host, "sh")
		in, err := master.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		var out lockedBuffer
		master.Stdout, master.Stderr = &out, &out
		if err := master.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(in, remoteStart); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the server says its port", func() bool { return strings.Contains(out.String(), "listeningOn==8391==") })
		eventually(t, "the server answers by -D", func() bool { return socks(address, "127.0.0.1", 8391) == "from the server\n" })
		over := func(args ...string) result { // the same connection
			return execute(s.client("ssh", append([]string{"-F", s.config, "-S", control, "-T"}, args...)...))
		}
		r := over(host, "cat ~/.server/pid; ps | grep -c '[h]ttpd -f'")
		if r.code != 0 || !strings.HasSuffix(r.out, "\n1\n") || i > 0 && r.out != first {
			t.Errorf("connection %d: want one server, that of before: %v", i, r)
		}
		first = r.out
		address, err = hosttest.FreeAddress()
		if err != nil {
			t.Fatal(err)
		}
		_, port, _ = net.SplitHostPort(address)
		if r := over("-O", "forward", "-L", port+":127.0.0.1:8391", host); r.code != 0 || fetch(port) != "from the server\n" {
			t.Errorf("connection %d: the server does not answer by -L: %v", i, r)
		}
		s.editorChannels(control, host)
		_ = master.Process.Kill() // the machine at this end sleeps, or loses its network
		_ = master.Wait()
	}
}

// editorChannels has commands share a connection, each with an archive for its
// input, as an editor brings its server and its extensions.
func (s *sshSite) editorChannels(control, host string) {
	s.t.Helper()
	body := make([]byte, 4<<20)
	rand.NewChaCha8([32]byte{4}).Read(body)
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	begun := w.WriteHeader(&tar.Header{Name: "extension/main.js", Mode: 0o644, Size: int64(len(body))})
	_, written := w.Write(body)
	if err := errors.Join(begun, written, w.Close()); err != nil {
		s.t.Fatal(err)
	}
	want := fmt.Sprintf("%x  -\n", sha256.Sum256(body))
	const channels = 6
	done := make(chan result)
	for n := range channels {
		cmd := s.client("ssh", "-F", s.config, "-S", control, "-T", host, fmt.Sprintf("d=~/.server/%d; rm -rf $d; mkdir -p $d && tar x -C $d && sha256sum <$d/extension/main.js", n))
		cmd.Stdin = bytes.NewReader(archive.Bytes())
		go func() { done <- execute(cmd) }() // ends with the command, awaited below
	}
	for range channels {
		if r := <-done; r.code != 0 || r.out != want {
			s.t.Errorf("an archive by the input of a command: want %q: %v", want, r)
		}
	}
}

// socks fetches / by a SOCKS proxy, and returns what follows the header.
func socks(proxy, host string, port uint16) string {
	c, err := net.Dial("tcp", proxy)
	if err != nil {
		return ""
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	request := append([]byte{5, 1, 0, 3, byte(len(host))}, host...)
	for _, say := range []struct {
		bytes  []byte
		answer int // its length
	}{{[]byte{5, 1, 0}, 2}, {append(request, byte(port>>8), byte(port)), 10}} {
		if _, err := c.Write(say.bytes); err != nil {
			return ""
		}
		if _, err := io.ReadFull(c, make([]byte, say.answer)); err != nil {
			return ""
		}
	}
	if _, err := io.WriteString(c, "GET / HTTP/1.0\r\n\r\n"); err != nil {
		return ""
	}
	b, _ := io.ReadAll(c)
	_, body, _ := strings.Cut(string(b), "\r\n\r\n")
	return body
}
