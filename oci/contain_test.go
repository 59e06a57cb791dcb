package oci_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"gbatch/oci"
	"gbatch/oci/draft"
	"gbatch/oci/failure"
	"gbatch/oci/handed"
	"gbatch/oci/userns"
	"gbatch/oci/wire"
)

// alice is a user of the host with a project, of which another is a member.
var alice = userns.Owner{UID: 1003, GID: 1003, Groups: []uint32{2001}, First: 0x20000000}

// newMapped describes a container of alice's.
func newMapped(t testing.TB, script string) *box {
	t.Helper()
	b := newBox(t, script)
	b.req.IDs = userns.MapOf(alice)
	b.req.Groups = []string{"2001"}
	return b
}

// share makes a directory that the containers of a test may reach.
func share(t testing.TB, mode os.FileMode, uid, gid int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "share")
	if err := os.Mkdir(dir, mode); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chown(dir, uid, gid), os.Chmod(dir, mode)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// owned describes a file as the host sees it.
func owned(t testing.TB, name string) string {
	t.Helper()
	info, err := os.Lstat(name)
	if err != nil {
		t.Fatal(err)
	}
	st := info.Sys().(*syscall.Stat_t)
	return fmt.Sprintf("%d:%d %v", st.Uid, st.Gid, info.Mode())
}

