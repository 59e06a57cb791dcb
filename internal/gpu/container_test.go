package gpu

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/opencontainers/runc/libcontainer/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"gbatch/cgroups"
	"gbatch/internal/gpu/setup"
	"gbatch/oci"
	"gbatch/oci/draft"
	"gbatch/oci/handed"
	"gbatch/oci/result"
)

// testCgroup holds the containers of this run alone: fuzzing runs this package's
// program beside its tests, and what one of them clears away is not the other's.
var testCgroup = fmt.Sprintf("/gbatch-test-gpu-%d", os.Getpid())

func TestMain(m *testing.M) {
	RunHook() // containers' hooks are this program, as they are gnoded
	code := m.Run()
	if _, err := cgroups.Sweep(testCgroup, func(string) bool { return false }); err == nil {
		if g, err := cgroups.Find(testCgroup); err == nil {
			_ = g.Remove()
		}
	}
	os.Exit(code)
}

const busybox = "/bin/busybox"

func needContainers(t testing.TB) {
	t.Helper()
	what := ""
	switch _, err := os.Stat(busybox); {
	case os.Geteuid() != 0:
		what = "root"
	case err != nil:
		what = busybox + " (package busybox-static)"
	case !seccomp.Enabled:
		what = "the build tag seccomp"
	}
	if what != "" {
		t.Skip("SKIPPED, no containers without " + what)
	}
}

// image is a busybox with the directories that driver files go into.
func image(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "layer")
	for _, d := range []string{"bin", "etc", "lib", "tmp"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	copyFile(t, busybox, filepath.Join(dir, "bin/busybox"))
	for _, name := range []string{"sh", "cat", "ls", "mknod", "readlink", "grep", "tr", "id"} {
		if err := os.Symlink("busybox", filepath.Join(dir, "bin", name)); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, filepath.Join(dir, "etc/passwd"), "root:x:0:0:root:/root:/bin/sh\nbob:x:1000:1000::/tmp:/bin/sh\n")
	writeFile(t, filepath.Join(dir, "etc/group"), "root:x:0:\nbob:x:1000:\n")
	return dir
}

func writeFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func copyFile(t testing.TB, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, to, string(data))
}

// driverRoot is what a driver of the given version installs, as far as is looked
// for: n device nodes without a driver behind them, the control nodes, two
// libraries and a program. The libraries are copies of one of the host's, as
// ldconfig looks into them; it knows them by their inner name, libdl.so.2.
func driverRoot(t testing.TB, version string, n int) string {
	t.Helper()
	root := t.TempDir()
	lib := filepath.Join(root, "usr/lib/x86_64-linux-gnu")
	library := hostLibrary(t)
	for _, name := range []string{"libcuda.so.", "libnvidia-ml.so."} {
		copyFile(t, library, filepath.Join(lib, name+version))
	}
	writeFile(t, filepath.Join(root, "usr/bin/nvidia-smi"), "#!/bin/sh\necho smi\n")
	node := func(name string, minor int) {
		path := filepath.Join(root, "dev", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(195, uint32(minor)))); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, 0o666); err != nil { // whatever the umask
			t.Fatal(err)
		}
	}
	for i := range n {
		node(fmt.Sprintf("nvidia%d", i), i)
	}
	node("nvidiactl", 255)
	node("nvidia-uvm", 254)
	return root
}

// hostLibrary is any shared library of this machine.
func hostLibrary(t testing.TB) string {
	t.Helper()
	for _, pattern := range []string{"/lib/x86_64-linux-gnu/libdl.so.2", "/lib/*/libdl.so.2", "/lib64/libdl.so.2"} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			return found[0]
		}
	}
	t.Skip("SKIPPED, no shared library of this machine found to stand for the driver's")
	return ""
}

var lastID atomic.Int64

// runContainer runs a script with the spec as edit leaves it.
func runContainer(t *testing.T, script string, edit func(*draft.Request), give func(*specs.Spec) error) (result.Exit, string) {
	t.Helper()
	id := fmt.Sprintf("gpu%d.%d", os.Getpid(), lastID.Add(1))
	req := draft.Request{
		Image:      draft.Image{Env: []string{"NVIDIA_VISIBLE_DEVICES=all"}},
		Command:    []string{"/bin/sh", "-c", script},
		CgroupPath: testCgroup + "/" + id,
		// Hooks run within them: this program, checked for races, takes 57 MiB as one.
		Limits: cgroups.Limits{MemoryBytes: 256 << 20, Pids: 64},
		// With it, only the device rules of the control group keep GPUs apart.
		Capabilities: []string{"CAP_MKNOD"},
	}
	if edit != nil {
		edit(&req)
	}
	spec, err := draft.Build(req)
	if err != nil {
		t.Fatal(err)
	}
	if err := give(spec); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "c")
	if err := oci.Prepare(dir, spec, oci.ShimConfig{ID: id, Layers: []string{image(t)}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := oci.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	shim, err := new(oci.Pool).Start(dir, handed.Handover{})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-shim.Done():
	case <-time.After(time.Minute):
		shim.Kill()
		<-shim.Done()
		t.Fatal("the container does not end")
	}
	exit, err := shim.Exit()
	if err != nil {
		t.Fatal(err)
	}
	if exit.Failure != nil {
		t.Errorf("the container did not start: %+v", *exit.Failure)
	}
	return exit, readLog(t, dir)
}

