// Package users finds out who the processes of a container run as: names are
// looked up in its image, which is not trusted.
package users

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	pathrs "github.com/cyphar/filepath-securejoin/pathrs-lite"
	"github.com/moby/sys/user"
	"github.com/opencontainers/runtime-spec/specs-go"

	"gbatch/oci/failure"
	"gbatch/oci/userns"
)

// User is who a container's processes run as.
type User struct {
	UID, GID uint32
	Groups   []uint32 // further groups
	Home     string
}

// maxUserFile bounds how much of an image's /etc/passwd or /etc/group is read.
const maxUserFile = 16 << 20

// maxGroups is how many groups the kernel lets a process be of (NGROUPS_MAX).
const maxGroups = 65536

// Resolve looks "user[:group]" and further groups up in the image that is
// mounted at rootfs. Names must be in the image; numbers need not. The image
// is not trusted: a symbolic link in it cannot lead out of it.
func Resolve(rootfs, spec string, groups []string) (User, error) {
	passwd, err := openInside(rootfs, "/etc/passwd")
	if err != nil {
		return User{}, err
	}
	defer passwd.Close()
	group, err := openInside(rootfs, "/etc/group")
	if err != nil {
		return User{}, err
	}
	defer group.Close()
	listed, err := io.ReadAll(io.LimitReader(group, maxUserFile))
	if err != nil {
		return User{}, fmt.Errorf("read the image's /etc/group: %w", err)
	}
	found, err := user.GetExecUser(spec, &user.ExecUser{Home: "/"}, io.LimitReader(passwd, maxUserFile), bytes.NewReader(listed))
	if err != nil {
		return User{}, &failure.Failure{Kind: failure.UserUnknown, Message: unknownUser(spec, err), Detail: err.Error()}
	}
	extra, err := extraGroups(listed, groups)
	if err != nil {
		return User{}, err
	}
	u := User{UID: uint32(found.Uid), GID: uint32(found.Gid), Home: found.Home}
	all := append(found.Sgids, extra...)
	for _, id := range append([]int{found.Uid, found.Gid}, all...) {
		if id < 0 || id >= math.MaxUint32 { // the image's files may say anything
			return User{}, &failure.Failure{Kind: failure.UserUnknown, Message: fmt.Sprintf("user %q has the number %d in the image, or is of a group of that number: it is out of range", spec, id)}
		}
	}
	known := make(map[int]bool) // an image may name a million
	for _, g := range all {
		if !known[g] {
			known[g] = true
			u.Groups = append(u.Groups, uint32(g))
		}
	}
	if len(u.Groups) > maxGroups {
		return User{}, &failure.Failure{Kind: failure.UserUnknown, Message: fmt.Sprintf("user %q is of %d groups in the image: a process can be of %d", spec, len(u.Groups), maxGroups)}
	}
	return u, nil
}

func extraGroups(listed []byte, groups []string) ([]int, error) {
	var out []int
	for _, g := range groups {
		ids, err := user.GetAdditionalGroups([]string{g}, bytes.NewReader(listed))
		if err != nil {
			return nil, &failure.Failure{Kind: failure.UserUnknown, Message: fmt.Sprintf("image has no group %q in /etc/group", g), Detail: err.Error()}
		}
		out = append(out, ids...)
	}
	return out, nil
}

// openInside opens a file of the image; one that is missing reads as empty,
// as small images have neither file.
func openInside(rootfs, name string) (io.ReadCloser, error) {
	f, err := pathrs.OpenInRoot(rootfs, name)
	if errors.Is(err, os.ErrNotExist) {
		return io.NopCloser(strings.NewReader("")), nil
	}
	if failure.IsImages(err) {
		return nil, &failure.Failure{Kind: failure.ImageUnusable, Message: fmt.Sprintf("the image's %s cannot be opened", name), Detail: err.Error()}
	}
	if err != nil {
		return nil, fmt.Errorf("open the image's %s: %w", name, err)
	}
	defer f.Close()
	// The handle above cannot block; opening a fifo or device for real could.
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, &failure.Failure{Kind: failure.ImageUnusable, Message: fmt.Sprintf("the image's %s is not a regular file", name)}
	}
	r, err := pathrs.Reopen(f, os.O_RDONLY)
	if err != nil {
		return nil, fmt.Errorf("open the image's %s: %w", name, err)
	}
	return r, nil
}

func unknownUser(spec string, err error) string {
	name, grp, _ := strings.Cut(spec, ":")
	if errors.Is(err, bufio.ErrTooLong) {
		return "a line of the image's /etc/passwd or /etc/group is too long"
	}
	if strings.Contains(err.Error(), "group") {
		return fmt.Sprintf("image has no group %q in /etc/group", grp)
	}
	if n, numErr := strconv.Atoi(name); numErr == nil {
		return fmt.Sprintf("user number %d is out of range", n)
	}
	return fmt.Sprintf("image has no user %q in /etc/passwd", name)
}

// Apply makes the spec's process run as u. Anyone but root loses every
// capability in effect and can gain none, not even by a setuid program.
func Apply(spec *specs.Spec, u User) {
	p := spec.Process
	p.User.Username = ""
	p.User.UID, p.User.GID, p.User.AdditionalGids = u.UID, u.GID, u.Groups
	hasHome := slices.ContainsFunc(p.Env, func(kv string) bool { return strings.HasPrefix(kv, "HOME=") })
	if !hasHome && u.Home != "" {
		p.Env = append(p.Env, "HOME="+u.Home)
	}
	if u.UID != 0 {
		p.NoNewPrivileges = true
		if p.Capabilities != nil {
			p.Capabilities = &specs.LinuxCapabilities{Bounding: p.Capabilities.Bounding}
		}
	}
}

// Check refuses ids that the container does not have.
func Check(ids userns.Map, u specs.User) error {
	for _, gid := range append([]uint32{u.GID}, u.AdditionalGids...) {
		if _, _, ok := ids.Host(u.UID, gid); !ok {
			return &failure.Failure{Kind: failure.UserUnknown, Message: fmt.Sprintf("user %d with group %d cannot be had: ids in a container go to %d", u.UID, gid, userns.RangeSize-1)}
		}
	}
	return nil
}
