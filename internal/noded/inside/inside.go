// Package inside lays out the programs that gnoded mounts into the containers of
// jobs that start tasks by srun: a static file which is srun and what belongs
// to it by the name that it is called by, and another one which is sbatch and the like. In every container the first one is what
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

	"gbatch/internal/launch"
	"gbatch/oci/atomicfile"
)

// program and commands are the files, or empty in a gnoded that was built without them.
var program, commands []byte

// Rank is the file's name, by which it is what runs in a rank that waits for
// tasks. Links have the other names that it is called by.
const Rank = launch.RankProgram

// links are the names by which a file is called.
var links = map[string][]string{
	Rank:                   {"srun", "scontrol", "sattach", "sbcast"},
	launch.CommandsProgram: {"sbatch", "squeue", "scancel", "sinfo", "sacct", "salloc", "sacctmgr", "sdiag", "seff", "sprio", "sshare", "sstat"},
}

// usual are those that scripts call which set PATH anew, and where each is.
var usual = []Command{
	{"srun", Rank}, {"scontrol", Rank}, {"sattach", Rank}, {"sbcast", Rank},
	{"sbatch", launch.CommandsProgram}, {"squeue", launch.CommandsProgram}, {"scancel", launch.CommandsProgram},
}

// Command is a name and the file that it calls.
type Command struct{ Name, File string }

// laying is held by who lays the program out: ranks may find at once that it is gone.
var laying sync.Mutex

// Keep lays out anew what somebody has removed of a directory that Lay made.
func Keep(own string) error {
	for file, names := range links {
		for _, name := range append([]string{file}, names...) {
			if _, err := os.Stat(filepath.Join(own, name)); err != nil {
				_, err := Lay(filepath.Dir(own))
				return err
			}
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
	sum := sha256.Sum256(slices.Concat(program, commands))
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
	for file, text := range map[string][]byte{Rank: program, launch.CommandsProgram: commands} {
		if err := layFile(dir, file, text); err != nil {
			return err
		}
	}
	return nil
}

func layFile(dir, name string, text []byte) error {
	file := filepath.Join(dir, name)
	if have, err := os.ReadFile(file); err != nil || !bytes.Equal(have, text) {
		if err := atomicfile.Write(file, text); err != nil {
			return err
		}
	}
	if err := os.Chmod(file, 0o755); err != nil {
		return err
	}
	for _, link := range links[name] {
		if err := os.Symlink(name, filepath.Join(dir, link)); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// Missing are the commands that an image has nothing by the name of in the places
// where programs are looked for. Layers are the image's directories.
func Missing(layers []string) (list []Command) {
	for _, c := range usual {
		if !slices.ContainsFunc(layers, func(dir string) bool { return has(dir, c.Name) }) {
			list = append(list, c)
		}
	}
	return list
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
