package vmtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"

	"gbatch/cgroups"
	"gbatch/oci"
	"gbatch/oci/draft"
	"gbatch/oci/handed"
	"gbatch/oci/result"
)

// patience is for an emulated machine on a busy one.
const patience = 60 * time.Second

// layers are the image's, lowest first; the test packs them.
var layers = []string{"/image/base", "/image/middle", "/image/top"}

// box is one container.
type box struct {
	id, dir string
	req     draft.Request
	oomOne  bool
	shim    *oci.Container
}

// newBox describes a container that runs a shell script.
func newBox(id, script string) *box {
	return &box{id: id, dir: filepath.Join(attempts, id), req: draft.Request{
		Command:    []string{"/bin/sh", "-c", script},
		CgroupPath: prefix() + "/" + id,
		Limits:     cgroups.Limits{MemoryBytes: 64 << 20, Pids: 32, CPUs: cgroups.NewCPUSet(1)},
		// To try whether a node of its own gets it anywhere.
		Capabilities: []string{"CAP_MKNOD"},
		Devices:      []specs.LinuxDevice{{Path: "/dev/granted", Type: "c", Major: grantedMajor}},
	}}
}

func (b *box) prepare() error {
	spec, err := draft.Build(b.req)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(attempts, 0o755); err != nil {
		return err
	}
	return oci.Prepare(b.dir, spec, oci.ShimConfig{ID: b.id, Layers: layers, OOMOne: b.oomOne})
}

// startAndLeave is the whole life of a daemon that starts a container and dies.
func startAndLeave(dir string) error {
	_, err := new(oci.Pool).Start(dir, handed.Handover{})
	return err
}

// startElsewhere has another process start the container and end, and then
// takes it over.
func (b *box) startElsewhere() error {
	if err := b.prepare(); err != nil {
		return err
	}
	if out, err := exec.Command("/proc/self/exe", "start", b.dir).CombinedOutput(); err != nil {
		return fmt.Errorf("start: %w: %s", err, out)
	}
	state, shim, err := oci.Adopt(b.dir)
	if err != nil {
		return err
	}
	if state != oci.StateAlive || shim == nil {
		return fmt.Errorf("state %s; shim: %s", state, b.shimLog())
	}
	b.shim = shim
	return nil
}

// run starts the container, waits for its end and removes all but its output.
func (b *box) run() (result.Exit, string, error) {
	if err := b.prepare(); err != nil {
		return result.Exit{}, "", err
	}
	shim, err := new(oci.Pool).Start(b.dir, handed.Handover{})
	if err != nil {
		return result.Exit{}, "", err
	}
	b.shim = shim
	exit, err := b.exit()
	log := b.log()
	return exit, log, errors.Join(err, oci.Remove(b.dir))
}

func (b *box) exit() (result.Exit, error) {
	select {
	case <-b.shim.Done():
	case <-time.After(patience):
		return result.Exit{}, fmt.Errorf("container %s does not end; log: %s; shim: %s", b.id, b.log(), b.shimLog())
	}
	exit, err := b.shim.Exit()
	if text := b.shimLog(); err == nil && text != "" {
		err = fmt.Errorf("shim complains: %s", text)
	}
	return exit, err
}

func (b *box) log() string {
	l, err := oci.OpenLog(b.dir)
	if err != nil {
		return err.Error()
	}
	defer l.Close()
	c, err := l.ReadAt(0)
	if err != nil {
		return ""
	}
	return string(c.Data)
}

func (b *box) shimLog() string {
	data, _ := os.ReadFile(filepath.Join(b.dir, "lock"))
	return string(data)
}

// awaitLog polls until the output has text.
func (b *box) awaitLog(text string) error {
	err := poll("output with "+text, func() bool { return strings.Contains(b.log(), text) })
	if err != nil {
		err = fmt.Errorf("%w; log: %s; shim: %s", err, b.log(), b.shimLog())
	}
	return err
}

// poll waits for a condition that another process brings about.
func poll(what string, ok func() bool) error {
	for deadline := time.Now().Add(patience); !ok(); {
		if time.Now().After(deadline) {
			return fmt.Errorf("no %s after %s", what, patience)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil
}
