package oci

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"gbatch/oci/draft"
)

// maxHandedEnv bounds what a shim reads of its standard input.
const maxHandedEnv = 4 << 20

// takeEnv adds the variables that were handed over to the container's, and
// lets go of the memory that they came in.
func (s *shim) takeEnv() error {
	text, err := io.ReadAll(io.LimitReader(os.Stdin, maxHandedEnv))
	if err != nil || len(text) == 0 {
		return err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	if err := unix.Dup3(int(null.Fd()), 0, 0); err != nil {
		return err
	}
	var env []string
	if json.Unmarshal(text, &env) != nil {
		return fmt.Errorf("the variables that were handed over cannot be read") // and never what they are
	}
	for _, p := range s.parts {
		if p.Spec.Process.Env, err = draft.MergeEnv(p.Spec.Process.Env, env); err != nil {
			return err
		}
		draft.PutIn(p.Spec.Process.Args, env)
		draft.PutIn(p.Spec.Process.Env, env)
	}
	return nil
}

// giveOwn gives what lies at each of ShimConfig.Own to the container's user. Only
// the daemon has written there.
func (s *shim) giveOwn() error {
	u := s.spec.Process.User
	uid, gid, _ := s.received.IDs.Host(u.UID, u.GID)
	if uid == 0 && gid == 0 {
		return nil
	}
	for _, top := range s.cfg.Own {
		err := filepath.WalkDir(top, func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(path, uid, gid)
		})
		if err != nil {
			return fmt.Errorf("give files to the container's user: %w", err)
		}
	}
	return nil
}
