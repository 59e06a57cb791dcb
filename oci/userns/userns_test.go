package userns

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

func TestMapOf(t *testing.T) {
	ext := func(v ...uint32) (out []specs.LinuxIDMapping) {
		for i := 0; i < len(v); i += 3 {
			out = append(out, specs.LinuxIDMapping{ContainerID: v[i], HostID: v[i+1], Size: v[i+2]})
		}
		return out
	}
	const first = 0x20000000
	rest := ext(0, 1003, 1, 1, first+1, RangeSize-1)
	cases := map[string]struct {
		owner Owner
		gids  []specs.LinuxIDMapping
	}{
		"alone":      {Owner{GID: 1003}, rest},
		"project":    {Owner{GID: 1003, Groups: []uint32{2001}}, ext(0, 1003, 1, 1, first+1, 2000, 2001, 2001, 1, 2002, first+2002, RangeSize-2002)},
		"large":      {Owner{GID: 1003, Groups: []uint32{70000}}, ext(0, 1003, 1, 70000, 70000, 1, 1, first+1, RangeSize-1)},
		"same":       {Owner{GID: 1003, Groups: []uint32{1003, 0, first + 5}}, rest},
		"twice":      {Owner{GID: 1003, Groups: []uint32{1, 2, 1}}, ext(0, 1003, 1, 1, 1, 1, 2, 2, 1, 3, first+3, RangeSize-3)},
		"last":       {Owner{GID: 1003, Groups: []uint32{RangeSize - 1}}, ext(0, 1003, 1, 1, first+1, RangeSize-2, RangeSize-1, RangeSize-1, 1)},
		"no account": {Owner{GID: first}, ext(0, first, 1, 1, first+1, RangeSize-1)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.owner.UID, tc.owner.First = 1003, first
			m := MapOf(tc.owner)
			if diff := cmp.Diff(rest, m.UIDs); diff != "" {
				t.Errorf("users (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.gids, m.GIDs); diff != "" {
				t.Errorf("groups (-want +got):\n%s", diff)
			}
		})
	}
	m := MapOf(Owner{UID: 1003, GID: 100, Groups: []uint32{2001}, First: first})
	if u, g, ok := m.Host(7, 2001); u != first+7 || g != 2001 || !ok {
		t.Errorf("7:2001 is %d:%d, %v", u, g, ok)
	}
	if _, _, ok := m.Host(70000, 0); ok {
		t.Error("an id beyond the range is mapped")
	}
	if g, ok := m.InsideGID(2001); g != 2001 || !ok {
		t.Errorf("group 2001 is %d inside, %v", g, ok)
	}
	if g, ok := m.InsideGID(100); g != 0 || !ok {
		t.Errorf("group 100 is %d inside, %v", g, ok)
	}
	if _, ok := m.InsideGID(0); ok {
		t.Error("the host's root group is inside")
	}
}

func needRoot(t testing.TB) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED, makes user namespaces as root")
	}
}

var mapped = MapOf(Owner{UID: 1003, GID: 1003, Groups: []uint32{2001}, First: 0x20000000})

func TestNew(t *testing.T) {
	needRoot(t)
	ns, err := New(mapped, true)
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	if owner, err := unix.IoctlGetInt(int(ns.User.Fd()), unix.NS_GET_OWNER_UID); err != nil || owner != 1003 {
		t.Errorf("owner %d, %v", owner, err)
	}
	fd, err := unix.IoctlRetInt(int(ns.Net.Fd()), unix.NS_GET_USERNS)
	if err != nil {
		t.Fatal(err)
	}
	of := os.NewFile(uintptr(fd), "owner")
	defer of.Close()
	a, _ := of.Stat()
	b, _ := ns.User.Stat()
	if !os.SameFile(a, b) {
		t.Error("the network belongs to another user namespace")
	}
	if left := children(t); left != "" {
		t.Errorf("children are left: %s", left)
	}
}

func children(t *testing.T) string {
	files, _ := filepath.Glob("/proc/self/task/*/children")
	var all strings.Builder
	for _, f := range files {
		data, _ := os.ReadFile(f)
		all.Write(data)
	}
	return all.String()
}

// A map that the kernel refuses is an error, and nothing is left of it.
func TestNewRefused(t *testing.T) {
	needRoot(t)
	m := mapped
	m.GIDs = append(m.GIDs, m.GIDs[0])
	if _, err := New(m, true); err == nil || !strings.Contains(err.Error(), "map groups") {
		t.Errorf("error %v", err)
	}
	if left := children(t); left != "" {
		t.Errorf("children are left: %s", left)
	}
}

// TestNewKilled: a program that is killed while it makes namespaces leaves no
// process behind, which would hold its open files.
func TestNewKilled(t *testing.T) {
	needRoot(t)
	if os.Getenv("GBATCH_TEST_KILLED") != "" {
		for range 4 {
			go func() {
				for {
					if ns, err := New(mapped, false); err == nil {
						ns.Close()
					}
				}
			}()
		}
		fmt.Println("ready")
		select {}
	}
	for range 20 {
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestNewKilled$")
		cmd.Env = append(os.Environ(), "GBATCH_TEST_KILLED=1")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		fmt.Fscanln(out)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		// The end of its output comes when the last process has it open no more.
		out.(*os.File).SetReadDeadline(time.Now().Add(20 * time.Second))
		if _, err := io.Copy(io.Discard, out); err != nil {
			t.Fatalf("something outlives it: %v", err)
		}
		_ = cmd.Wait()
	}
}

func TestShift(t *testing.T) {
	needRoot(t)
	dir := t.TempDir()
	for name, id := range map[string]int{"root": 0, "bob": 1000, "far": 70000} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(filepath.Join(dir, name), id, id); err != nil {
			t.Fatal(err)
		}
	}
	ns, err := New(mapped, false)
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	tree, err := Shift(dir, ns.User)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	for name, want := range map[string]uint32{"root": 1003, "bob": 0x20000000 + 1000, "far": 65534} {
		st, err := os.Stat(fmt.Sprintf("/proc/self/fd/%d/%s", tree.Fd(), name))
		if err != nil {
			t.Fatal(err)
		}
		if got := st.Sys().(*syscall.Stat_t).Uid; got != want {
			t.Errorf("%s belongs to %d, want %d", name, got, want)
		}
	}
}

func BenchmarkNew(b *testing.B) {
	needRoot(b)
	for b.Loop() {
		ns, err := New(mapped, false)
		if err != nil {
			b.Fatal(err)
		}
		ns.Close()
	}
}
