package hostnet

import (
	"errors"
	"fmt"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// Filter is the programs, loaded. Its sockets are told by their storage: each
// filter has its own.
type filter struct {
	own   *ebpf.Map
	progs map[ebpf.AttachType]*ebpf.Program
}

// attach puts a filter on the group at a directory of the v2 hierarchy, for all
// sockets that are made in it from now on.
func attach(dir string) error {
	f, err := load()
	if err != nil {
		return err
	}
	defer f.close()
	group, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("filter the node's network: %w", err)
	}
	defer group.Close()
	for at, p := range f.progs {
		// Without a link, which would go with the file that stands for it.
		err := link.RawAttachProgram(link.RawAttachProgramOptions{
			Target: int(group.Fd()), Program: p, Attach: at, Flags: unix.BPF_F_ALLOW_MULTI,
		})
		if err != nil {
			return fmt.Errorf("filter the node's network: attach %s to %s: %w", at, dir, err)
		}
	}
	return nil
}

// Probe tries whether containers can be filtered on this machine.
func Probe() error {
	if _, err := hierarchy(); err != nil {
		return err
	}
	f, err := load()
	if err != nil {
		return err
	}
	f.close()
	return nil
}

func load() (*filter, error) {
	number := &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed}
	own, err := ebpf.NewMap(&ebpf.MapSpec{
		Name: "gbatch_own", Type: ebpf.SkStorage, KeySize: 4, ValueSize: 4, Flags: unix.BPF_F_NO_PREALLOC, Key: number, Value: number,
	})
	if err != nil {
		return nil, fmt.Errorf("filter the node's network: tell sockets apart: %w (needs root and a kernel with CONFIG_CGROUP_BPF and BTF, 5.10 or later)", err)
	}
	f := &filter{own: own, progs: map[ebpf.AttachType]*ebpf.Program{}}
	for _, p := range programs {
		prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
			Name: "gbatch_hostnet", Type: p.kind, AttachType: p.at, Instructions: p.code(own.FD()), License: "GPL",
		})
		if err != nil {
			f.close()
			return nil, fmt.Errorf("filter the node's network: load the program for %s: %w", p.at, firstLine(err))
		}
		f.progs[p.at] = prog
	}
	return f, nil
}

// firstLine is a verifier's error without its log.
func firstLine(err error) error {
	var v *ebpf.VerifierError
	if errors.As(err, &v) && os.Getenv("GBATCH_VERIFIER_LOG") == "" {
		return v.Cause
	}
	return err
}

func (f *filter) close() {
	for _, p := range f.progs {
		p.Close()
	}
	f.own.Close()
}
