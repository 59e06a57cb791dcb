// Package draft makes a container's OCI runtime spec out of an image's configuration and
// what is asked for. It is pure but for the list of capabilities that this process may
// give, and what the shim completes for the running kernel.
package draft

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"

	"gbatch/cgroups"
	"gbatch/oci/userns"
)

// Image is the part of an image's configuration that a container's start
// depends on.
type Image struct {
	Env        []string
	Entrypoint []string
	Cmd        []string
	WorkDir    string
	User       string
}

// Request says what to run, over an image's defaults, and within what.
type Request struct {
	Image Image

	// Entrypoint replaces the image's; the image's Cmd is then not used either.
	Entrypoint []string
	// Command replaces the image's Cmd and keeps the entrypoint.
	Command []string
	// Env are NAME=value pairs; they win over the image, later ones over earlier.
	Env []string
	// SecretEnv are further pairs that are checked with the others and not
	// written into the spec: hand them over with the shim apart.
	SecretEnv []string
	// WorkDir and User replace the image's when they are set. User is a name
	// or number, or either of them ":" a group's; the image resolves names.
	WorkDir string
	User    string
	// Groups are further groups, by name or number.
	Groups []string

	// Terminal makes standard input, output and errors a terminal, of which
	// the shim's is the user's side. The log keeps what is written to it.
	Terminal bool

	Hostname     string
	Mounts       []Mount
	Tmpfs        []Tmpfs
	ShmBytes     int64 // size of /dev/shm; 0 is defaultShmBytes
	Devices      []specs.LinuxDevice
	ReadOnlyRoot bool
	Network      Network

	// CgroupPath is absolute, such as "/gbatch/node1/7.0".
	CgroupPath string
	Limits     cgroups.Limits
	Rlimits    []specs.POSIXRlimit

	// IDs are who the container's users are on the host. The zero value leaves
	// them as they are: root there is root on the host, with fewer rights. Else
	// hand a user namespace with this map over, which the network's belongs to.
	IDs userns.Map
	// Capabilities are given to root beside the usual few, as "CAP_MKNOD".
	Capabilities []string
	// Seccomp chooses the system call filter.
	Seccomp SeccompMode
	// AppArmor is a profile that the kernel has; empty: none.
	AppArmor string
	// Privileged gives all capabilities and devices, no system call filter, and
	// the kernel's files as the host has them: root there is root on the host.
	// It has no IDs and no AppArmor profile.
	Privileged bool
}

// Network says which network the container is in. The zero value is a new one
// with nothing but a loopback interface.
type Network struct {
	Host bool   // the host's
	Path string // an existing namespace, such as "/run/gbatch/net/7.0"
}

// defaultShmBytes is the size of /dev/shm when none is asked for.
const defaultShmBytes = 64 << 20

// groupsAnnotation carries Request.Groups to the shim: runtime-spec has
// only numbers for groups, and names are resolved inside the mounted image.
const groupsAnnotation = "gbatch.groups"

// Groups are those of the request that a spec was built of.
func Groups(spec *specs.Spec) []string {
	if list := spec.Annotations[groupsAnnotation]; list != "" {
		return strings.Split(list, ",")
	}
	return nil
}

// Build returns the runtime spec of a request, or all that is wrong with
// it. It is pure. The spec's root is the directory "rootfs" beside the file
// that Prepare writes. Further edits, such as a GPU's CDI devices, may be made
// to the spec before that.
//
// Two things stay for the shim, as they depend on what it finds: the user, in
// Process.User.Username, is resolved in the mounted image, and loses all
// capabilities unless it is root; the system call filter is made for the
// running kernel, unless an edit has set Linux.Seccomp.
func Build(r Request) (*specs.Spec, error) {
	args, argsErr := argv(r)
	env, envErr := MergeEnv(terminalEnv(r.Terminal), r.Image.Env, r.Env)
	mounts, mountErr := specMounts(r)
	if err := errors.Join(argsErr, envErr, mountErr, checkLength(args, slices.Concat(env, r.SecretEnv)), checkRequest(r)); err != nil {
		return nil, err
	}
	caps := append(boundingCaps(r.Network), r.Capabilities...)
	masked, readonly := maskedPaths, readonlyPaths
	if r.Privileged {
		caps, masked, readonly, r.Seccomp, r.AppArmor = hostCaps(), nil, nil, SeccompOff, ""
	}
	spec := &specs.Spec{
		Version:  specs.Version,
		Root:     &specs.Root{Path: "rootfs", Readonly: r.ReadOnlyRoot},
		Hostname: r.Hostname,
		Mounts:   mounts,
		Process: &specs.Process{
			Terminal:     r.Terminal,
			Args:         args,
			Env:          env,
			Cwd:          workDir(r),
			User:         specs.User{Username: cmp.Or(r.User, r.Image.User, "0"), Umask: new(uint32(0o022))},
			Capabilities: rootCaps(caps),

			ApparmorProfile: r.AppArmor,
			// No program of the image has more rights than who executes it.
			NoNewPrivileges: !r.Privileged,
			Rlimits:         r.Rlimits,
			// Above the daemons, so that a host without memory ends jobs first.
			OOMScoreAdj: new(500),
		},
		Linux: &specs.Linux{
			CgroupsPath:   r.CgroupPath,
			Namespaces:    namespaces(r),
			UIDMappings:   r.IDs.UIDs,
			GIDMappings:   r.IDs.GIDs,
			Resources:     resources(r),
			Devices:       r.Devices,
			MaskedPaths:   masked,
			ReadonlyPaths: readonly,
			Sysctl:        sysctls(r),
		},
	}
	spec.Annotations = map[string]string{seccompAnnotation: r.Seccomp.String()}
	if len(r.Groups) > 0 {
		spec.Annotations[groupsAnnotation] = strings.Join(r.Groups, ",")
	}
	return spec, nil
}

