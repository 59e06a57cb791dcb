package oci_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gbatch/cgroups"
	"gbatch/oci"
	"gbatch/oci/annex"
	"gbatch/oci/draft"
	"gbatch/oci/message"
)

// annex begins a container of an image that has the file /image beside the box's, whose
// script has the connection as its file 3.
func (b *box) annex(q annex.Request, script string) (net.Conn, error) {
	b.Helper()
	other := filepath.Join(b.TempDir(), "other")
	if err := os.MkdirAll(other, 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(other, "image"), []byte("other"), 0o644); err != nil {
		b.Fatal(err)
	}
	ours, theirs, err := message.Pair()
	if err != nil {
		b.Fatal(err)
	}
	defer theirs.Close()
	b.Cleanup(func() { ours.Close() })
	q.Layers = []string{layer, other}
	if q.Args == nil {
		q.Args = []string{"/bin/sh", "-c", script}
	}
	if q.WorkDir == "" {
		q.WorkDir = "/"
	}
	return ours, b.shim.Annex(b.Context(), q, theirs)
}

// says is all that such a container says, until it ends.
func (b *box) says(q annex.Request, script string) string {
	b.Helper()
	conn, err := b.annex(q, "exec >&3 2>&1; "+script)
	if err != nil {
		return "error: " + err.Error()
	}
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	out, err := io.ReadAll(conn)
	if err != nil {
		b.Error(err)
	}
	return string(out)
}

// TestAnnex: a container in another image beside the program has that one's ids, network,
// variables, mounts and control group, processes and files of its own, and what it was to have more.
func TestAnnex(t *testing.T) {
	b := newBox(t, `mkdir -p /own/dir; echo mine >/own/dir/file; ln -s /proc/1/root/etc/passwd /own/link; echo up; until [ -e /v/over ]; do sleep 0.05; done; cat /v/seen; cat /image`)
	dir := b.shares()
	b.req.Env = []string{"OF=job", "ALSO=job"}
	b.req.Hostname = "host"
	b.start()
	b.await("up")
	q := annex.Request{Env: []string{"OF=image"}, WorkDir: "/work", Inside: []annex.Bind{{Source: "/own/dir", Target: "/there", ReadOnly: true}, {Source: "/etc/group", Target: "/etc/theirs"}}}
	got := b.says(q, `cat /image; echo; echo $OF $ALSO; pwd; hostname; echo $$; cat /there/file; touch /there/x 2>/dev/null || echo read-only; head -n1 /etc/theirs; ls /own 2>/dev/null; echo seen >/v/seen; touch /new && id -u`)
	want := "other\nimage job\n/work\nhost\n1\nmine\nread-only\nroot:x:0:\n0\n"
	if got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	for name, tc := range map[string]struct {
		q    annex.Request
		want string
	}{
		"magic link":  {annex.Request{Inside: []annex.Bind{{Source: "/own/link", Target: "/x"}}}, "links lead there that are not followed"},
		"host's file": {annex.Request{Inside: []annex.Bind{{Source: b.dir, Target: "/x"}}}, "the job's container has no such file or directory"},
		"over proc":   {annex.Request{Inside: []annex.Bind{{Source: "/own", Target: "/proc/x"}}}, "which belongs to the runtime"},
		"no program":  {annex.Request{Args: []string{"/none"}}, "/none"}, // once libcontainer has begun it
		"name":        {annex.Request{Name: "../x"}, "is no name of a container"},
	} {
		if got := b.says(tc.q, "echo it began"); !strings.HasPrefix(got, "error: ") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	if got := b.says(annex.Request{ReadOnly: true}, `touch /new 2>/dev/null || echo kept`); got != "kept\n" {
		t.Errorf("one that cannot write: %q", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "over"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if exit := b.exit(); exit.Code != 1 || b.log() != "up\nseen\ncat: can't open '/image': No such file or directory\n" {
		t.Errorf("the program: %+v, %q", exit, b.log())
	}
}

// TestAnnexNames: what a container with a name wrote is there for the next one, and no
// other's; a further one of its name ends it.
func TestAnnexNames(t *testing.T) {
	b := newBox(t, `echo up; sleep 1000`)
	b.start()
	b.await("up")
	a, other := annex.Request{Name: "a"}, annex.Request{Name: "b"}
	if got := b.says(a, `echo 1 >/kept; rm /image; echo wrote`) + b.says(a, `cat /kept; ls /image 2>/dev/null; echo end`) + b.says(other, `ls /kept 2>/dev/null; cat /image`); got != "wrote\n1\nend\nother" {
		t.Errorf("they say %q", got)
	}
	conn, err := b.annex(a, `echo begun >&3; sleep 1000`)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	if _, err := io.ReadFull(conn, make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	if got := b.says(a, `cat /kept`); got != "1\n" {
		t.Errorf("the next one says %q", got)
	}
	if _, err := conn.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the one before goes on: %v", err)
	}
	if left, _ := filepath.Glob(b.dir + "/scratch/*+a.[0-9]*.upper"); len(left) != 0 {
		t.Errorf("left %v", left)
	}
}

// TestAnnexEnds: it ends with the program beside which it was begun, whatever ends that, and
// the memory limit is that of both.
func TestAnnexEnds(t *testing.T) {
	for name, end := range map[string]func(b *box){
		"by itself": func(b *box) { _ = os.WriteFile(filepath.Join(b.req.Mounts[0].Source, "over"), nil, 0o644) },
		"killed":    func(b *box) { _ = b.shim.Kill() },
		"shim": func(b *box) {
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.shim.PID()))
			var parent int
			if _, rest, ok := strings.Cut(string(stat), "PPid:"); err != nil || !ok {
				b.Fatal(err)
			} else if _, err := fmt.Sscan(rest, &parent); err != nil {
				b.Fatal(err)
			}
			_ = unix.Kill(parent, unix.SIGKILL)
		},
		"memory": func(b *box) { _, _ = b.annex(annex.Request{}, `x=x; while :; do x=$x$x; done`) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t, `echo up; until [ -e /v/over ]; do sleep 0.05; done`)
			b.req.Mounts = []draft.Mount{{Source: b.volume(), Target: "/v"}}
			b.start()
			b.await("up")
			conn, err := b.annex(annex.Request{Name: "n"}, `echo begun >&3; sleep 1000`)
			if err != nil {
				t.Fatal(err)
			}
			_ = conn.SetReadDeadline(time.Now().Add(patience))
			if _, err := io.ReadFull(conn, make([]byte, 6)); err != nil {
				t.Fatal(err)
			}
			end(b)
			exit := b.exit()
			if (name == "memory") != exit.OOMKilled || (name == "shim") != exit.Lost {
				t.Errorf("exit: %+v", exit)
			}
			if _, err := conn.Read(make([]byte, 1)); err != io.EOF {
				t.Errorf("it goes on: %v", err)
			}
			if g, err := cgroups.Find(b.req.CgroupPath); err != nil || g.Exists() {
				t.Errorf("the group is left: %v", err)
			}
			if err := oci.Cleanup(b.dir); err != nil {
				t.Error(err)
			}
			if left, _ := filepath.Glob(b.dir + "/scratch/*"); len(left) != 0 {
				t.Errorf("left %v", left)
			}
		})
	}
}
