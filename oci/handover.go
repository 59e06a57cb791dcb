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
	"gbatch/oci/stdio"
)

// Handover is what only exists while somebody holds it: shim and container
// hold it from the start on, and with them it goes.
type Handover struct {
	User      *os.File   // the user namespace; nil: the host's
	Namespace *os.File   // of the network; nil: none
	Listeners []*os.File // on the host, one for each of ShimNetwork.Ports

	Stdio stdio.Files // of the program; see ShimConfig.Stdio

	// Env are NAME=value pairs over those of the spec that must be in no file,
	// such as passwords: the spec lies on a disk. See draft.Request.SecretEnv. In the
	// spec's arguments and variables a name between U+E000 and U+E001 is its value.
	Env []string
}

func (h Handover) files() []*os.File {
	var files []*os.File
	if h.User != nil {
		files = append(files, h.User)
	}
	if h.Namespace != nil {
		files = append(append(files, h.Namespace), h.Listeners...)
	}
	return append(files, h.Stdio.All()...)
}

// stdin holds Env for the shim in memory; nil if there is none.
func (h Handover) stdin() (*os.File, error) {
	if len(h.Env) == 0 {
		return nil, nil
	}
	text, err := json.Marshal(h.Env)
	if err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("gbatch-env", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("hand variables over: %w", err)
	}
	f := os.NewFile(uintptr(fd), "env")
	if _, err = f.Write(text); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("hand variables over: %w", err)
	}
	return f, nil
}

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
