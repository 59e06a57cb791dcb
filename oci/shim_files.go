package oci

import (
	"fmt"
	"os"

	"gbatch/oci/failure"
	"gbatch/oci/rootfs"
)

// File is a small file that a container finds in place of its image's, and may
// change: it is one of those that it writes itself.
type File = rootfs.File

// furnish makes what a container finds beside its image's files.
func furnish(at string, cfg *ShimConfig, uid, gid int) error {
	if len(cfg.MakeDirs) == 0 && len(cfg.Files) == 0 {
		return nil
	}
	top, err := os.Open(at)
	if err != nil {
		return err
	}
	defer top.Close()
	what, err := rootfs.Root{Top: top, UID: uid, GID: gid}.Furnish(cfg.MakeDirs, cfg.Files)
	if failure.IsImages(err) {
		return &failure.Failure{Kind: failure.ImageUnusable, Message: "the image has something in the way of the " + what, Detail: err.Error()}
	}
	if err != nil {
		return fmt.Errorf("make the %s: %w", what, err)
	}
	return nil
}
