package rank

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"gbatch/internal/job"
	"gbatch/oci/draft"
)

// A rank's secrets are in this daemon's memory, in a file system in memory that
// its container sees, and in the program's environment. The disk has none: a
// daemon that was restarted says that it has none and gets them anew.

// wantsSecrets says whether the job was started with a place for secrets.
func (o *order) wantsSecrets() bool {
	g := o.Spec.Gbatch
	return g != nil && len(g.Secrets) > 0
}

// secretFiles are the secrets as files in memory that the container sees.
type secretFiles struct {
	dir     string
	mounted bool
	written uint32 // version of what is in them
}

// secretsSize is room for all values, three times: by name, together with
// everything escaped, and that once more while it is replaced.
const secretsSize = "size=16m,nr_inodes=1k,mode=755"

// mount makes the file system with the secrets' files. The shim gives them to
// the container's user, whom it finds out.
func (f *secretFiles) mount(o *order, st *state) error {
	if !o.wantsSecrets() {
		return nil
	}
	s := st.secretsNow()
	if s == nil {
		return errors.New("the controller sent no secrets for a job that has some")
	}
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return err
	}
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	err := unix.Mount("gbatch-secrets", f.dir, "tmpfs", flags, secretsSize+",noswap")
	if errors.Is(err, unix.EINVAL) { // before Linux 6.4
		err = unix.Mount("gbatch-secrets", f.dir, "tmpfs", flags, secretsSize)
	}
	if err != nil {
		return fmt.Errorf("mount a file system for secrets: %w", err)
	}
	f.written, f.mounted = s.Version, true
	return writeSecrets(f.dir, s.Values)
}

// mounts is where the container sees them.
func (f *secretFiles) mounts() []draft.Mount {
	if !f.mounted {
		return nil
	}
	return []draft.Mount{{Source: f.dir, Target: job.SecretsDir, ReadOnly: true}}
}

// own is what the container's user is to own.
func (f *secretFiles) own() []string {
	if !f.mounted {
		return nil
	}
	return []string{f.dir}
}

// renew replaces the files of a running container when newer values have come.
func (f *secretFiles) renew(o *order, st *state) {
	s := st.secretsNow()
	if s == nil || s.Version == f.written || !o.wantsSecrets() {
		return
	}
	f.written = s.Version // an error is told once: it repeats with the next daemon
	if err := writeSecrets(f.dir, s.Values); err != nil {
		st.log.Error("replace secrets", "version", s.Version, "error", err)
		return
	}
	st.log.Info("secrets replaced", "version", s.Version)
}

// writeSecrets replaces each file as a whole: a program that has one open keeps
// the old one, and one that opens it later sees the new one. They belong to
// whom the directory belongs to.
func writeSecrets(dir string, values map[string]string) error {
	st, err := os.Stat(dir)
	if err != nil {
		return err
	}
	owner := st.Sys().(*syscall.Stat_t)
	for name, text := range job.SecretFiles(values) {
		temp := filepath.Join(dir, ".new") // no secret's name starts with a dot
		if err := os.WriteFile(temp, text, 0o400); err != nil {
			return err
		}
		err := os.Chown(temp, int(owner.Uid), int(owner.Gid))
		if err == nil {
			err = os.Rename(temp, filepath.Join(dir, name))
		}
		if err != nil {
			return errors.Join(err, os.Remove(temp))
		}
	}
	return nil
}
