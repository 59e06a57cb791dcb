package atomicfile

import (
	"fmt"
	"log/slog"
	"os"
)

// AsideSuffix follows the name of what Dir has moved away.
const AsideSuffix = ".damaged"

// Dir makes a directory of the caller's own, as os.MkdirAll does. A file in its place, as a disk that was
// repaired may leave, is moved aside and named in the log: it must not keep a daemon from starting. A link is
// left as it is, as it may lead to a disk that is not mounted yet.
func Dir(path string, mode os.FileMode, log *slog.Logger) error {
	err := os.MkdirAll(path, mode)
	if err == nil {
		return nil
	}
	st, serr := os.Lstat(path)
	if serr != nil || st.IsDir() || st.Mode()&os.ModeSymlink != 0 {
		return err
	}
	aside := path + AsideSuffix
	if err := os.RemoveAll(aside); err != nil {
		return fmt.Errorf("move away what is in the place of a directory: %w", err)
	}
	if err := os.Rename(path, aside); err != nil {
		return fmt.Errorf("move away what is in the place of a directory: %w", err)
	}
	log.Error("a file is in the place of a directory: it is moved aside, and the directory made anew", "directory", path, "moved_to", aside)
	return os.MkdirAll(path, mode)
}
