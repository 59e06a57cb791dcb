package preflight

import (
	"fmt"

	"golang.org/x/sys/unix"

	"gbatch/internal/noded/config"
)

// DiskReason says what is wrong with the file system of one of our directories.
func DiskReason(dir string, minFree int64) string {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fmt.Sprintf("directory %s cannot be read: %v", dir, err)
	}
	if st.Flags&unix.ST_RDONLY != 0 {
		return fmt.Sprintf("directory %s is on a read-only file system", dir)
	}
	if free := int64(st.Bavail) * st.Bsize; free < minFree {
		return fmt.Sprintf("disk full: %s left below %s, at least %s must be free", config.FormatBytes(free), dir, config.FormatBytes(minFree))
	}
	if st.Files > 0 && st.Ffree < minInodes {
		return fmt.Sprintf("disk full: %d inodes left below %s", st.Ffree, dir)
	}
	return ""
}

// minInodes is what unpacking a usual image and a few containers may need.
const minInodes = 10_000
