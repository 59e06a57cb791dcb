package fresh

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// TmpPath is what each program has of its own, unless something is mounted there.
const TmpPath = "/tmp"

// OpenAll takes hold of what each program in a container finds empty, and of its devices; nil: it has none of
// its own. Its first process is pid. Tmp is where its /tmp lies on the host, if it has one there; root owns it.
func OpenAll(pid int, mounts []specs.Mount, tmp string, root *Owner) (dirs []*Dir, dev *Fixed, err error) {
	for _, m := range mounts {
		var dir *Dir
		switch {
		case m.Type == "tmpfs" && m.Destination == "/dev":
			if dev, err = OpenFixed(pid, m.Destination); err != nil {
				return dirs, dev, err
			}
			continue
		case m.Destination == TmpPath && m.Source == tmp:
			dir, err = Open(m.Source, root)
		case m.Type == "tmpfs":
			// What is mounted there cannot be moved from inside, and no link of the image
			// leads elsewhere: it is looked up in the container.
			dir, err = OpenIn(pid, m.Destination, root)
		case m.Type == "mqueue":
			dir, err = OpenIn(pid, m.Destination, nil)
		default:
			continue
		}
		if err != nil {
			return dirs, dev, err
		}
		dirs = append(dirs, dir)
	}
	return dirs, dev, nil
}

// TmpMounted says whether something is mounted on /tmp, and below it.
func TmpMounted(mounts []specs.Mount) (on, below bool) {
	for _, m := range mounts {
		on = on || m.Destination == TmpPath
		below = below || strings.HasPrefix(m.Destination, TmpPath+"/")
	}
	return on, below
}

// MakeTmp makes a directory of the host that is to be a container's /tmp.
func MakeTmp(dir string, uid, gid int) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("make /tmp: %w", err)
	}
	return errors.Join(os.Chown(dir, uid, gid), os.Chmod(dir, Mode))
}
