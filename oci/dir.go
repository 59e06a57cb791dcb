package oci

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"

	"gbatch/oci/atomicfile"
	"gbatch/oci/door"
	"gbatch/oci/draft"
	"gbatch/oci/handed"
	"gbatch/oci/held"
	"gbatch/oci/lease"
	"gbatch/oci/logs"
	"gbatch/oci/overlay"
	"gbatch/oci/runtimes"
	"gbatch/oci/stage"
	"gbatch/oci/stdio"
)

// What lies in a container's directory. The directory is the whole record of
// a container: nothing about it is kept in the memory of the daemon only.
const (
	fileSpec   = "config.json" // the OCI spec; hooks look for this name
	fileShim   = "shim.json"   // ShimConfig
	fileLock   = held.File     // held (flock) from before the shim's fork until its death; has what it complained of
	fileSocket = door.File     // control socket while the shim lives
	dirRootfs  = "rootfs"      // on the stage; of an earlier version's containers also here
	dirState   = "state"       // likewise
	dirLog     = "log"         // see log.go
	dirScratch = "scratch"     // the container's own writes, unless ShimConfig.Scratch is set
)

// ShimConfig is what a shim has to know beside the OCI spec.
type ShimConfig struct {
	// ID names the container: letters, digits, "_", "+", "-" and ".".
	// It has to be unique among the containers that run on the machine.
	ID string `json:"id"`
	// Layers are the directories of the image's layers, lowest (base) first.
	Layers []string `json:"layers"`
	// Scratch is where the container's own writes go; "" is in the container's directory. It must not lie on an overlay or network
	// file system, and only root may enter it.
	Scratch string `json:"scratch,omitempty"`
	// Once says that nobody calls Written for this container, so that the disk need not have what it writes.
	Once bool `json:"once,omitempty"`
	// Log bounds what is kept of the output.
	Log logs.Limits `json:"log"`
	// Network is set if Pool.Start hands over a network namespace. The spec's
	// network must be the zero value then.
	Network *ShimNetwork `json:"network,omitempty"`

	// Stdio says which files of the program's StartWith hands over.
	Stdio *stdio.Names `json:"stdio,omitempty"`

	// FilterHost keeps a container that has the host's network from services on
	// the host's loopback addresses and the like; see package hostnet.
	FilterHost bool `json:"filter_host,omitempty"`

	// Own are directories of the host that are given to the container's user, with all in them, before its program runs.
	Own []string `json:"own,omitempty"`

	// Files are put over those of the image. What the spec mounts there, or on a directory above, hides them.
	Files []File `json:"files,omitempty"`

	// MakeDirs are directories in the container that are made where the image has none. Everybody there may write to them.
	MakeDirs []string `json:"make_dirs,omitempty"`

	// Below are mounts of the spec whose sources lie in volumes; see stage.Below.
	Below []stage.Below `json:"below,omitempty"`

	// Before are programs that begin before the spec's, one after the other: each has
	// ended when the next one begins, unless it stays.
	Before []Part `json:"before,omitempty"`

	// Beside are programs that run at the same time as the spec's. The container has
	// ended when all of these and the spec's have.
	Beside []Part `json:"beside,omitempty"`
	// FailTogether has the first of them that fails end the others.
	FailTogether bool `json:"fail_together,omitempty"`
	// Ending is how programs are ended by the end of others; those that stay get TERM.
	Ending Ending `json:"ending,omitzero"`

	// SignalFirst sends signals to the first process alone; see package signals.
	SignalFirst bool `json:"signal_first,omitempty"`

	// LeaseFile is a file with a Lease: the container is killed when that has
	// run out, even if whoever asked for it is dead. "" is no lease.
	LeaseFile string `json:"lease_file,omitempty"`

	// Limit is how long it may run: the container is ended a little after it, even if whoever
	// asked for it is dead. LimitFile is where another limit may come to be; "" is no limit.
	Limit     lease.Limit `json:"limit,omitzero"`
	LimitFile string      `json:"limit_file,omitempty"`

	// Init is a program as that of Keep, which is the first process of a container that ends
	// with its only program, and begins that: signals from inside do to the program what they do
	// outside of containers, and somebody waits for what it leaves. "": the program is the first process.
	Init string `json:"init,omitempty"`

	// Waits has its only program wait for [Container.Begin] once all else is there. Until then
	// nothing of the user's runs, and it ends without a result, as if it had never been started,
	// if whoever started it goes.
	Waits bool `json:"waits,omitempty"`

	// OOMOne has the memory limit end one process, as the kernel chooses, and the container go
	// on: something in it takes care of that. Else it ends the container as a whole.
	OOMOne bool `json:"oom_one,omitempty"`

	// Keep is set for a container that goes on after its program.
	Keep *Keep `json:"keep,omitempty"`

	// Runtime is a program that runs the container instead of libcontainer.
	Runtime *runtimes.Runtime `json:"runtime,omitempty"`

	// CgroupPath is the spec's; Prepare fills it in.
	CgroupPath string `json:"cgroup_path"`
}

// Ending is a signal, and how long after it a program is killed.
type Ending struct {
	Signal  int   `json:"signal"`
	GraceMS int64 `json:"grace_ms"`
}

