// Package layout says where in its directory an image store has what: layers,
// blobs, records of images and holds, and what is being made or removed. It knows
// names only; what lies there is the store's.
package layout

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"gbatch/oci/rmtree"
)

// Layout is the directories of one store.
type Layout struct {
	Layers  string // a directory for each layer, by its name
	Blobs   string // configurations and manifests, by their digests
	Images  string // a record for each image
	Holds   string // a record for each hold
	Tmp     string // what is being made, and what was discarded
	Workers string // where processes work that unpack
}

// New is the layout of a store in dir.
func New(dir string) Layout {
	in := func(name string) string { return filepath.Join(dir, name) }
	return Layout{Layers: in("layers"), Blobs: in("blobs"), Images: in("images"), Holds: in("holds"), Tmp: in("tmp"), Workers: in("workers")}
}

// Make makes the directories that are missing, and empties those of work that was
// under way when an earlier process ended.
func (l Layout) Make() error {
	if err := errors.Join(os.RemoveAll(l.Tmp), os.RemoveAll(l.Workers)); err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	return l.Complete()
}

// Complete makes the directories that are missing, as when somebody has removed them since.
func (l Layout) Complete() error {
	for _, dir := range []string{l.Layers, l.Blobs, l.Images, l.Holds, l.Tmp, l.Workers} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	return nil
}

// Layer is the directory of a layer.
func (l Layout) Layer(id string) string { return filepath.Join(l.Layers, id) }

// Files is where the files of a layer lie, as a container mounts them.
func (l Layout) Files(id string) string { return filepath.Join(l.Layers, id, "fs") }

// MarkerName is the file beside fs/ that makes a directory a layer.
const MarkerName = "layer.json"

// Marker is the marker of a layer.
func (l Layout) Marker(id string) string { return filepath.Join(l.Layers, id, MarkerName) }

// Record is the record of an image.
func (l Layout) Record(digest string) string {
	return filepath.Join(l.Images, strings.TrimPrefix(digest, "sha256:")+".json")
}

// Blob is the file of a blob, by its digest in hexadecimal.
func (l Layout) Blob(hex string) string { return filepath.Join(l.Blobs, hex) }

// Hold is the record of a hold. It hashes the id, which may hold any character and
// be long.
func (l Layout) Hold(id string) string {
	sum := sha256.Sum256([]byte(id))
	return filepath.Join(l.Holds, hex.EncodeToString(sum[:16])+".json")
}

// Discard takes a file or directory out of the store at once; Sweep removes it
// for good. What does not exist is no error.
func (l Layout) Discard(name string) error {
	grave, err := os.MkdirTemp(l.Tmp, "gone-")
	if err != nil {
		return err
	}
	err = os.Rename(name, filepath.Join(grave, "x"))
	if errors.Is(err, os.ErrNotExist) {
		return os.Remove(grave)
	}
	return err
}

// Sweep removes what was discarded.
func (l Layout) Sweep() error {
	gone, err := filepath.Glob(filepath.Join(l.Tmp, "gone-*"))
	for _, dir := range gone {
		err = errors.Join(err, rmtree.Remove(dir))
	}
	return err
}
