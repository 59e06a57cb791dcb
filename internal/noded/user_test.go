package noded

import (
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/noded/config"
)

// userSite is a node whose storage everybody may write to.
type userSite struct {
	*site
	top string
}

func newUserSite(t *testing.T) *userSite {
	u := &userSite{top: shared(t)}
	u.site = newSite(t, func(c *config.Config) { c.Storage = []config.StorageRoot{{Name: "/data", Path: u.top}} })
	return u
}

// ordered is a script of a user's with the storage.
func ordered(user, script string, change ...func(*api.RunOrder)) *api.RunOrder {
	return order(script, append([]func(*api.RunOrder){func(o *api.RunOrder) {
		h := fnv.New32a()
		h.Write([]byte(user))
		o.User, o.IDs = user, 0x20000000+h.Sum32()%1000*node.IDRange
		o.Spec.Request.Docker.Storage = []job.Storage{{HostPath: "/data", ContainerPath: "/data"}}
	}}, change...)...)
}

func (u *userSite) file(name, text string, uid int, mode os.FileMode) {
	u.t.Helper()
	name = filepath.Join(u.top, name)
	if err := errors.Join(os.WriteFile(name, []byte(text), mode), os.Chown(name, uid, uid), os.Chmod(name, mode)); err != nil {
		u.t.Fatal(err)
	}
}

// uid is whose file a job made.
func (u *userSite) uid(name string) uint32 {
	u.t.Helper()
	st, err := os.Stat(filepath.Join(u.top, name))
	if err != nil {
		u.t.Fatal(err)
	}
	return st.Sys().(*syscall.Stat_t).Uid
}

// TestUserIsWhoSubmitted: whatever number a job runs as, and as root too, it is
// its user on the node: it reads no one else's files, what it writes is the
// user's, and what it makes to become root is worth nothing.
func TestUserIsWhoSubmitted(t *testing.T) {
	u := newUserSite(t)
	u.start()
	u.file("root", "root's\n", 0, 0o600)
	u.file("bin", "bin's\n", 2, 0o600)
	u.file("eve", "eve's\n", 1003, 0o600)
	const attack = `id -u; cat /data/root /data/bin /data/eve; cp /bin/busybox /data/suid-$1; chmod 6755 /data/suid-$1; mknod /data/node c 10 237; chown 0:0 /data/eve; exit 0`
	for i, tc := range []struct {
		user, as, see string
		uid           func(got uint32) bool
	}{
		{"bin", "", "bin's\n", func(n uint32) bool { return n == 2 }}, // an account that every Debian has
		{"bin", "1003", "", func(n uint32) bool { return n > 1<<29 }},
		{"alice", "", "", func(n uint32) bool { return n >= 1<<29 }},
		{"alice", "2", "", func(n uint32) bool { return n > 1<<29 }},
		{"root", "", "", func(n uint32) bool { return n >= 1<<29 }},
	} {
		name := fmt.Sprint(i)
		id := rankID(i + 1)
		e, out := u.run(id, ordered(tc.user, strings.ReplaceAll(attack, "$1", name), func(o *api.RunOrder) { o.Spec.Request.Docker.User = tc.as }))
		if e.Code != 0 {
			t.Errorf("%s as %q: %+v", tc.user, tc.as, e)
			continue
		}
		seen := ""
		for line := range strings.Lines(out) {
			if strings.HasSuffix(line, "'s\n") {
				seen += line
			}
		}
		if seen != tc.see {
			t.Errorf("%s as %q reads %q, want %q:\n%s", tc.user, tc.as, seen, tc.see, out)
		}
		if got := u.uid("suid-" + name); !tc.uid(got) {
			t.Errorf("%s as %q writes files of %d", tc.user, tc.as, got)
		}
	}
	if _, err := os.Stat(filepath.Join(u.top, "node")); err == nil {
		t.Error("a job made a device")
	}
	if got := u.uid("eve"); got != 1003 {
		t.Errorf("eve's file belongs to %d", got)
	}
}

