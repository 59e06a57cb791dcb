package record

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"gbatch/oci/atomicfile"
)

// Files in a rank's directory that have a number each.
const (
	FileSignalled = "signalled"    // of the last signal that was sent
	FileKilled    = "steps-killed" // how many processes of its steps the memory limit has ended
)

// SetNumber writes one.
func SetNumber(dir, file string, n uint64) error {
	return atomicfile.Write(filepath.Join(dir, file), atomicfile.Sum(strconv.AppendUint(nil, n, 10)))
}

// Number reads what SetNumber wrote; 0 if nothing.
func Number(dir, file string) (uint64, error) {
	b, err := atomicfile.Read(filepath.Join(dir, file))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	n := uint64(0)
	if err == nil {
		n, err = strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
	}
	if err != nil {
		return 0, fmt.Errorf("read what was noted of a rank: %w", err)
	}
	return n, nil
}
