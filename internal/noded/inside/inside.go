// Package inside lays out the program that gnoded mounts into the containers of
// jobs that start tasks by srun: one static file, which is srun and what belongs
// to it by the name that it is called by. In every container the same file is what
// clients reach into it by: see internal/launch/tool. What the program does is in
// internal/launch; gnoded never executes it itself, outside of containers.
package inside

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"gbatch/oci/atomicfile"
)

// program is the file, or empty in a gnoded that was built without it.
var program []byte

// Rank is the file's name, by which it is what runs in a rank that waits for
// tasks. Links have the other names that it is called by.
const Rank = "gbatch-rank"

var links = []string{"srun", "scontrol", "sattach", "sbcast"}

// laying is held by who lays the program out: ranks may find at once that it is gone.
var laying sync.Mutex

// Keep lays out anew what somebody has removed of a directory that Lay made.
func Keep(own string) error {
	for _, name := range append([]string{Rank}, links...) {
		if _, err := os.Stat(filepath.Join(own, name)); err != nil {
			_, err := Lay(filepath.Dir(own))
			return err
		}
	}
	return nil
}

// Lay makes the program's directory below dir, and removes those of other
// versions: containers that have them mounted keep them. Empty: there is none.
func Lay(dir string) (string, error) {
	laying.Lock()
	defer laying.Unlock()
	if len(program) == 0 {
		return "", nil
	}
	sum := sha256.Sum256(program)
	own := filepath.Join(dir, hex.EncodeToString(sum[:8]))
	if err := os.MkdirAll(own, 0o755); err != nil {
		return "", err
	}
	if err := lay(own); err != nil {
		return "", err
	}
	others, err := os.ReadDir(dir)
	for _, e := range others {
		if e.Name() != filepath.Base(own) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return own, err
}

func lay(dir string) error {
	file := filepath.Join(dir, Rank)
	if have, err := os.ReadFile(file); err != nil || !bytes.Equal(have, program) {
		if err := atomicfile.Write(file, program); err != nil {
			return err
		}
	}
	if err := os.Chmod(file, 0o755); err != nil {
		return err
	}
	for _, name := range links {
		if err := os.Symlink(Rank, filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// Missing are the names of the program that an image has nothing by in the places
// where programs are looked for. Layers are the image's directories.
func Missing(layers []string) (names []string) {
	for _, name := range links {
		if !slices.ContainsFunc(layers, func(dir string) bool { return has(dir, name) }) {
			names = append(names, name)
		}
	}
	return names
}

func has(layer, name string) bool {
	root, err := os.OpenRoot(layer) // links of an image lead nowhere outside of it
	if err != nil {
		return false
	}
	defer root.Close()
	for _, dir := range []string{"usr/local/bin", "usr/bin", "bin"} {
		if _, err := root.Lstat(dir + "/" + name); err == nil {
			return true
		}
	}
	return false
}