// TestUserOfTheController: a name that is somebody else here is nobody.
func TestUserOfTheController(t *testing.T) {
	u := newUserSite(t)
	u.start()
	e, _ := u.runNoLog(rankID(1), ordered("bin", "true", func(o *api.RunOrder) { o.UID = new(uint32(4711)) }))
	if e.Reason != job.Server || !strings.Contains(e.Message, "is number 4711 to the controller and 2 on this node") {
		t.Errorf("exit %+v", e)
	}
}

// TestUserWithoutMaps: where containers cannot have ids of their own, a job is
// its user without root, and may not choose another.
func TestUserWithoutMaps(t *testing.T) {
	u := newUserSite(t)
	u.edit = func(a *Agent) { a.node.NoMaps = errors.New("the kernel is old") }
	u.start()
	e, out := u.run(rankID(1), ordered("bin", `id -u; grep CapEff /proc/self/status; tr -s ' ' </proc/self/uid_map; touch /data/x; chmod 6755 /data/x; touch /x`))
	if want := "2\nCapEff:\t0000000000000000\n 0 0 4294967295\ntouch: /x: Permission denied\n"; out != want || u.uid("x") != 2 {
		t.Errorf("exit %+v, output %q", e, out)
	}
	e, _ = u.runNoLog(rankID(2), ordered("bin", "true", func(o *api.RunOrder) { o.Spec.Request.Docker.User = "1003" }))
	if e.Reason != job.BadSpec || !strings.Contains(e.Message, "leave \"user\"") {
		t.Errorf("exit %+v", e)
	}
}

// TestCapabilities: root of a container has what its job asks for and the node
// allows, in what belongs to the container, and the node does not rely on the
// controller for it.
func TestCapabilities(t *testing.T) {
	u := newUserSite(t)
	u.cfg.AllowCapabilities = []job.Capability{"NET_RAW", "SYS_CHROOT", "MKNOD"}
	u.start()
	asks := func(list ...job.Capability) func(*api.RunOrder) {
		return func(o *api.RunOrder) {
			o.User = "bin"
			o.Spec.Gbatch = &job.Gbatch{Capabilities: list}
		}
	}
	const try = `grep CapEff /proc/self/status; ping -c1 -W1 127.0.0.1 >/dev/null 2>&1; chroot / true 2>&1; mknod /x c 1 3 2>&1; mknod /data/x b 7 0 2>&1; exit 0`
	const denied = "mknod: /x: Operation not permitted\nmknod: /data/x: Operation not permitted\n"
	for i, tc := range []struct {
		asks []job.Capability
		want string
	}{
		{nil, "CapEff:\t00000000000005fb\nchroot: can't change root directory to '/': Operation not permitted\n" + denied},
		{[]job.Capability{"NET_RAW"}, "CapEff:\t00000000000025fb\nchroot: can't change root directory to '/': Operation not permitted\n" + denied},
		{[]job.Capability{"MKNOD", "SYS_CHROOT"}, "CapEff:\t00000000080405fb\n" + denied},
	} {
		e, out := u.run(rankID(i+1), ordered("bin", try, asks(tc.asks...)))
		if e.Code != 0 || !strings.HasPrefix(out, tc.want) {
			t.Errorf("%v: %q, want %q, %+v", tc.asks, out, tc.want, e)
		}
	}
	for i, o := range []*api.RunOrder{
		order("true", asks("SETFCAP")),
		order("true", asks(), func(o *api.RunOrder) { o.Spec.Gbatch.Privileged = true }),
	} {
		e, _ := u.runNoLog(rankID(i+10), o)
		if e.Reason != job.Server || !strings.Contains(e.Message, "does not allow") {
			t.Errorf("exit %+v", e)
		}
	}
	u.holdsNothing()
}
