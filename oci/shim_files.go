package oci

import (
	"fmt"
	"os"

	"gbatch/oci/rootfs"
)

// File is a small file that a container finds in place of its image's, and may
// change: it is one of those that it writes itself.
type File struct {
	Path    string `json:"path"` // absolute
	Text    string `json:"text"`
	Program bool   `json:"program,omitempty"` // everybody may run it
}

// furnish makes the directories and files that a container finds beside its
// image's. They belong to its root.
func furnish(at string, cfg *ShimConfig, uid, gid int) error {
	if len(cfg.MakeDirs) == 0 && len(cfg.Files) == 0 {
		return nil
	}
	top, err := os.Open(at)
	if err != nil {
		return err
	}
	defer top.Close()
	root := rootfs.Root{Top: top, UID: uid, GID: gid}
	for _, d := range cfg.MakeDirs {
		if err := root.Dir(d); err != nil {
			return inTheWay("directory", d, err)
		}
	}
	for _, f := range cfg.Files {
		if err := root.File(f.Path, f.Text, f.mode()); err != nil {
			return inTheWay("file", f.Path, err)
		}
	}
	return nil
}

func (f File) mode() os.FileMode {
	if f.Program {
		return 0o755
	}
	return 0o644
}

// inTheWay tells the image's fault from the node's.
func inTheWay(what, path string, err error) error {
	if isImages(err) {
		return &Failure{Kind: ImageUnusable, Message: fmt.Sprintf("the image has something in the way of the %s %s", what, path), Detail: err.Error()}
	}
	return fmt.Errorf("make %s: %w", path, err)
}
