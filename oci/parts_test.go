package oci_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"gbatch/cgroups"
	"gbatch/oci"
	"gbatch/oci/draft"
	"gbatch/oci/failure"
	"gbatch/oci/stage"
	"gbatch/oci/userns"
	"gbatch/oci/wire"
)

// before adds a part that runs a script, in a root of another image: one that has a
// file more. Its container is as the box's own but for what edit changes.
func (b *box) before(name, script string, edit func(*draft.Request)) *oci.Part {
	b.Helper()
	other := filepath.Join(b.TempDir(), "other")
	if err := os.MkdirAll(other, 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(other, "image"), []byte(name), 0o644); err != nil {
		b.Fatal(err)
	}
	req := b.req
	req.Command = []string{"/bin/sh", "-c", script}
	if edit != nil {
		edit(&req)
	}
	spec, err := draft.Build(req)
	if err != nil {
		b.Fatal(err)
	}
	b.cfg.Before = append(b.cfg.Before, oci.Part{Name: name, Spec: spec, Layers: []string{layer, other}})
	return &b.cfg.Before[len(b.cfg.Before)-1]
}

// volume is a directory that parts have in common.
func (b *box) volume() string {
	b.Helper()
	dir := b.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		b.Fatal(err)
	}
	return dir
}

// TestParts: programs run one after the other, each in its image, as its user and with
// its mounts; what they leave behind is a volume that they have in common, and nothing
// else: no process, no file of their roots.
func TestParts(t *testing.T) {
	b := newBox(t, `cat /data/one /data/two; ls /image /left 2>&1 | grep -c 'No such'; ps | grep -c '[s]leep'; echo $A-$S-$B-$0`)
	b.req.Command = append(b.req.Command, "is:\uE000S\uE001:\uE000T\uE001")
	vol := b.volume()
	b.req.Mounts = []draft.Mount{{Source: vol, Target: "/data"}}
	b.req.Env = []string{"A=main", "B=x\uE000S\uE001"}
	b.hand.Env = []string{"S=secret"}
	b.before("fetch", `cat /image; echo; echo $A-$S; echo 1 >/in/one; echo x >/left; sleep 1000 & echo begun`, func(r *draft.Request) {
		r.Mounts, r.Env = []draft.Mount{{Source: vol, Target: "/in"}}, []string{"A=first"}
	})
	b.before("unpack", `cat /image; echo; id -u; ls /left 2>&1 | grep -c 'No such'; cp /data/one /data/two; echo err >&2`, func(r *draft.Request) { r.User = "bob" })
	exit, log := b.run()
	want := "gbatch: fetch, 1 of 2 that run before the job\nfetch\nfirst-secret\nbegun\n" +
		"gbatch: unpack, 2 of 2 that run before the job\nunpack\n1000\n1\nerr\n" +
		"gbatch: the job itself\n1\n1\n2\n0\nmain-secret-xsecret-is:secret:\uE000T\uE001\n"
	if diff := cmp.Diff(want, log); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	if exit.Code != 0 || exit.Part != "" || exit.LogBytes != int64(len(log)) || exit.Started.IsZero() {
		t.Errorf("exit: %+v", exit)
	}
	if left, _ := filepath.Glob(b.dir + "/scratch/*+*"); len(left) > 0 {
		t.Errorf("parts left %v", left)
	}
}

// TestPartsOfOthersIDs: the same where root of the container is nobody on the host, and
// a mount is looked for in what a part before has written.
func TestPartsOfOthersIDs(t *testing.T) {
	b := newBox(t, `cat /etc/app.conf; cat /out/deep/x 2>&1; echo main >/out/y; echo $?; cat /hosts 2>&1 | grep -c root: || true`)
	vol := b.volume()
	ids := userns.MapOf(userns.Owner{UID: 2000, GID: 2000, First: 300000})
	if ids.IsZero() {
		t.Fatal("no map")
	}
	b.req.IDs = ids
	b.before("write", `echo text >/v/conf; mkdir -p /v/sub/deep; echo deep >/v/sub/deep/x; ln -s / /v/away`, func(r *draft.Request) {
		r.Mounts = []draft.Mount{{Source: vol, Target: "/v"}}
	})
	b.req.Mounts = []draft.Mount{{Source: vol, Target: "/etc/app.conf"}, {Source: vol, Target: "/out"}, {Source: vol, Target: "/hosts"}}
	b.cfg.Below = []stage.Below{{Target: "/etc/app.conf", Top: vol, Path: "conf"}, {Target: "/out", Top: vol, Path: "sub"}, {Target: "/hosts", Top: vol, Path: "away/etc/passwd"}}
	exit, log := b.run()
	want := "gbatch: write, 1 of 1 that run before the job\ngbatch: the job itself\ntext\ndeep\n0\n0\n"
	if diff := cmp.Diff(want, log); diff != "" || exit.Code != 0 {
		t.Errorf("exit %+v, output (-want +got):\n%s", exit, diff)
	}
}