// What a container whose root is a user of the host sees of itself.
func TestMappedInside(t *testing.T) {
	needContainers(t)
	data := share(t, 0o755, 0, 0)
	if err := os.WriteFile(filepath.Join(data, "hosts"), []byte("from the host\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		script string
		edit   func(*draft.Request)
		want   string
	}{
		"id":     {`id; tr -s ' ' </proc/self/uid_map`, nil, "uid=0(root) gid=0(root) groups=2001\n 0 1003 1\n 1 536870913 65535\n"},
		"image":  {`stat -c '%u:%g' /bin/busybox /home/bob /; touch /home/bob/x /x; chown bob /home/bob/x; stat -c '%u:%g' /home/bob/x /x`, nil, "0:0\n1000:1000\n0:0\n1000:0\n0:0\n"},
		"bob":    {`id; touch /home/bob/x && echo mine; touch /x`, func(r *draft.Request) { r.User = "bob" }, "uid=1000(bob) gid=1000(bob) groups=2001,44(video)\nmine\ntouch: /x: Permission denied\n"},
		"become": {`su bob -c 'id -u'; echo $?`, nil, "1000\n0\n"},
		"stdout": {`echo direct >/dev/stdout; echo err >/dev/stderr`, nil, "direct\nerr\n"},
		"outbob": {`echo direct >/dev/stdout`, func(r *draft.Request) { r.User = "bob" }, "direct\n"},
		"caps": {`grep -E 'CapBnd|CapEff|NoNewPrivs' /proc/self/status`, nil,
			"CapEff:\t00000000000005fb\nCapBnd:\t00000000000005fb\nNoNewPrivs:\t1\n"},
		"mknod": {`mknod /dev/x c 1 3 || mknod /x b 7 0`, func(r *draft.Request) { r.Capabilities = []string{"CAP_MKNOD"} },
			"mknod: /dev/x: Operation not permitted\nmknod: /x: Operation not permitted\n"},
		"shm":    {`df -m /dev/shm | tail -1 | awk '{print $2}'; touch /dev/shm/x && stat -c %u /dev/shm/x`, func(r *draft.Request) { r.ShmBytes = 24 << 20 }, "24\n0\n"},
		"dev":    {`head -c 2 /dev/zero | wc -c; echo gone >/dev/null; test -c /dev/tty && ls /dev | tr '\n' ' '`, nil, "2\nfd full mqueue null ptmx pts random shm stderr stdin stdout tty urandom zero "},
		"newdir": {`pwd; touch x && stat -c %u .`, func(r *draft.Request) { r.WorkDir = "/made/here" }, "/made/here\n0\n"},
		"ro":     {`cat /in/hosts; echo x >/in/hosts`, func(r *draft.Request) { r.Mounts = []draft.Mount{{Source: data, Target: "/in", ReadOnly: true}} }, "from the host\n/bin/sh: can't create /in/hosts: Read-only file system\n"},
		"roroot": {`touch /x; touch /tmp/x; echo $?`, func(r *draft.Request) {
			r.ReadOnlyRoot = true
			r.Tmpfs = []draft.Tmpfs{{Target: "/tmp", Bytes: 1 << 20}}
		}, "touch: /x: Read-only file system\n0\n"},
		"nested": {`cat /a/b/hosts; touch /a/ok && ls /a`, func(r *draft.Request) {
			r.Mounts = []draft.Mount{{Source: data, Target: "/a/b"}}
			r.Tmpfs = []draft.Tmpfs{{Target: "/a", Bytes: 1 << 20}}
		}, "from the host\nb\nok\n"},
		"network":  {`ls /sys/class/net; cat /proc/sys/net/ipv4/ip_unprivileged_port_start; tr '\t' ' ' </proc/sys/net/ipv4/ping_group_range`, nil, "lo\n0\n0 65535\n"},
		"host":     {`test -d /sys/class/net/lo && echo seen; ls /sys/fs/cgroup | grep -c . | sed 's/[1-9][0-9]*/some/'; touch /sys/kernel/x`, func(r *draft.Request) { r.Network.Host = true }, "seen\nsome\ntouch: /sys/kernel/x: Read-only file system\n"},
		"cgroup":   {`ls /sys/fs/cgroup | grep -c .  | sed 's/[1-9][0-9]*/some/'; cat /proc/self/cgroup | grep -c gbatch`, nil, "some\n0\n"},
		"limit":    {`cd /sys/fs/cgroup; cat memory/memory.limit_in_bytes memory.max 2>/dev/null; mkdir x 2>&1 | grep -c Read-only; cd memory 2>/dev/null; mkdir x 2>&1 | grep -c Read-only`, nil, "67108864\n1\n1\n"},
		"devices":  {`rm /dev/null 2>&1 | grep -c busy; chmod 600 /dev/null 2>&1 | grep -c permitted; stat -c '%u %a' /dev /dev/shm; stat -c '%u' /dev/fd; readlink /dev/ptmx; grep -c ' /dev/[a-z]* ' /proc/mounts; touch /dev/x && rm /dev/x && umount /dev/shm 2>&1 | grep -c permitted`, nil, "1\n1\n0 755\n0 1777\n0\npts/ptmx\n9\n1\n"},
		"proc":     {`echo 1 >/proc/sys/kernel/panic; cat /proc/keys`, nil, "/bin/sh: can't create /proc/sys/kernel/panic: Read-only file system\n"},
		"terminal": {`tty; stat -c %u $(tty)`, func(r *draft.Request) { r.Terminal = true }, "/dev/pts/0\r\n0\r\n"},
		"rlimit": {`ulimit -l | grep -c .; echo fine`, func(r *draft.Request) {
			r.Rlimits = []specs.POSIXRlimit{{Type: "RLIMIT_MEMLOCK", Soft: ^uint64(0), Hard: ^uint64(0)}}
		}, "1\nfine\n"},
		"mount": {`mkdir /m; mount -t tmpfs none /m 2>&1 | grep -c denied`, nil, "1\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := newMapped(t, tc.script)
			if tc.edit != nil {
				tc.edit(&b.req)
			}
			exit, log := b.run()
			if diff := cmp.Diff(tc.want, log); diff != "" || exit.Failure != nil {
				t.Errorf("output (-want +got):\n%s\n%v", diff, exit.Failure)
			}
		})
	}
}

