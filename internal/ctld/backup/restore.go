package backup

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gbatch/internal/control"
	"gbatch/internal/ctld/jobstore"
	"gbatch/internal/ctld/site"
	"gbatch/internal/ctld/wire"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/internal/store"
	"gbatch/sched"
)

// Options are what to make of a backup.
type Options struct {
	File        string
	VaultKey    string // file with the key of secrets, for a backup without it
	DropSecrets bool   // or go on without it
	Queue       bool   // leave jobs that waited in the queue; else they are put on hold
	Skip        uint64 // numbers of jobs that are left out; 0: defaultSkip
}

// defaultSkip is how many jobs may have been submitted after a backup without
// their numbers being given again.
const defaultSkip = 100_000

// restoring is where a backup is unpacked, in the controller's directory.
const restoring = "restore.tmp"

// Restore makes the state directory of a configuration, which must be empty, out
// of a backup. The controller goes on from it at its next start.
func Restore(c site.Config, o Options) (Info, error) {
	if err := mustBeEmpty(c.Dir); err != nil {
		return Info{}, err
	}
	tmp := filepath.Join(c.Dir, restoring)
	if err := os.RemoveAll(tmp); err != nil {
		return Info{}, err
	}
	if err := os.MkdirAll(filepath.Join(tmp, site.StoreDir), 0o700); err != nil {
		return Info{}, err
	}
	info, err := unpack(o, tmp)
	if err == nil {
		err = markRestored(o, info, tmp)
	}
	if err != nil {
		return info, errors.Join(fmt.Errorf("restore %s: %w", o.File, err), os.RemoveAll(tmp))
	}
	// The store comes last: without it the directory is not in use.
	for _, name := range append(slices.Clone(keyFiles), site.StoreDir+store.MarkSuffix, site.StoreDir) {
		err := os.Rename(filepath.Join(tmp, name), filepath.Join(c.Dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return info, err
		}
	}
	return info, os.Remove(tmp)
}

func mustBeEmpty(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	list, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var names []string
	for _, e := range list {
		if name := e.Name(); name != "lost+found" && name != restoring && e.Type()&fs.ModeSocket == 0 {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		return fmt.Errorf("%s is not empty: it has %s. A backup is restored into an empty directory: stop gctld, and move what is there away, as by mv %s %s.old",
			dir, strings.Join(names, ", "), dir, dir)
	}
	return nil
}

// unpack writes the backup's files below a directory.
func unpack(o Options, to string) (Info, error) {
	f, err := os.Open(o.File)
	if err != nil {
		return Info{}, err
	}
	defer f.Close()
	info, err := Read(f, func(name string, mode fs.FileMode, r io.Reader) error {
		return writeFrom(filepath.Join(to, name), mode, r)
	})
	if err != nil {
		return info, err
	}
	switch {
	case info.Vault || o.DropSecrets:
		return info, nil
	case o.VaultKey == "":
		return info, fmt.Errorf("it was made without the key of secrets: give that key's file, which was %s in the old directory, by --secrets-key; "+
			"or say --drop-secrets, and jobs that wait with secrets or a registry password fail", site.VaultFile)
	}
	key, err := os.Open(o.VaultKey)
	if err != nil {
		return info, fmt.Errorf("key of secrets: %w", err)
	}
	defer key.Close()
	if err := writeFrom(filepath.Join(to, site.VaultFile), 0o600, key); err != nil {
		return info, err
	}
	_, err = jobstore.OpenVault(filepath.Join(to, site.VaultFile))
	return info, err
}

// UnpackStore writes the store that a backup holds into a directory, and none of
// the keys.
func UnpackStore(from io.Reader, dir string) (Info, error) {
	return Read(from, func(name string, mode fs.FileMode, r io.Reader) error {
		if filepath.Dir(name) != site.StoreDir {
			return nil
		}
		return writeFrom(filepath.Join(dir, filepath.Base(name)), mode, r)
	})
}

func writeFrom(path string, mode fs.FileMode, r io.Reader) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Sync(), f.Close())
}

// markRestored has the controller learn at its next start where its records
// come from.
func markRestored(o Options, info Info, dir string) error {
	st, err := store.Renew(store.Config{Dir: filepath.Join(dir, site.StoreDir)})
	if err != nil {
		return err
	}
	err = goOn(st, control.Restored{
		Skip: job.Number(cmp.Or(o.Skip, defaultSkip)), Queue: o.Queue, NoVault: o.DropSecrets && !info.Vault,
	})
	return errors.Join(err, st.Close())
}

// goOn prepares records that may lack the latest for a controller.
func goOn(st *store.Store, ev control.Restored) error {
	if err := forgetKeys(st, secretFiles...); err != nil {
		return err
	}
	return st.Restored(uint64(time.Now().Unix()), state.Record{Kind: state.KindRestored, Value: wire.Encode(ev)})
}

// Loaded tells the controller, once, that its records come from a backup.
func Loaded(ctl *control.Controller, st *store.Store, now sched.Time) (bool, error) {
	r := state.Record{Kind: state.KindRestored}
	text, ok, err := st.Get(r)
	if err != nil || !ok {
		return false, err
	}
	var ev control.Restored
	if err := json.Unmarshal(text, &ev); err != nil {
		return false, fmt.Errorf("decode the mark of a restored backup: %w", err)
	}
	_, _, eff := control.Apply(ctl, now, ev)
	return true, st.Commit(append(eff.Records, r))
}
