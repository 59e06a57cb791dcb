package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/loop"
	"gbatch/internal/ctld/site"
)

// A backup is a tar archive, packed by gzip: what it is (manifestFile), the
// keys of the controller's directory, and its store as it was at one moment.

const manifestFile = "backup.json"

// backingUp begins the name of a directory with the copy of the store that is
// being sent.
const backingUp = "backup.tmp-"

// Sweep removes what a controller that was killed left of backups.
func Sweep(dir string) error {
	left, err := filepath.Glob(filepath.Join(dir, backingUp+"*"))
	for _, path := range left {
		err = errors.Join(err, os.RemoveAll(path))
	}
	return err
}

// backupFormat grows when an older restore could not read it.
const backupFormat = 1

// Info is what a backup says of itself.
type Info struct {
	Format  int       `json:"format"`
	Version string    `json:"version"` // of the program that made it
	Time    time.Time `json:"time"`
	Pin     string    `json:"pin"`   // of the certificate authority in it
	Vault   bool      `json:"vault"` // the key of secrets is in it
}

// keyFiles are what a directory holds beside the store, and nothing can make
// anew.
var keyFiles = []string{"ca.key", "ca.crt", site.TokenKeyFile, site.VaultFile}

// Keys are the contents of the key files of a controller's directory, by name.
func Keys(dir string) (map[string][]byte, error) {
	keys := map[string][]byte{}
	for _, name := range keyFiles {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		keys[name] = text
	}
	return keys, nil
}

// PutKeys makes the key files of a controller's directory, which must be empty.
func PutKeys(dir string, keys map[string][]byte) error {
	if err := mustBeEmpty(dir); err != nil {
		return err
	}
	for _, name := range keyFiles {
		if len(keys[name]) == 0 {
			return fmt.Errorf("there is no %s in it", name)
		}
		if err := writeFrom(filepath.Join(dir, name), 0o600, bytes.NewReader(keys[name])); err != nil {
			return err
		}
	}
	return nil
}

// Maker makes backups of a controller that runs.
type Maker struct {
	Dir     string // of the controller
	Pin     string
	Version string // of this program
	Loop    *loop.Loop
	Store   interface{ Backup(dir string) error }
	Log     *slog.Logger
	Now     func() time.Time
}

// Serve sends a backup. It holds the keys to everything, so only root of this
// machine, who could read them anyway, may have it.
func (s *Maker) Serve(w http.ResponseWriter, r *http.Request) error {
	if id := access.Caller(r.Context()); !id.Root {
		return api.Errorf(api.CodeDenied, "a backup holds the controller's keys: only root on its machine gets it").WithHint("run `gctld backup` there")
	}
	info := Info{Format: backupFormat, Version: s.Version, Pin: s.Pin, Vault: r.URL.Query().Get("vault") != "false"}
	dir, err := s.copyStore(r.Context(), &info)
	defer os.RemoveAll(dir) // "": nothing
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/gzip")
	if err := writeBackup(w, info, s.Dir, filepath.Join(dir, site.StoreDir)); err != nil {
		s.Log.Error("backup broken off", "error", err)
		panic(http.ErrAbortHandler) // the client must not take it for whole
	}
	s.Log.Info("backup made", "vault", info.Vault)
	return nil
}

// copyStore makes a directory with a copy of the store, as of info.Time.
func (s *Maker) copyStore(ctx context.Context, info *Info) (dir string, err error) {
	change := "made with all keys"
	if !info.Vault {
		change = "made without the key of secrets"
	}
	if err := s.Loop.Commit(ctx, "backup", change); err != nil {
		return "", err
	}
	if dir, err = os.MkdirTemp(s.Dir, backingUp); err != nil {
		return "", err
	}
	info.Time = s.Now().UTC()
	return dir, s.Store.Backup(filepath.Join(dir, site.StoreDir))
}

func writeBackup(w io.Writer, info Info, dir, copied string) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	t := tar.NewWriter(z)
	text, err := json.Marshal(info)
	if err != nil {
		return err
	}
	if err := t.WriteHeader(&tar.Header{Name: manifestFile, Mode: 0o600, Size: int64(len(text)), ModTime: info.Time}); err != nil {
		return err
	}
	if _, err := t.Write(text); err != nil {
		return err
	}
	for _, name := range keyFiles {
		if name == site.VaultFile && !info.Vault {
			continue
		}
		if err := addFile(t, filepath.Join(dir, name), name); err != nil {
			return err
		}
	}
	err = filepath.WalkDir(copied, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(copied, path)
		if err != nil {
			return err
		}
		return addFile(t, path, filepath.Join(site.StoreDir, rel))
	})
	return errors.Join(err, t.Close(), z.Close())
}

func addFile(t *tar.Writer, path, name string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if err := t.WriteHeader(&tar.Header{Name: name, Mode: int64(st.Mode().Perm()), Size: st.Size(), ModTime: st.ModTime()}); err != nil {
		return err
	}
	_, err = io.Copy(t, f)
	return err
}

// Read reads a backup to its end and calls file, which may be nil, with
// each file in it. A backup that is damaged or cut off is an error.
func Read(r io.Reader, file func(name string, mode fs.FileMode, r io.Reader) error) (Info, error) {
	var info Info
	z, err := gzip.NewReader(r)
	if err != nil {
		return info, fmt.Errorf("it is no backup of gctld: %w", err)
	}
	t, stored := tar.NewReader(z), false
	for first := true; ; first = false {
		h, err := t.Next()
		switch {
		case errors.Is(err, io.EOF):
			if !stored {
				return info, errors.New("it is no backup of gctld: there is no store in it")
			}
			_, err := io.Copy(io.Discard, z) // up to its checksum
			return info, damaged(err)
		case err != nil:
			return info, damaged(err)
		case first:
			if err := readManifest(h.Name, t, &info); err != nil {
				return info, err
			}
			continue
		case h.Typeflag != tar.TypeReg || !inBackup(h.Name):
			return info, fmt.Errorf("it holds %q, which no backup of gctld does", h.Name)
		}
		stored = stored || filepath.Dir(h.Name) == site.StoreDir
		if file == nil {
			continue
		}
		unread := &unread{Reader: t}
		if err := file(h.Name, h.FileInfo().Mode().Perm(), unread); unread.err != nil {
			return info, damaged(unread.err)
		} else if err != nil {
			return info, err
		}
	}
}

// damaged says what to do with a backup that cannot be read.
func damaged(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("it is damaged or cut off (%w): take another backup", err)
}

// unread keeps why a file in a backup could not be read to its end.
type unread struct {
	io.Reader
	err error
}

func (u *unread) Read(p []byte) (int, error) {
	n, err := u.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		u.err = err
	}
	return n, err
}

func readManifest(name string, r io.Reader, info *Info) error {
	if name != manifestFile {
		return fmt.Errorf("it is no backup of gctld: it begins with %q", name)
	}
	if err := json.NewDecoder(io.LimitReader(r, 1<<16)).Decode(info); err != nil {
		return fmt.Errorf("read %s in it: %w", name, err)
	}
	if info.Format != backupFormat {
		return fmt.Errorf("its format is %d and this program knows %d: use gctld of version %s", info.Format, backupFormat, info.Version)
	}
	return nil
}

func inBackup(name string) bool {
	return slices.Contains(keyFiles, name) || filepath.IsLocal(name) && filepath.Dir(name) == site.StoreDir
}
