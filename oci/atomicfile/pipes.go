package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Pipes finds what in a directory is in the place of a file and none: named pipes and devices. Whoever opens a pipe to read it
// waits for ever. Links count as what they lead to. Without the directory there are none.
func Pipes(dir string) (paths []string, err error) {
	list, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range list {
		path := filepath.Join(dir, e.Name())
		if st, err := os.Stat(path); err == nil && st.Mode()&(fs.ModeNamedPipe|fs.ModeDevice) != 0 {
			paths = append(paths, path)
		}
	}
	return paths, err
}
