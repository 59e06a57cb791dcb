package oci_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/opencontainers/runc/libcontainer/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"

	"gbatch/cgroups"
	"gbatch/oci"
	"gbatch/oci/draft"
	"gbatch/oci/handed"
	"gbatch/oci/logs"
	"gbatch/oci/result"
	"gbatch/oci/userns"
)

// testCgroup holds the containers of this run; its own number keeps runs apart.
var testCgroup = fmt.Sprintf("/gbatch-test-%d", os.Getpid())

// layer is the only layer of the test image, made once.
var layer string

const busybox = "/bin/busybox"

func TestMain(m *testing.M) {
	if os.Getenv(daemonEnv) != "" {
		daemonMain()
		return
	}
	if what := os.Getenv(insideEnv); what != "" {
		insideMain(what)
		return
	}
	// libcontainer lets threads join a container's mounts and end there, and
	// the first thread cannot end: keep it out of libcontainer's reach, or the
	// benchmark, which calls it in this process, seems to leave mounts behind.
	runtime.LockOSThread()
	if slices.Contains(os.Args, "-test.fuzzworker") { // the process that began it looks
		os.Exit(m.Run())
	}
	os.Exit(runAll(m))
}

// runAll runs the tests and then looks for anything that they left on the host.
func runAll(m *testing.M) int {
	root, err := os.MkdirTemp("", "oci")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(root)
	// Everything is made below root, so that what is left can be told from
	// what other programs do on the machine meanwhile.
	os.Setenv("TMPDIR", root)
	benchDir = filepath.Join(root, "bench")
	layer = filepath.Join(root, "layer")
	if missing() == "" {
		if err := makeLayer(layer); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	code := m.Run()
	shims.Close()
	// A fuzzer's workers are killed at its end, in the middle of a try, whose files
	// go with root.
	fuzzes := slices.ContainsFunc(os.Args, func(a string) bool { return strings.HasPrefix(a, "-test.fuzz") })
	if left := leftovers(root); left != "" && !fuzzes {
		fmt.Fprintln(os.Stderr, "left on the host:\n"+left)
		code = 1
	}
	if missing() == "" {
		if _, err := cgroups.Sweep(testCgroup, func(string) bool { return false }); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		if g, err := cgroups.Find(testCgroup); err == nil {
			_ = g.Remove()
		}
	}
	return code
}

// missing names what this machine lacks for tests with real containers.
func missing() string {
	switch _, err := os.Stat(busybox); {
	case os.Geteuid() != 0:
		return "root"
	case err != nil:
		return busybox + " (package busybox-static)"
	case !seccomp.Enabled:
		return "the build tag seccomp"
	}
	return ""
}

func needContainers(t testing.TB) {
	t.Helper()
	if what := missing(); what != "" {
		t.Skip("SKIPPED, no containers without " + what)
	}
}

// makeLayer builds an image of busybox and a few odd files.
func makeLayer(dir string) error {
	for _, d := range []string{"bin", "etc", "tmp", "work", "root", "home/bob"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return err
		}
	}
	data, err := os.ReadFile(busybox)
	if err != nil {
		return err
	}
	files := map[string]string{
		"bin/busybox": string(data),
		"etc/passwd":  "root:x:0:0:root:/root:/bin/sh\nbob:x:1000:1000::/home/bob:/bin/sh\n",
		"etc/group":   "root:x:0:\nbob:x:1000:\nvideo:x:44:bob\nextra:x:77:\n",
		"etc/noexec":  "no program",
	}
	for name, text := range files {
		mode := os.FileMode(0o644)
		if strings.HasPrefix(name, "bin/") {
			mode = 0o755
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			return err
		}
	}
	if err := os.Chown(filepath.Join(dir, "home/bob"), 1000, 1000); err != nil {
		return err
	}
	if err := os.Chmod(filepath.Join(dir, "tmp"), 0o1777); err != nil {
		return err
	}
	list, err := exec.Command(busybox, "--list").Output()
	if err != nil {
		return err
	}
	for name := range strings.FieldsSeq(string(list)) {
		if name == "busybox" {
			continue
		}
		if err := os.Symlink("busybox", filepath.Join(dir, "bin", name)); err != nil {
			return err
		}
	}
	return nil
}

