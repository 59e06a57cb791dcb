package storage

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"gbatch/internal/job"
	"gbatch/internal/noded/config"
	"gbatch/internal/noded/reason"
	"gbatch/internal/noded/rights"
)

// Tenant is whose storage is meant.
type Tenant struct {
	User    string
	Project string
	GID     int // of the project; 0: it has none
	// UID and OwnGID are the user's. What is made for one user is the user's;
	// what is made for a project is root's and the project's, or the first
	// user's if the project has no group.
	UID, OwnGID int
	// Rights are the user's. With these all is done that a job can choose.
	Rights rights.Rights
}

// maker makes what a job names, as the user.
func (who Tenant) maker(mode uint32) maker {
	m := maker{uid: who.UID, gid: who.GID, mode: mode}
	if m.gid == 0 {
		m.gid = who.OwnGID
	}
	return m
}

// open opens what a job means by rest below a root.
func (who Tenant) open(root config.StorageRoot, rest string, create bool) (*os.File, error) {
	hostPath := path.Join(root.Name, rest)
	top, err := who.top(root.Path, uint32(root.Mode), root.Create)
	var bad *reason.Error
	switch {
	case errors.As(err, &bad):
		return nil, err
	case err != nil && root.Create && !errors.Is(err, errLink):
		return nil, reason.Errorf(job.Mount, "cannot make %s for storage %q on this node: %v", root.Name, hostPath, plain(err))
	case err != nil:
		return nil, explainOpen(hostPath, root, who, err)
	case rest == "":
		return top, nil
	}
	defer top.Close()
	below, err := RootOf(top, who.Rights)
	if err != nil {
		return nil, explainOpen(hostPath, root, who, err)
	}
	defer below.Close()
	var h *os.File
	err = who.Rights.Reach(below, rest, func() (err error) {
		h, err = who.maker(uint32(root.Mode)).resolve(top, rest, create)
		return err
	})
	if err != nil {
		return nil, explainOpen(hostPath, root, who, err)
	}
	return h, nil
}

// Roots resolves what jobs write in their storage entries to places on this
// machine.
type Roots struct {
	roots  []config.StorageRoot // longest name first
	sshDir string               // template; empty: no .ssh here
}

func New(c *config.Config) *Roots {
	s := &Roots{roots: slices.Clone(c.Storage), sshDir: c.SSHDir}
	slices.SortStableFunc(s.roots, func(a, b config.StorageRoot) int { return len(b.Name) - len(a.Name) })
	return s
}

// source is a place on the host, held open so that nobody can change what it
// means between the check and the mount.
type source struct {
	Handle   *os.File // O_PATH
	Dir      bool
	ReadOnly bool
}

func (s source) Close() { s.Handle.Close() }

// Open resolves one entry, making directories where the root allows it. The
// caller closes the result.
func (s *Roots) Open(entry job.Storage, who Tenant) (source, error) {
	if strings.TrimSuffix(entry.HostPath, "/") == ".ssh" {
		return s.openSSH(who)
	}
	root, rest, err := s.find(entry.HostPath)
	if err != nil {
		return source{}, err
	}
	h, err := who.open(root, rest, root.Create)
	if err != nil {
		return source{}, err
	}
	return newSource(h, entry.HostPath, root.ReadOnly)
}

func newSource(h *os.File, name string, readOnly bool) (source, error) {
	st, err := h.Stat()
	if err != nil {
		h.Close()
		return source{}, fmt.Errorf("look at storage: %w", err)
	}
	if !st.IsDir() && !st.Mode().IsRegular() {
		h.Close()
		return source{}, reason.Errorf(job.Mount, "storage %q is neither a directory nor a plain file", name)
	}
	return source{Handle: h, Dir: st.IsDir(), ReadOnly: readOnly}, nil
}