// terminalEnv tells programs of the terminal what kind it is, where neither
// image nor job does.
func terminalEnv(terminal bool) []string {
	if !terminal {
		return nil
	}
	return []string{"TERM=xterm"}
}

// argv follows docker: the entrypoint is kept unless replaced, the command is
// replaced unless kept, and a replaced entrypoint drops the image's command.
func argv(r Request) ([]string, error) {
	entry, cmd := r.Image.Entrypoint, r.Image.Cmd
	if len(r.Entrypoint) > 0 {
		entry, cmd = r.Entrypoint, nil
	}
	if len(r.Command) > 0 {
		cmd = r.Command
	}
	args := append(append([]string{}, entry...), cmd...)
	if len(args) == 0 || args[0] == "" {
		return nil, errors.New("nothing to run: the image has no command; give the job one")
	}
	for _, a := range args {
		if strings.ContainsRune(a, 0) {
			return nil, fmt.Errorf("command argument %q has a NUL character", a)
		}
	}
	return args, nil
}

// What the kernel takes at execve: one string has to fit 32 pages, and all of
// them together a quarter of the usual stack, less room for pointers.
const (
	maxArg     = 128<<10 - 1
	maxArgsEnv = 2<<20 - 256<<10
)

// checkLength refuses what the kernel would refuse when it is too late to say
// it in a sentence.
func checkLength(args, env []string) error {
	total := 0
	for i, a := range args {
		if len(a) > maxArg {
			return fmt.Errorf("argument %d of the command is %d bytes long, the kernel takes %d: put it into a file", i, len(a), maxArg)
		}
		total += len(a) + 9
	}
	for _, kv := range env {
		if name, _, _ := strings.Cut(kv, "="); len(kv) > maxArg {
			return fmt.Errorf("environment variable %s is %d bytes long, the kernel takes %d: put it into a file", name, len(kv), maxArg)
		}
		total += len(kv) + 9
	}
	if total > maxArgsEnv {
		return fmt.Errorf("command and environment are %d bytes together, the kernel takes about %d: put some into files", total, maxArgsEnv)
	}
	return nil
}

// DefaultPath is the variable PATH where nobody sets it.
const DefaultPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// MergeEnv keeps one entry per name, at the place of its first mention; PATH is the first.
func MergeEnv(lists ...[]string) ([]string, error) {
	out := []string{DefaultPath}
	at := map[string]int{"PATH": 0}
	var errs []error
	for _, list := range lists {
		for _, kv := range list {
			name, _, ok := strings.Cut(kv, "=")
			if !ok || name == "" || strings.ContainsRune(kv, 0) {
				errs = append(errs, fmt.Errorf("environment entry %q is not NAME=value", name))
				continue
			}
			if i, seen := at[name]; seen {
				out[i] = kv
				continue
			}
			at[name] = len(out)
			out = append(out, kv)
		}
	}
	return out, errors.Join(errs...)
}

func checkRequest(r Request) error {
	var errs []error
	if r.CgroupPath == "" || r.CgroupPath == "/" || !path.IsAbs(r.CgroupPath) || path.Clean(r.CgroupPath) != r.CgroupPath {
		errs = append(errs, fmt.Errorf("cgroup path %q must be absolute, clean and below the root", r.CgroupPath))
	}
	if r.Network.Host && r.Network.Path != "" {
		errs = append(errs, errors.New("network is both the host's and a namespace"))
	}
	if r.Privileged && !r.IDs.IsZero() {
		errs = append(errs, errors.New("a privileged container has the host's ids"))
	}
	if wd := workDir(r); !path.IsAbs(wd) {
		errs = append(errs, fmt.Errorf("working directory %q must be absolute", wd))
	}
	if len(r.Hostname) > 63 {
		errs = append(errs, fmt.Errorf("host name %q is longer than 63 characters", r.Hostname))
	}
	for _, g := range r.Groups {
		if g == "" || strings.ContainsAny(g, ",\x00") {
			errs = append(errs, fmt.Errorf("group %q is not a group name or number", g))
		}
	}
	return errors.Join(append(errs, r.Limits.Validate())...)
}

func workDir(r Request) string { return cmp.Or(r.WorkDir, r.Image.WorkDir, "/") }

// ValidID says whether a container may be called so.
func ValidID(id string) bool {
	if id == "" || id == "." || id == ".." || len(id) > 128 {
		return false
	}
	for _, c := range []byte(id) {
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alnum && c != '_' && c != '+' && c != '-' && c != '.' {
			return false
		}
	}
	return true
}