// Prepare makes dir and writes what a shim needs there. The directory must be new: each attempt has its own, so that nothing is
// carried over. It appears whole or not at all: what a kill in the middle leaves is called dir.new, and the next Prepare replaces it.
func Prepare(dir string, spec *specs.Spec, cfg ShimConfig) error {
	if err := prepare(dir, spec, cfg); err != nil {
		return fmt.Errorf("prepare container %s: %w", cfg.ID, err)
	}
	return nil
}

func prepare(dir string, spec *specs.Spec, cfg ShimConfig) error {
	if err := checkShimConfig(spec, cfg); err != nil {
		return err
	}
	if exists(dir) {
		return fmt.Errorf("directory %s is there already; each attempt needs its own", dir)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o711); err != nil {
		return err
	}
	unready := filepath.Clean(dir) + ".new"
	if err := os.RemoveAll(unready); err != nil {
		return err
	}
	cfg.CgroupPath = spec.Linux.CgroupsPath
	subs := []string{dirLog}
	if cfg.Scratch == "" {
		cfg.Scratch = filepath.Join(dir, dirScratch)
		subs = append(subs, dirScratch)
	}
	for _, sub := range subs {
		if err := os.MkdirAll(filepath.Join(unready, sub), 0o700); err != nil {
			return err
		}
	}
	if err := atomicfile.PutJSON(filepath.Join(unready, fileSpec), spec, false); err != nil {
		return err
	}
	if err := atomicfile.PutJSON(filepath.Join(unready, fileShim), cfg, true); err != nil {
		return err
	}
	return os.Rename(unready, dir)
}

func checkShimConfig(spec *specs.Spec, cfg ShimConfig) error {
	switch {
	case spec == nil || spec.Process == nil || spec.Linux == nil || spec.Root == nil:
		return errors.New("the spec lacks a process, root or linux part; build it with draft.Build")
	case spec.Linux.CgroupsPath == "":
		return errors.New("the spec has no cgroup path")
	case !draft.ValidID(cfg.ID):
		return fmt.Errorf("container id %q must be 1 to 128 letters, digits, '_', '+', '-' and '.'", cfg.ID)
	case cfg.Network != nil && !hasOwnNetwork(spec):
		return errors.New("a network is handed over, and the spec names another one")
	case (cfg.Keep != nil || cfg.Init != "") && (cfg.Runtime != nil || spec.Process.Terminal):
		return errors.New("a container whose first process begins its programs has no terminal and no runtime of its own")
	case cfg.OOMOne && (cfg.Keep != nil || cfg.Runtime != nil || cfg.several()):
		return errors.New("the memory limit ends one process alone in a container of one program, without a runtime of its own")
	case len(cfg.Layers) == 0:
		return errors.New("the image has no layers")
	case len(cfg.Layers) > overlay.MaxLayers:
		return fmt.Errorf("the image has %d layers; at most %d can be mounted", len(cfg.Layers), overlay.MaxLayers)
	case len(cfg.Before) > MaxParts:
		return fmt.Errorf("%d programs run before the container's, at most %d can", len(cfg.Before), MaxParts)
	case len(cfg.Beside) > MaxParts:
		return fmt.Errorf("%d programs run beside the container's, at most %d can", len(cfg.Beside), MaxParts)
	case len(cfg.others()) > 0 && cfg.Runtime != nil:
		return errors.New("another runtime cannot run further programs of the container's")
	case cfg.several() && cfg.Network == nil && hasOwnNetwork(spec):
		return errors.New("programs that run at once have a network in common, which has to be handed over")
	case cfg.several() && (cfg.Keep != nil || spec.Process.Terminal):
		return errors.New("a container in which several programs run at once has no terminal, and ends with them")
	}
	for _, p := range cfg.others() {
		own := cfg
		own.Before, own.Beside, own.Layers, own.Network = nil, nil, p.Layers, nil
		if err := checkShimConfig(p.Spec, own); err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
		if p.Spec.Linux.CgroupsPath != spec.Linux.CgroupsPath {
			return fmt.Errorf("%s: has another cgroup than the container", p.Name)
		}
	}
	return nil
}

// others are all programs but the spec's.
func (c *ShimConfig) others() []Part { return slices.Concat(c.Before, c.Beside) }

// several says whether several programs of the container run at the same time.
func (c *ShimConfig) several() bool {
	return len(c.Beside) > 0 || slices.ContainsFunc(c.Before, func(p Part) bool { return p.Stays })
}

// handed are the files of a container beside its user namespace.
func (c *ShimConfig) handed() handed.Kinds {
	k := handed.Kinds{Network: c.Network != nil, Stdio: c.Stdio}
	if k.Network {
		k.Ports = len(c.Network.Ports)
	}
	return k
}

// readShim reads what a shim was told. Where that cannot be read, the container's cgroup is still known by its spec.
func readShim(dir string) (ShimConfig, error) {
	var cfg ShimConfig
	err := atomicfile.ReadJSON(filepath.Join(dir, fileShim), &cfg)
	if err != nil {
		var spec specs.Spec
		if atomicfile.ReadJSON(filepath.Join(dir, fileSpec), &spec) == nil && spec.Linux != nil {
			return ShimConfig{CgroupPath: spec.Linux.CgroupsPath}, nil
		}
	}
	return cfg, err
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
