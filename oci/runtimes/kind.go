package runtimes

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Kind is a program that this package knows to speak to, as it names itself.
type Kind string

// The kinds. Crun is none of them: where v1 and v2 of the control groups are
// mounted together it makes no container.
const (
	Runc  Kind = "runc"
	Runsc Kind = "runsc"
)

// Kinds are all of them.
var Kinds = []Kind{Runc, Runsc}

// Sandboxed says that a container's processes are not processes of the node: it
// sees the sandbox only.
func (k Kind) Sandboxed() bool { return k == Runsc }

// Runtime is one such program.
type Runtime struct {
	Kind Kind     `json:"kind"`
	Path string   `json:"path"`
	Args []string `json:"args,omitempty"` // for the program, before each command
}

// flags go before each command, behind Args, as they must hold.
func (r Runtime) flags() []string {
	if r.Kind != Runsc {
		return nil
	}
	return []string{
		// Sockets are those of the container's network namespace: mapped ports,
		// names and the networks of gangs work there as for all containers.
		"--network=host",
		// What is written over the image lies where its size is bounded, and is
		// there when the container has ended.
		"--overlay2=none", "--file-access=shared",
	}
}

// versionTimeout is for a program on a disk that is slow.
const versionTimeout = 10 * time.Second

// Find asks a program what it is.
func Find(path string, args []string) (Runtime, error) {
	if !filepath.IsAbs(path) {
		return Runtime{}, fmt.Errorf("%q: write the whole path", path)
	}
	ctx, cancel := context.WithTimeout(context.Background(), versionTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Env = environment
	out, err := cmd.Output()
	if err != nil {
		return Runtime{}, fmt.Errorf("ask %s for its version: %w", path, errors.Join(err, ctx.Err()))
	}
	name, _, _ := strings.Cut(string(out), " ")
	if !slices.Contains(Kinds, Kind(name)) {
		return Runtime{}, fmt.Errorf("%s is neither runc nor runsc: its version begins with %.40q", path, name)
	}
	return Runtime{Kind: Kind(name), Path: path, Args: args}, nil
}
