// Package annex is what there is to know of a container that is begun in the limits of
// another one, while that runs, in an image of its own: what is asked for, the runtime spec
// that follows from the other one's, its mounts of what the other one sees, how it begins and
// what is left of it. It owns the directories of what such containers write.
package annex

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"

	"gbatch/oci/draft"
)

// Request asks for one.
type Request struct {
	// Name is for one whose writes are kept until the other container ends: a later one of
	// the same name, which has the same layers, finds them.
	Name   string   `json:"name,omitempty"`
	Layers []string `json:"layers"` // of its image, lowest first

	Args     []string `json:"args"`
	Env      []string `json:"env,omitempty"` // over the other container's
	WorkDir  string   `json:"workdir,omitempty"`
	ReadOnly bool     `json:"read_only,omitempty"` // its root file system

	// Mounts are in place of those of the other container's that show something below
	// Without.
	Without string        `json:"without,omitempty"`
	Mounts  []specs.Mount `json:"mounts,omitempty"`
	Inside  []Bind        `json:"inside,omitempty"`
}

// Bind shows what the other container's user sees there, by its own rights.
type Bind struct {
	Source   string `json:"source"`
	Target   string `json:"target"`
	ReadOnly bool   `json:"read_only,omitempty"`
}

// Bounds of one request.
const (
	MaxBinds = 64
	maxName  = 64
	maxPath  = 4000
)

// Check says what is wrong with a request.
func (q *Request) Check() error {
	var errs []error
	if len(q.Layers) == 0 || len(q.Args) == 0 {
		errs = append(errs, errors.New("a container needs an image and a program"))
	}
	if q.Name != "" {
		errs = append(errs, CheckName(q.Name))
	}
	if len(q.Inside) > MaxBinds {
		errs = append(errs, fmt.Errorf("%d mounts are more than %d", len(q.Inside), MaxBinds))
	}
	seen := map[string]bool{}
	for _, b := range q.Inside {
		if !path.IsAbs(b.Source) || len(b.Source) > maxPath || len(b.Target) > maxPath {
			errs = append(errs, fmt.Errorf("mount source %q must be absolute, and no longer than %d bytes", b.Source, maxPath))
		}
		errs = append(errs, draft.CheckTarget(b.Target))
		if at := path.Clean(b.Target); seen[at] {
			errs = append(errs, fmt.Errorf("two mounts on %s", at))
		}
		seen[path.Clean(b.Target)] = true
	}
	return errors.Join(errs...)
}

// CheckName refuses what cannot be part of the name of a file.
func CheckName(name string) error {
	other := func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("_.-", c)
	}
	if len(name) == 0 || len(name) > maxName || strings.ContainsFunc(name, other) {
		return fmt.Errorf("%q is no name of a container: want 1 to %d letters, digits, '_', '.' and '-'", name, maxName)
	}
	return nil
}

// Spec is the spec that follows from the other container's, of which nothing is changed.
// Places are where what is to be shown of Inside has been mounted. Its control group is the
// other one's, with the same devices: limits are not set anew.
func (q *Request) Spec(of *specs.Spec, places []string) (*specs.Spec, error) {
	env, err := draft.MergeEnv(of.Process.Env, q.Env)
	if err != nil {
		return nil, err
	}
	spec, linux, process, root := *of, *of.Linux, *of.Process, *of.Root
	process.Args, process.Env, process.Cwd, process.Terminal, process.ConsoleSize = q.Args, env, q.WorkDir, false, nil
	root.Readonly = q.ReadOnly
	own := &specs.LinuxResources{}
	if r := of.Linux.Resources; r != nil {
		own.Devices = r.Devices
	}
	linux.Resources = own
	spec.Process, spec.Linux, spec.Root, spec.Mounts = &process, &linux, &root, q.mounts(of.Mounts, places)
	return &spec, nil
}

// mounts are those of the other container and the request's own, which win.
func (q *Request) mounts(of []specs.Mount, places []string) []specs.Mount {
	own := slices.Clone(q.Mounts)
	for i, b := range q.Inside {
		own = append(own, draft.Bind(draft.Mount{Source: places[i], Target: path.Clean(b.Target), ReadOnly: b.ReadOnly}))
	}
	var list []specs.Mount
	for _, m := range of {
		hidden := slices.ContainsFunc(own, func(o specs.Mount) bool { return o.Destination == m.Destination })
		if !hidden && !(q.Without != "" && strings.HasPrefix(m.Source, q.Without+"/")) {
			list = append(list, m)
		}
	}
	list = append(list, own...)
	slices.SortStableFunc(list, func(a, b specs.Mount) int { return depth(a) - depth(b) }) // parents first
	return list
}

func depth(m specs.Mount) int { return strings.Count(m.Destination, "/") }