// TestPartFails: the first part that fails is the container's end, whatever its failure is.
func TestPartFails(t *testing.T) {
	for name, tc := range map[string]struct {
		script string
		edit   func(*draft.Request)
		code   int
		kind   failure.Kind
		text   string
	}{
		"code":    {"exit 9", nil, 9, "", ""},
		"command": {"", func(r *draft.Request) { r.Command = []string{"/nothing"} }, 127, failure.CommandNotFound, "fetch: "},
		"user":    {"", func(r *draft.Request) { r.User = "nobody-here" }, 125, failure.UserUnknown, "fetch: "},
		"memory":  {"dd if=/dev/zero of=/dev/null bs=100M count=1", nil, 137, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t, "echo never")
			b.before("fetch", tc.script, tc.edit)
			exit, log := b.run()
			var kind failure.Kind
			var text string
			if exit.Failure != nil {
				kind, text = exit.Failure.Kind, exit.Failure.Message
			}
			if exit.Code != tc.code || exit.Part != "fetch" && kind != failure.UserUnknown || kind != tc.kind || !strings.HasPrefix(text, tc.text) || exit.OOMKilled != (name == "memory") {
				t.Errorf("exit: %+v, %s %q", exit, kind, text)
			}
			if strings.Contains(log, "never") || strings.Contains(log, "itself") {
				t.Errorf("went on: %q", log)
			}
		})
	}
}

// TestPartIsStopped: a stop while a part runs is the end of all, also where the part
// takes the signal for its own good end; and limits that were changed meanwhile hold
// for what comes next.
func TestPartIsStopped(t *testing.T) {
	b := newBox(t, "echo never")
	b.before("wait", "trap 'exit 0' TERM; echo ready; while :; do sleep 0.1; done", nil)
	s := b.start()
	b.await("ready")
	poll(t, "word of the part", func() bool { return s.Part() == "wait" }) // it comes beside what the part prints
	if out, code := execOutput(t, s, wire.ExecRequest{Args: []string{"cat", "/image"}}); out != "wait" || code != 0 {
		t.Errorf("a command in the part: %q, %d", out, code)
	}
	if err := s.Stop(context.Background(), syscall.SIGTERM, time.Minute); err != nil {
		t.Fatal(err)
	}
	if exit := b.exit(); !exit.Stopped || exit.Code != 0 || strings.Contains(b.log(), "never") {
		t.Errorf("exit: %+v, log %q", exit, b.log())
	}
}

// TestPartsAreResized: limits that were changed while a part ran hold for the next.
func TestPartsAreResized(t *testing.T) {
	b := newBox(t, "echo main; while ! [ -e /v/end ]; do sleep 0.1; done")
	vol := b.volume()
	b.req.Mounts = []draft.Mount{{Source: vol, Target: "/v"}}
	b.before("wait", "echo ready; while ! [ -e /v/go ]; do sleep 0.1; done", nil)
	s := b.start()
	b.await("ready")
	if err := s.Update(cgroups.Limits{MemoryBytes: 96 << 20}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(vol+"/go", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	b.await("main\n")
	if got := memoryLimit(t, b); got != 96<<20 {
		t.Errorf("limit %d", got)
	}
	if err := os.WriteFile(vol+"/end", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if exit := b.exit(); exit.Code != 0 {
		t.Errorf("exit: %+v", exit)
	}
}

// memoryLimit is what the kernel holds the box to.
func memoryLimit(t *testing.T, b *box) (bytes int64) {
	t.Helper()
	host, err := cgroups.Detect()
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Join("/sys/fs/cgroup", b.req.CgroupPath, "memory.max")
	if host.Mode != cgroups.V2 {
		at = filepath.Join(host.Mounts["memory"], b.req.CgroupPath, "memory.limit_in_bytes")
	}
	text, err := os.ReadFile(at)
	if err == nil {
		_, err = fmt.Sscan(string(text), &bytes)
	}
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

// TestShimOfPartsIsKilled: without its shim no part lives on, and none begins.
func TestShimOfPartsIsKilled(t *testing.T) {
	b := newBox(t, "echo never")
	b.before("wait", "echo ready; sleep 1000", nil)
	s := b.start()
	b.await("ready")
	if err := unix.Kill(shimPID(t, b), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-s.Done()
	exit, err := s.Exit()
	if err != nil || !exit.Lost || strings.Contains(b.log(), "never") {
		t.Errorf("exit: %+v, %v, log %q", exit, err, b.log())
	}
}