// openSSH gives each user of each project a directory of their own for keys.
func (s *Roots) openSSH(who Tenant) (source, error) {
	if s.sshDir == "" {
		return source{}, reason.Errorf(job.Mount, "storage \".ssh\" is not offered by this node; its storage is: %s", s.known())
	}
	h, err := who.top(s.sshDir, 0o700, true)
	if err != nil {
		return source{}, reason.Errorf(job.Mount, "cannot make the .ssh directory on this node: %v", plain(err))
	}
	if err := who.maker(0o700).takeOver(h); err != nil {
		h.Close()
		return source{}, reason.Errorf(job.Mount, "cannot give the .ssh directory on this node to its user: %v", plain(err))
	}
	return newSource(h, ".ssh", false)
}

// find splits a hostPath into its root and the rest below it.
func (s *Roots) find(hostPath string) (config.StorageRoot, string, error) {
	for part := range strings.SplitSeq(hostPath, "/") {
		if part == ".." {
			return config.StorageRoot{}, "", reason.Errorf(job.Mount, "storage %q must not contain \"..\"", hostPath)
		}
	}
	clean := path.Clean("/" + hostPath)
	for _, r := range s.roots {
		if clean == r.Name {
			return r, "", nil
		}
		if rest, ok := strings.CutPrefix(clean, r.Name+"/"); ok {
			return r, rest, nil
		}
	}
	return config.StorageRoot{}, "", reason.Errorf(job.Mount, "storage %q is not offered by this node; its storage is: %s", hostPath, s.known())
}

// known lists what a job may write, for error texts.
func (s *Roots) known() string {
	names := []string{}
	for _, r := range s.roots {
		names = append(names, r.Name)
	}
	if s.sshDir != "" {
		names = append(names, ".ssh")
	}
	slices.Sort(names)
	return strings.Join(append(names, "tmpfs"), ", ")
}

// expand fills in one element of a path template, which it stays.
func expand(template string, who Tenant) (string, error) {
	for _, name := range []struct{ key, value string }{{"{project}", who.Project}, {"{user}", who.User}} {
		if !strings.Contains(template, name.key) {
			continue
		}
		v := name.value
		if v == "" || v == "." || v == ".." || strings.ContainsAny(v, "/\x00") {
			return "", reason.Errorf(job.Mount, "%s %q cannot name a storage directory", strings.Trim(name.key, "{}"), v)
		}
		template = strings.ReplaceAll(template, name.key, v)
	}
	return template, nil
}

func explainOpen(hostPath string, root config.StorageRoot, who Tenant, err error) error {
	switch {
	case errors.Is(err, errLink):
		return reason.Errorf(job.Mount, "storage %q: %v", hostPath, err)
	case errors.Is(err, os.ErrPermission):
		return reason.Errorf(job.Mount, "storage %q may not be reached or made by user %s on this node", hostPath, who.User)
	case errors.Is(err, unix.ENOENT) && root.Create:
		return reason.Errorf(job.Mount, "storage %q does not exist on this node: a link in it points to nothing", hostPath)
	case errors.Is(err, unix.ENOENT):
		return reason.Errorf(job.Mount, "storage %q does not exist on this node; make it first or correct the path", hostPath)
	case errors.Is(err, unix.EXDEV):
		return reason.Errorf(job.Mount, "storage %q leads out of %s through a symbolic link", hostPath, root.Name)
	case errors.Is(err, unix.ENOTDIR):
		return reason.Errorf(job.Mount, "storage %q goes through something that is not a directory", hostPath)
	case errors.Is(err, unix.ELOOP):
		return reason.Errorf(job.Mount, "storage %q has too many symbolic links", hostPath)
	}
	return reason.Errorf(job.Mount, "cannot open storage %q: %v", hostPath, plain(err))
}

// plain is what the kernel says: host paths are not the user's business.
func plain(err error) error {
	if errno, ok := errors.AsType[unix.Errno](err); ok {
		return errno
	}
	return errors.New("the node's administrator can find out why")
}
