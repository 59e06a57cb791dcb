package annex

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/opencontainers/runc/libcontainer"
	"github.com/opencontainers/runc/libcontainer/configs"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"gbatch/oci/failure"
	"gbatch/oci/rmtree"
	"gbatch/oci/spawn"
	"gbatch/oci/stage"
)

// Set is those of one container. They have its control group, network, user and devices,
// and end with it at the latest. All of it is for the container's thread.
type Set struct {
	running map[*one]bool
	begun   int
	closed  bool
}

// Of is the container that they are begun beside, as it is now.
type Of struct {
	ID     string
	Spec   *specs.Spec
	Hooked []byte     // the spec for hooks; nil: there are none
	Root   stage.Root // how its own is made; that of another has other layers
	State  string     // where libcontainer's files are, as other threads see it

	Config   func(of *specs.Spec, rootfs string) (*configs.Config, error)
	Bundle   func(hooked []byte) error // shows hooks the spec
	OnThread func(func()) bool         // has the container's thread do it; false: it has ended
	Complain func(error)
}

// one is one of them.
type one struct {
	name    string
	root    stage.Root
	state   string   // libcontainer's directory
	places  []string // where what it mounts from inside is found
	process *libcontainer.Process
	dead    chan struct{} // closed when its first process has ended
	cleared bool
}

// Bounds of a set: how many run at a time, and for how long the end of one is waited for.
const (
	maxRunning = 64
	endTime    = 10 * time.Second
)

// ErrEnded says that the container has ended beside which one was to begin.
var ErrEnded = errors.New("the container has ended")

// Begin makes a container and has its program run, with a file as the first after standard
// error. Trees are what Open opened for the request.
func (x *Set) Begin(q *Request, of Of, file *os.File, trees []*os.File) error {
	if x.closed {
		return ErrEnded
	}
	if x.running == nil {
		x.running = map[*one]bool{}
	}
	for old := range x.running { // whoever had it has gone, or would have joined it
		if q.Name != "" && old.name == q.Name {
			x.end(old, of.Complain)
		}
	}
	if len(x.running) >= maxRunning {
		return fmt.Errorf("%d containers run beside the job's program, which is the most", maxRunning)
	}
	x.begun++
	a := &one{name: q.Name, root: of.Root, dead: make(chan struct{})}
	a.root.ID, a.root.At, a.root.Layers, a.root.Again = named(of.ID, strconv.Itoa(x.begun)), fmt.Sprintf("%s.a%d", of.Root.At, x.begun), q.Layers, q.Name != ""
	if q.Name != "" {
		a.root.ID = named(of.ID, "n-"+q.Name)
	}
	a.state = filepath.Join(of.State, a.root.ID)
	if err := a.begin(q, of, file, trees); err != nil {
		x.clear(a, of.Complain)
		return err
	}
	x.running[a] = true
	go func() { // ends with the process
		_, _ = a.process.Wait()
		close(a.dead)
		of.OnThread(func() { x.clear(a, of.Complain) })
	}()
	return nil
}

func (a *one) begin(q *Request, of Of, file *os.File, trees []*os.File) error {
	for i, t := range trees {
		at := fmt.Sprintf("%s.inside.%d", a.root.At, i)
		a.places = append(a.places, at)
		if err := stage.Attach(t, at); err != nil {
			return &failure.Failure{Kind: failure.MountFailed, Message: "cannot mount " + q.Inside[i].Source, Detail: err.Error()}
		}
	}
	if err := a.root.Mount(); err != nil {
		return failure.OfRootfs(err)
	}
	spec, err := q.Spec(of.Spec, a.places)
	if err != nil {
		return err
	}
	if err := a.start(spec, of, file); err != nil {
		return failure.Of(err, failure.Start{Process: spec.Process, Mounts: spec.Mounts, Rootfs: a.root.At})
	}
	return nil
}

func (a *one) start(spec *specs.Spec, of Of, file *os.File) error {
	hooked, err := rootAt(of.Hooked, a.root.At)
	if err == nil {
		err = of.Bundle(hooked)
	}
	if err != nil {
		return err
	}
	config, err := of.Config(spec, a.root.At)
	if err != nil {
		return err
	}
	c, err := spawn.Within(of.State, a.root.ID, config)
	if err != nil {
		return err
	}
	if a.process, err = spawn.Of(spec.Process); err != nil {
		return err
	}
	a.process.Init, a.process.ExtraFiles = true, []*os.File{file}
	if err := c.Start(a.process); err != nil {
		return err
	}
	if err := c.Exec(); err != nil {
		_ = a.process.Signal(unix.SIGKILL)
		_, _ = a.process.Wait()
		return err
	}
	return nil
}

// rootAt is a spec for hooks with another root file system; nil: there are none.
func rootAt(hooked []byte, at string) ([]byte, error) {
	if hooked == nil {
		return nil, nil
	}
	var spec specs.Spec
	if err := json.Unmarshal(hooked, &spec); err != nil {
		return nil, err
	}
	spec.Root = &specs.Root{Path: at}
	return json.Marshal(&spec)
}

// clear leaves nothing of one that has ended, but what it wrote if it has a name.
func (x *Set) clear(a *one, complain func(error)) {
	if a.cleared {
		return
	}
	a.cleared = true
	delete(x.running, a)
	for _, at := range a.places {
		if err := unix.Unmount(at, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
			complain(err)
		}
	}
	complain(errors.Join(a.root.Unmount(), os.RemoveAll(a.state)))
	for _, place := range append(a.places, a.root.At) {
		if err := os.Remove(place); err != nil && !errors.Is(err, os.ErrNotExist) {
			complain(err)
		}
	}
	if at := a.root; a.name == "" {
		go func() { complain(stage.Remove(at.Scratch, at.ID)) }() // what is left at the end goes with the container
	}
}

func (x *Set) end(a *one, complain func(error)) {
	_ = a.process.Signal(unix.SIGKILL) // an error: it has ended
	select {
	case <-a.dead:
	case <-time.After(endTime):
		complain(errors.New("a container beside the job's program does not end"))
	}
	x.clear(a, complain)
}

// End ends all: what they were begun beside has ended.
func (x *Set) End(complain func(error)) {
	x.closed = true
	for a := range x.running {
		_ = a.process.Signal(unix.SIGKILL)
	}
	for a := range x.running {
		x.end(a, complain)
	}
}

// named names what one writes.
func named(id, name string) string { return id + "+a." + name }

// Remove removes what those of a container have written.
func Remove(scratch, id string) error {
	entries, err := os.ReadDir(scratch)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), named(id, "")) {
			err = errors.Join(err, rmtree.Remove(filepath.Join(scratch, e.Name())))
		}
	}
	return err
}