// What a container writes on storage belongs to its user, also as the user of
// whom it says that it is root, and what it makes to gain rights is worth none.
func TestMappedStorage(t *testing.T) {
	dir := share(t, os.ModeSetgid|0o770, 0, 2001)
	b := newMapped(t, `cd /s && echo a >root && cp /bin/busybox suid && chmod 6755 suid && chown bob root; mkdir d; mknod node c 10 237; su bob -c 'echo b >bob'; ./suid 2>&1; su bob -c './suid id -u'`)
	b.req.Mounts = []draft.Mount{{Source: dir, Target: "/s"}}
	exit, log := b.run()
	if want := "mknod: node: Operation not permitted\nsh: can't create bob: Permission denied\nsuid: applet not found\nsh: ./suid: Permission denied\n"; log != want || exit.Failure != nil {
		t.Errorf("output %q, want %q, %v", log, want, exit.Failure)
	}
	for name, want := range map[string]string{
		"root": "536871912:2001 -rw-r--r--",
		"suid": "1003:2001 ugrwxr-xr-x",
		"d":    "1003:2001 dgrwxr-xr-x",
	} {
		if got := owned(t, filepath.Join(dir, name)); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

// Whose files a container reads are its user's, whatever number it runs as.
func TestMappedReads(t *testing.T) {
	dir := share(t, 0o755, 0, 0)
	for name, id := range map[string]int{"root": 0, "alice": 1003, "bob": 1000, "eve": 1004} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(file, []byte(name+"\n"), 0o600), os.Chown(file, id, id)); err != nil {
			t.Fatal(err)
		}
	}
	for user, want := range map[string]string{
		"0":    "alice\n",
		"1000": "",
		"1003": "",
		"1004": "",
	} {
		t.Run(user, func(t *testing.T) {
			b := newMapped(t, `cat /s/* 2>/dev/null; chmod 644 /s/eve 2>/dev/null; true`)
			b.req.Mounts = []draft.Mount{{Source: dir, Target: "/s"}}
			b.req.User = user
			if exit, log := b.run(); log != want || exit.Failure != nil {
				t.Errorf("read %q, want %q, %v", log, want, exit.Failure)
			}
		})
	}
}

// An id that the container does not have is the job's mistake.
func TestMappedUserOutOfRange(t *testing.T) {
	for _, user := range []string{"70000", "0:70000"} {
		b := newMapped(t, "id")
		b.req.User = user
		exit, _ := b.run()
		if exit.Failure == nil || exit.Failure.Kind != failure.UserUnknown || !strings.Contains(exit.Failure.Message, "go to 65535") {
			t.Errorf("%s: %+v", user, exit.Failure)
		}
	}
}