func readLog(t *testing.T, dir string) string {
	t.Helper()
	l, err := oci.OpenLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var out strings.Builder
	for off := int64(0); ; {
		c, err := l.ReadAt(off)
		if err != nil {
			return out.String()
		}
		out.Write(c.Data)
		off = c.Offset + int64(len(c.Data))
	}
}

// realNode is a node whose GPUs are taken for real ones: the mock without the
// mark that simulated ones carry, over a driver root without a driver.
func realNode(t testing.TB, n int, cfg InjectorConfig) (*Node, string) {
	t.Helper()
	sim := fake(t, fmt.Sprintf("a100:%d", n))
	root := driverRoot(t, sim.DriverVersion, n)
	cfg.Lib, cfg.Root, cfg.HookDir = sim.Server, root, t.TempDir()
	if cfg.SpecDirs == nil {
		cfg.SpecDirs = []string{t.TempDir()}
	}
	monitor, err := newMonitor(sim.Server, setup.Limits{}, Memory{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	injector, err := newInjector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &Node{monitor, injector}, root
}

// A container gets its own GPUs, the driver's files and nothing else, and a
// node that it makes for another GPU does not open.
func TestContainerCDI(t *testing.T) {
	needContainers(t)
	node, _ := realNode(t, 4, InjectorConfig{})
	gpus := node.Inventory().GPUs
	granted := []string{gpus[3].UUID, gpus[1].UUID} // order does not matter
	script := `
ls /dev | grep nvidia | tr '\n' ' '; echo
cat /dev/nvidia1
mknod /dev/nvidia2 c 195 2 && cat /dev/nvidia2
echo "$NVIDIA_VISIBLE_DEVICES"; echo "$CUDA_VISIBLE_DEVICES $CUDA_DEVICE_ORDER"
ls /usr/bin
readlink /usr/lib/x86_64-linux-gnu/libcuda.so
grep -c /usr/lib/x86_64-linux-gnu/libdl.so.2 /etc/ld.so.cache
`
	_, log := runContainer(t, script, nil, func(s *specs.Spec) error { return node.Edits(s, granted) })
	want := []string{
		"nvidia-uvm nvidia1 nvidia3 nvidiactl",
		"cat: can't open '/dev/nvidia1': No such device or address",
		"cat: can't open '/dev/nvidia2': Operation not permitted",
		gpus[1].UUID + "," + gpus[3].UUID,
		"0,1 PCI_BUS_ID",
		"nvidia-smi",
		"libcuda.so.1",
		"1",
	}
	checkLines(t, want, log)
}

func checkLines(t *testing.T, want []string, log string) {
	t.Helper()
	var got []string
	for line := range strings.Lines(log) {
		got = append(got, strings.TrimSpace(line))
	}
	if strings.Join(want, "\n") != strings.Join(got, "\n") {
		t.Errorf("want:\n%s\ngot:\n%s", strings.Join(want, "\n"), strings.Join(got, "\n"))
	}
}

// A user without rights opens the device too: its mode comes from the host.
func TestContainerUser(t *testing.T) {
	needContainers(t)
	node, _ := realNode(t, 2, InjectorConfig{})
	_, log := runContainer(t, `id -u; cat /dev/nvidia0`,
		func(r *draft.Request) { r.User = "bob" },
		func(s *specs.Spec) error { return node.Edits(s, []string{node.Inventory().GPUs[0].UUID}) })
	checkLines(t, []string{"1000", "cat: can't open '/dev/nvidia0': No such device or address"}, log)
}

// A container without GPUs on a node with some has none, whatever its image says.
func TestContainerWithoutGPUs(t *testing.T) {
	needContainers(t)
	node, _ := realNode(t, 2, InjectorConfig{})
	_, log := runContainer(t, `ls /dev | grep -c nvidia; mknod /dev/nvidia0 c 195 0; cat /dev/nvidia0; echo $NVIDIA_VISIBLE_DEVICES`, nil,
		func(s *specs.Spec) error { return node.Edits(s, nil) })
	checkLines(t, []string{"0", "cat: can't open '/dev/nvidia0': Operation not permitted", "void"}, log)
}

func TestContainerSimulated(t *testing.T) {
	needContainers(t)
	sim, err := setup.ParseSimulation("h100:4")
	if err != nil {
		t.Fatal(err)
	}
	node, err := Open(Config{Simulate: sim, NodeName: "n1"})
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	gpus := node.Inventory().GPUs
	_, log := runContainer(t, `ls /dev | grep -c nvidia; echo "$NVIDIA_VISIBLE_DEVICES $CUDA_VISIBLE_DEVICES $GBATCH_SIMULATED_GPUS"`, nil,
		func(s *specs.Spec) error { return node.Edits(s, []string{gpus[2].UUID, gpus[0].UUID}) })
	checkLines(t, []string{"0", gpus[0].UUID + "," + gpus[2].UUID + " 0,1 1"}, log)
}

// The site's own file for a GPU is used instead of ours, and devices of other
// vendors come along.
func TestContainerSiteFiles(t *testing.T) {
	needContainers(t)
	dir := t.TempDir()
	node, root := realNode(t, 2, InjectorConfig{SpecDirs: []string{dir}, Injection: setup.Injection{Devices: []string{"example.com/rdma=all"}}})
	uuid := node.Inventory().GPUs[1].UUID
	writeFile(t, filepath.Join(dir, "gpu.json"), fmt.Sprintf(`{"cdiVersion": "0.6.0", "kind": "nvidia.com/gpu", "devices": [
	  {"name": %q, "containerEdits": {"env": ["SITE=gpu"], "deviceNodes": [{"path": "/dev/site", "hostPath": "%s/dev/nvidia1"}]}}]}`, uuid, root))
	writeFile(t, filepath.Join(dir, "rdma.yaml"), "cdiVersion: 0.6.0\nkind: example.com/rdma\ndevices:\n- name: all\n  containerEdits:\n    env: [RDMA=yes]\n")
	_, log := runContainer(t, `echo $SITE $RDMA; cat /dev/site; ls /dev | grep -c nvidia; mknod /dev/nvidia0 c 195 0; cat /dev/nvidia0`, nil,
		func(s *specs.Spec) error { return node.Edits(s, []string{uuid}) })
	checkLines(t, []string{"gpu yes", "cat: can't open '/dev/site': No such device or address", "0",
		"cat: can't open '/dev/nvidia0': Operation not permitted"}, log)
}

// The program of mode hook is run once the container is there, with the state
// on its standard input and the container's wishes in config.json.
func TestContainerHook(t *testing.T) {
	needContainers(t)
	out := filepath.Join(t.TempDir(), "out")
	hook := filepath.Join(t.TempDir(), "hook")
	writeFile(t, hook, "#!/bin/sh\nexec >"+out+"\necho \"$1\"\ncat\necho\ngrep -o 'NVIDIA_[A-Z_]*=[^\"]*' config.json\n")
	node, _ := realNode(t, 2, InjectorConfig{Injection: setup.Injection{Mode: setup.Hook, Hook: hook}})
	uuid := node.Inventory().GPUs[1].UUID
	exit, log := runContainer(t, `echo $NVIDIA_VISIBLE_DEVICES $CUDA_VISIBLE_DEVICES`, nil,
		func(s *specs.Spec) error { return node.Edits(s, []string{uuid}) })
	if exit.Code != 0 {
		t.Fatalf("exit: %+v", exit)
	}
	checkLines(t, []string{uuid + " 0"}, log)
	said, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"prestart\n", `"pid":`, "NVIDIA_VISIBLE_DEVICES=" + uuid, "NVIDIA_DRIVER_CAPABILITIES=compute,utility"} {
		if !strings.Contains(string(said), want) {
			t.Errorf("the hook saw %q, want %q in it", said, want)
		}
	}
}

// The names by which this program is started for a hook must not be taken by
// anything else, and what a hook cannot do must be an error.
func TestRunHook(t *testing.T) {
	dir := t.TempDir()
	link, err := linkHook(dir)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := linkHook(dir); err != nil || again != link {
		t.Errorf("second time: %s, %v", again, err)
	}
	if out, err := exec.Command(link, "noop").CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("noop: %v %s", err, out)
	}
	bad := exec.Command(link, "update-ldcache")
	bad.Stdin = strings.NewReader("{}")
	if out, err := bad.CombinedOutput(); err == nil || !strings.Contains(string(out), "container") {
		t.Errorf("update-ldcache of nothing: %v %s", err, out)
	}
}
