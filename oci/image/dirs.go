package image

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"gbatch/oci/image/unpack"

	"golang.org/x/sys/unix"
)

// Layers may hold tmp/x without holding tmp. Unpacked alone, tmp is made with
// default attributes, and as overlay shows a directory with those of the
// highest layer that has it, everybody's /tmp would turn into root's. Layers
// are shared between images with different lower layers, so the directory in
// the layer cannot be corrected. Instead a layer of directories only, with the
// attributes that the lower layers give them, is put above it.

// withDirs returns the layer directories of an image, lowest first, with such
// layers put in where they make a difference.
func (s *Store) withDirs(layers []layer) ([]string, error) {
	stack := make([]stacked, len(layers))
	for i, l := range layers {
		info, _ := s.layerIntact(l.diffID.Hex)
		stack[i] = stacked{fs: s.layout.Files(l.diffID.Hex), implicit: info.Implicit}
	}
	var ids []string
	chain := sha256.New()
	for k, l := range layers {
		ids = append(ids, l.diffID.Hex)
		io.WriteString(chain, l.diffID.Hex)
		fixes := missingDirs(stack[:k+1])
		if len(fixes) == 0 {
			continue
		}
		id := hex.EncodeToString(chain.Sum(nil)) + "-dirs"
		ids = append(ids, id)
		if err := s.makeDirs(id, stack[:k+1], fixes); err != nil {
			return nil, err
		}
	}
	if len(ids) > maxLayers {
		return nil, fail(Unsupported, "needs %d layers where %d can be mounted; build it with fewer steps or squash it", len(ids), maxLayers)
	}
	return ids, nil
}

// stacked is one layer of those below and including the one that is looked at.
type stacked struct {
	fs       string
	implicit []string
}

// missingDirs returns the directories which the top layer only implies and
// which lower layers describe otherwise than by default.
func missingDirs(stack []stacked) []string {
	var fixes []string
	top := stack[len(stack)-1]
	for _, dir := range top.implicit {
		from, ok := describer(stack, dir)
		if ok && from != filepath.Join(top.fs, dir) && !unpack.SameAttributes(from, filepath.Join(top.fs, dir)) {
			fixes = append(fixes, dir)
		}
	}
	return fixes
}

// describer returns the directory that gives dir its attributes in the merged
// view of the stack: the highest that a layer describes, else the highest at
// all. It is false if dir is no directory there.
func describer(stack []stacked, dir string) (string, bool) {
	first := ""
	for k := len(stack) - 1; k >= 0; k-- {
		found, hides := lookDir(stack[k].fs, dir)
		if found {
			at := filepath.Join(stack[k].fs, dir)
			if first == "" {
				first = at
			}
			if _, implied := slices.BinarySearch(stack[k].implicit, dir); !implied {
				return at, true
			}
		}
		if hides {
			break
		}
	}
	return first, first != ""
}

// lookDir looks for a directory in one layer, following no links. hides is
// true if lower layers cannot show through.
func lookDir(root, dir string) (found, hides bool) {
	at := root
	for part := range strings.SplitSeq(strings.TrimPrefix(dir, "/"), "/") {
		at = filepath.Join(at, part)
		info, err := os.Lstat(at)
		if err != nil {
			return false, hides
		}
		if !info.IsDir() {
			return false, true
		}
		var value [1]byte
		if n, err := unix.Lgetxattr(at, unpack.OpaqueXattr, value[:]); err == nil && n == 1 && value[0] == 'y' {
			hides = true
		}
	}
	return true, hides
}

// makeDirs makes a layer of directories with the attributes of the merged view.
func (s *Store) makeDirs(id string, stack []stacked, dirs []string) error {
	if _, ok := s.layerIntact(id); ok {
		return nil
	}
	tmp, err := os.MkdirTemp(s.layout.Tmp, "dirs-")
	if err != nil {
		return classifyLocal(err)
	}
	defer os.RemoveAll(tmp)
	root := filepath.Join(tmp, "fs")
	if err := makeDir(root, 0o755); err != nil {
		return classifyLocal(err)
	}
	for _, dir := range withParents(dirs) {
		from, ok := describer(stack, dir)
		if !ok {
			continue
		}
		if err := os.Mkdir(filepath.Join(root, dir), 0o755); err != nil {
			return classifyLocal(err)
		}
		if err := unpack.CopyAttributes(from, filepath.Join(root, dir)); err != nil {
			return classifyLocal(err)
		}
	}
	return s.addLayer(id, tmp, unpacked{})
}

// withParents adds all directories above, and sorts, parents first.
func withParents(dirs []string) []string {
	var all []string
	for _, dir := range dirs {
		for ; dir != "/"; dir = path.Dir(dir) {
			all = append(all, dir)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