// Commands beside the job are the same user and may reach its processes.
func TestMappedExec(t *testing.T) {
	b := newMapped(t, "echo ready; sleep 1000")
	s := b.start()
	b.await("ready")
	cases := map[string]struct {
		user, script, want string
	}{
		"root": {"", `id -u; tr -s ' ' </proc/self/uid_map | head -1; grep NoNewPrivs /proc/self/status; echo x >/dev/stdout`, "0\n 0 1003 1\nNoNewPrivs:\t1\nx\n"},
		"bob":  {"bob", `id -u; kill 1 2>&1; echo x >/dev/stdout`, "1000\nsh: can't kill pid 1: Operation not permitted\nx\n"},
		"kill": {"", `sleep 1000 & kill -0 1 && kill $! && echo both`, "both\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out, _ := execOutput(t, s, wire.ExecRequest{Args: []string{"sh", "-c", tc.script}, User: tc.user})
			if diff := cmp.Diff(tc.want, out); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := s.Exec(wire.ExecRequest{Args: []string{"id"}, User: "70000"}, wire.ExecStdio{}); err == nil {
		t.Error("entered as a user that the container does not have")
	}
}

// Files that are handed to the container's user are hers by the host's number.
func TestMappedOwn(t *testing.T) {
	for user, want := range map[string]string{"": "1003:1003 -r--------", "bob": "536871912:536871912 -r--------"} {
		dir := share(t, 0o755, 0, 0)
		if err := os.WriteFile(filepath.Join(dir, "secret"), []byte("s3cret\n"), 0o400); err != nil {
			t.Fatal(err)
		}
		b := newMapped(t, "cat /run/secret; ls -ld /own/dir | cut -c1-10; stat -c '%u' /own /own/dir")
		b.req.User = user
		b.req.Mounts = []draft.Mount{{Source: dir, Target: "/run", ReadOnly: true}}
		b.cfg.Own, b.cfg.MakeDirs = []string{dir}, []string{"/own/dir", "/tmp"}
		if exit, log := b.run(); log != "s3cret\ndrwxrwxrwt\n0\n0\n" {
			t.Errorf("output %q, %v", log, exit.Failure)
		}
		if got := owned(t, filepath.Join(dir, "secret")); got != want {
			t.Errorf("the secret is %s, want %s", got, want)
		}
	}
}

// TestMappedDevices: devices come from the host's nodes, and by their numbers
// the container may open those that it was given.
func TestMappedDevices(t *testing.T) {
	needContainers(t)
	var paths []string
	for i := range 2 {
		name := fmt.Sprintf("/dev/gbatch-test-%d-%d", os.Getpid(), i)
		if err := unix.Mknod(name, unix.S_IFCHR|0o666, int(unix.Mkdev(195, uint32(i)))); err != nil {
			t.Fatal(err)
		}
		defer os.Remove(name)
		if err := os.Chmod(name, 0o666); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, name)
	}
	b := newMapped(t, "cat "+paths[0]+"; cat "+paths[1]+"; cat /s/other")
	b.req.Devices = []specs.LinuxDevice{{Path: paths[0], Type: "c", Major: 195, Minor: 0}}
	b.req.Mounts = []draft.Mount{{Source: paths[1], Target: "/s/other"}}
	exit, log := b.run()
	want := "cat: can't open '" + paths[0] + "': No such device or address\n" +
		"cat: can't open '" + paths[1] + "': No such file or directory\n" +
		"cat: can't open '/s/other': Permission denied\n"
	if log != want {
		t.Errorf("output %q, want %q, %v", log, want, exit.Failure)
	}
}

// TestMappedHook: a hook in the container's namespaces runs as its root, and
// finds the spec and the root file system.
func TestMappedHook(t *testing.T) {
	b := newMapped(t, "cat /hook")
	spec, err := draft.Build(b.req)
	if err != nil {
		t.Fatal(err)
	}
	script := `cat >/dev/null; cd ` + "/run/gbatch/stage" + ` && test -r config.json && id -u >rootfs/hook && stat -c %u rootfs/bin >>rootfs/hook`
	spec.Hooks = &specs.Hooks{CreateContainer: []specs.Hook{{Path: busybox, Args: []string{"sh", "-c", script}}}}
	if err := oci.Prepare(b.dir, spec, b.cfg); err != nil {
		t.Fatal(err)
	}
	b.Cleanup(func() { oci.Remove(b.dir) })
	ns, err := userns.New(b.req.IDs, false)
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	if b.shim, err = shims.Start(b.dir, handed.Handover{User: ns.User}); err != nil {
		t.Fatal(err)
	}
	if exit := b.exit(); b.log() != "0\n0\n" {
		t.Errorf("output %q, %v", b.log(), exit.Failure)
	}
}

// One user's job leaves others their share of what the kernel counts by user.
func TestMappedQuotas(t *testing.T) {
	b := newTrying(t, "watch")
	b.start()
	b.await("watching: too many open files")
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		t.Fatalf("root has no watch left: %v", err)
	}
	unix.Close(fd)
}

// The kernel lets a user have 200 keyrings, which is no limit of containers.
func TestMappedKeyring(t *testing.T) {
	b := newMapped(t, "echo ready; sleep 1000")
	b.req.IDs = userns.MapOf(userns.Owner{UID: 987654, GID: 987654, First: 0x21000000})
	b.req.Groups = nil
	s := b.start()
	b.await("ready")
	execOutput(t, s, wire.ExecRequest{Args: []string{"true"}})
	users, err := os.ReadFile("/proc/key-users")
	if err != nil {
		t.Skip("SKIPPED, this kernel has no keys: ", err)
	}
	if strings.Contains(string(users), "987654:") {
		t.Errorf("the user has a keyring:\n%s", users)
	}
}

// What a container wrote over its image can be read by nobody else on the host.
func TestMappedScratchIsClosed(t *testing.T) {
	b := newMapped(t, "cp /bin/busybox /suid; chmod 4755 /suid; echo ready; sleep 1000")
	b.start()
	b.await("ready")
	upper, err := oci.Written(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := owned(t, filepath.Dir(upper)); got != "0:0 drwx------" {
		t.Errorf("the directory around it is %s", got)
	}
	if got := owned(t, filepath.Join(upper, "suid")); !strings.HasPrefix(got, "1003:1003 u") {
		t.Errorf("the file is %s", got)
	}
}
