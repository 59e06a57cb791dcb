package unpack

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// SameAttributes says whether two directories have the same owner and mode, and
// the first has no other attributes of the image.
func SameAttributes(a, b string) bool {
	var sa, sb unix.Stat_t
	if unix.Lstat(a, &sa) != nil || unix.Lstat(b, &sb) != nil {
		return false
	}
	return sa.Mode == sb.Mode && sa.Uid == sb.Uid && sa.Gid == sb.Gid && len(xattrs(a)) == 0
}

// CopyAttributes gives a directory the owner, mode, times and extended
// attributes of another, as far as they belong to the image.
func CopyAttributes(from, to string) error {
	var st unix.Stat_t
	if err := unix.Lstat(from, &st); err != nil {
		return err
	}
	if err := os.Lchown(to, int(st.Uid), int(st.Gid)); err != nil {
		return err
	}
	for name, value := range xattrs(from) {
		if err := unix.Lsetxattr(to, name, value, 0); err != nil {
			return err
		}
	}
	if err := unix.Chmod(to, st.Mode&0o7777); err != nil {
		return err
	}
	return unix.UtimesNanoAt(unix.AT_FDCWD, to, []unix.Timespec{st.Atim, st.Mtim}, unix.AT_SYMLINK_NOFOLLOW)
}

// xattrs returns the attributes that belong to the image. What cannot be read
// counts as absent.
func xattrs(name string) map[string][]byte {
	list := make([]byte, 64<<10)
	n, err := unix.Llistxattr(name, list)
	if err != nil {
		return nil
	}
	found := map[string][]byte{}
	for attr := range strings.SplitSeq(string(list[:n]), "\x00") {
		if !keepXattr(attr) {
			continue
		}
		value := make([]byte, 64<<10)
		if n, err := unix.Lgetxattr(name, attr, value); err == nil {
			found[attr] = value[:n]
		}
	}
	return found
}

// keepXattr drops what would steer the kernel: overlay's redirects, labels of
// this host's security modules, integrity signatures.
func keepXattr(name string) bool {
	return strings.HasPrefix(name, "user.") && !strings.HasPrefix(name, "user.overlay.") ||
		name == "security.capability" || strings.HasPrefix(name, "system.posix_acl_")
}
