package noded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/oci"
)

// A rank's secrets are in this daemon's memory, in a file system in memory that
// its container sees, and in the program's environment. The disk has none: a
// daemon that was restarted says that it has none and gets them anew.

// takeSecrets keeps values that came with an order. Called with a.mu held.
func (r *rank) takeSecrets(s *api.Secrets) {
	if s == nil || s.Version <= r.status.Secrets {
		return
	}
	if r.secrets == nil {
		close(r.hasSecrets)
	}
	r.secrets, r.status.Secrets = s, s.Version
	r.a.tell(newsProgress)
	r.poke()
}

// secretsNow is nil while there are none.
func (r *rank) secretsNow() *api.Secrets {
	r.a.mu.Lock()
	defer r.a.mu.Unlock()
	return r.secrets
}

// wantsSecrets says whether the job was started with a place for secrets.
func (r *rank) wantsSecrets() bool {
	g := r.order.Spec.Gbatch
	return g != nil && len(g.Secrets) > 0
}

func (r *rank) dirSecrets() string { return filepath.Join(r.dirMounts(), "secrets") }

// secretsSize is room for all values, three times: by name, together with
// everything escaped, and that once more while it is replaced.
const secretsSize = "size=16m,nr_inodes=1k,mode=755"

// mountSecrets makes the file system with the secrets' files. The shim gives
// them to the container's user, whom it finds out.
func (r *rank) mountSecrets(context.Context) error {
	if !r.wantsSecrets() {
		return nil
	}
	s := r.secretsNow()
	if s == nil {
		return errors.New("the controller sent no secrets for a job that has some")
	}
	dir := r.dirSecrets()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	err := unix.Mount("gbatch-secrets", dir, "tmpfs", flags, secretsSize+",noswap")
	if errors.Is(err, unix.EINVAL) { // before Linux 6.4
		err = unix.Mount("gbatch-secrets", dir, "tmpfs", flags, secretsSize)
	}
	if err != nil {
		return fmt.Errorf("mount a file system for secrets: %w", err)
	}
	r.written = s.Version
	if err := writeSecrets(dir, s.Values); err != nil {
		return err
	}
	r.mounts = append(r.mounts, oci.Mount{Source: dir, Target: job.SecretsDir, ReadOnly: true})
	r.own = append(r.own, dir)
	return nil
}

// renewSecrets replaces the files of a running container when newer values
// have come.
func (r *rank) renewSecrets() {
	s := r.secretsNow()
	if s == nil || s.Version == r.written || !r.wantsSecrets() {
		return
	}
	r.written = s.Version // an error is told once: it repeats with the next daemon
	if err := writeSecrets(r.dirSecrets(), s.Values); err != nil {
		r.log.Error("replace secrets", "version", s.Version, "error", err)
		return
	}
	r.log.Info("secrets replaced", "version", s.Version)
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

// secretEnv is the secrets as variables.
func (r *rank) secretEnv() []string {
	if s := r.secretsNow(); s != nil {
		return job.SecretEnvironment(s.Values)
	}
	return nil
}
