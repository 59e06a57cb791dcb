package stage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	securejoin "github.com/cyphar/filepath-securejoin"

	"gbatch/oci/failure"
)

// Below is a mount of what lies in a directory that programs of the container may have
// written to before. It is looked for when none of them lives.
type Below struct {
	Target string `json:"target"` // of a mount of the spec
	Top    string `json:"top"`    // on the host
	Path   string `json:"path"`   // no link of it leads out of Top
}

// Find says what is to be mounted. Where there is nothing a directory is made, of the
// container's root and for everybody to write to.
func (b Below) Find(uid, gid int) (string, error) {
	at, err := securejoin.SecureJoin(b.Top, b.Path)
	if err == nil {
		err = makeBelow(b.Top, at, uid, gid)
	}
	if err != nil {
		return "", &failure.Failure{Kind: failure.MountFailed, Message: fmt.Sprintf("cannot mount %s: its volume has something in the way of %s", b.Target, b.Path), Detail: err.Error()}
	}
	return at, nil
}

// makeBelow makes what lacks on the way from top to a resolved path.
func makeBelow(top, at string, uid, gid int) error {
	rest, err := filepath.Rel(top, at)
	if err != nil {
		return err
	}
	dir := top
	for name := range strings.SplitSeq(rest, "/") {
		dir = filepath.Join(dir, name)
		st, err := os.Lstat(dir)
		switch {
		case errors.Is(err, os.ErrNotExist):
			err = errors.Join(os.Mkdir(dir, 0o700), os.Lchown(dir, uid, gid), os.Chmod(dir, 0o777))
		case err == nil && st.Mode()&os.ModeSymlink != 0:
			err = errors.New("a link")
		}
		if err != nil {
			return err
		}
	}
	return nil
}