func leftovers(root string) string {
	var out bytes.Buffer
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, root) {
			out.WriteString("mount " + line)
		}
	}
	files, _ := filepath.Glob(root + "/*")
	for _, name := range files {
		if name != layer && name != benchDir {
			out.WriteString("file " + name + "\n")
		}
	}
	dirs, _ := filepath.Glob("/sys/fs/cgroup/*" + testCgroup + "/*")
	more, _ := filepath.Glob("/sys/fs/cgroup" + testCgroup + "/*")
	for _, dir := range append(dirs, more...) {
		if st, err := os.Stat(dir); err == nil && st.IsDir() {
			out.WriteString("cgroup " + dir + "\n")
		}
	}
	return out.String()
}

var lastID atomic.Int64

// shims serve all tests that do not begin their own, so that whatever one
// container leaves in a shim's process meets the next one.
var shims = oci.Pool{Max: 4}

// box is one container under test.
type box struct {
	testing.TB
	dir  string
	id   string
	req  draft.Request
	cfg  oci.ShimConfig
	hand handed.Handover
	shim *oci.Container
	edit func(*specs.Spec) // of the spec that req makes; nil: none

	guest *oci.Guest // nil: it has a container of its own
}

// newBox describes a container that runs a shell script.
func newBox(t testing.TB, script string) *box {
	t.Helper()
	needContainers(t)
	id := fmt.Sprintf("t%d.%d", os.Getpid(), lastID.Add(1))
	b := &box{TB: t, id: id, dir: filepath.Join(t.TempDir(), "c")}
	b.req = draft.Request{
		Command:    []string{"/bin/sh", "-c", script},
		CgroupPath: testCgroup + "/" + id,
		Limits:     cgroups.Limits{MemoryBytes: 64 << 20, Pids: 64},
	}
	b.cfg = oci.ShimConfig{ID: id, Layers: []string{layer}}
	return b
}

func (b *box) prepare() {
	b.Helper()
	spec, err := draft.Build(b.req)
	if err != nil {
		b.Fatal(err)
	}
	if b.edit != nil {
		b.edit(spec)
	}
	if err := oci.Prepare(b.dir, spec, b.cfg); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := oci.Remove(b.dir); err != nil {
			b.Error(err)
		}
	})
}

func (b *box) start() *oci.Container {
	b.Helper()
	b.prepare()
	if !b.req.IDs.IsZero() && b.hand.User == nil {
		ns, err := userns.New(b.req.IDs, false)
		if err != nil {
			b.Fatal(err)
		}
		defer ns.Close()
		b.hand.User = ns.User
	}
	shim, err := shims.Start(b.dir, b.hand)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { shim.Kill(); <-shim.Done() })
	b.shim = shim
	return shim
}

const patience = 2 * time.Minute

func (b *box) exit() result.Exit {
	b.Helper()
	select {
	case <-b.shim.Done():
	case <-time.After(patience):
		b.Fatalf("container does not end; log: %s; shim: %s", b.log(), b.shimLog())
	}
	exit, err := b.shim.Exit()
	if err != nil {
		b.Fatalf("%v; shim: %s", err, b.shimLog())
	}
	if text := b.shimLog(); text != "" {
		b.Errorf("shim complains: %s", text)
	}
	return exit
}

// run starts the container, waits and returns its result and output.
func (b *box) run() (result.Exit, string) {
	b.Helper()
	b.start()
	exit := b.exit()
	return exit, b.log()
}

func (b *box) log() string {
	b.Helper()
	open := oci.OpenLog
	if b.guest != nil {
		open = func(dir string) (*logs.Log, error) { return oci.OpenGuestLog(dir, func() bool { return false }), nil }
	}
	l, err := open(b.dir)
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	var out strings.Builder
	for off := int64(0); ; {
		c, err := l.ReadAt(off)
		if err != nil {
			return out.String()
		}
		out.WriteString(c.Notice())
		out.Write(c.Data)
		off = c.Offset + int64(len(c.Data))
	}
}

func (b *box) shimLog() string {
	dir := b.dir
	if b.guest != nil {
		dir = b.guest.Home
	}
	data, _ := os.ReadFile(filepath.Join(dir, "lock"))
	return string(data)
}

// await polls until the log has text.
func (b *box) await(text string) {
	b.Helper()
	poll(b, "log with "+text, func() bool { return strings.Contains(b.log(), text) })
}

// poll waits for a condition that another process brings about.
func poll(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("no %s after %s", what, patience)
		}
		time.Sleep(2 * time.Millisecond)
	}
}
