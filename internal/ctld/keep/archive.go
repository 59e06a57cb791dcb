package keep

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

// Archive takes complete logs as objects, beyond what is kept here.
type Archive interface {
	Put(ctx context.Context, name string, body io.Reader, size int64) error
	Get(ctx context.Context, name string) (io.ReadCloser, error) // nil without an error: there is none
}

// What stands in the file that marks a complete log.
const (
	wordDue      = "due"      // it is to be archived
	wordArchived = "archived" // it is
)

// object is a log's name in the archive: its directory as a compressed tar file.
func (k Key) object() string { return filepath.ToSlash(k.path()) + ".tar.gz" }

// How often there is a look for logs to be archived, and after a failure.
const (
	archiveEvery = 5 * time.Second
	archivePause = time.Minute
)

// RunArchive archives complete logs until ctx ends. What fails is tried again.
func (s *Store) RunArchive(ctx context.Context) {
	if s.archive == nil {
		return
	}
	wait, failed := archiveEvery, false
	for sleep(ctx, wait) {
		wait = archiveEvery
		for _, e := range s.due() {
			err := s.put(ctx, e)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				if !failed {
					s.log.Error("logs cannot be archived; they are kept here and tried again", "error", err)
				}
				failed, wait = true, archivePause
				break
			}
			failed = false
		}
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// due are the logs that are to be archived, the oldest first.
func (s *Store) due() []*entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*entry
	for _, e := range s.logs {
		if e.word == wordDue && !e.gone {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b *entry) int { return a.touched.Compare(b.touched) })
	return list
}

// put archives one log.
func (s *Store) put(ctx context.Context, e *entry) error {
	f, err := os.CreateTemp(s.dir, ".archive-")
	if err != nil {
		return fmt.Errorf("pack log: %w", err)
	}
	defer f.Close()
	if err := os.Remove(f.Name()); err != nil { // it lives as long as it is open
		return fmt.Errorf("pack log: %w", err)
	}
	dir := filepath.Join(s.dir, e.key.path())
	if err := pack(f, dir); err != nil {
		return fmt.Errorf("pack log: %w", err)
	}
	size, err := f.Seek(0, io.SeekCurrent)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return fmt.Errorf("pack log: %w", err)
	}
	if err := s.archive.Put(ctx, e.key.object(), f, size); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	s.mu.Lock()
	gone := e.gone
	e.word = wordArchived
	s.mu.Unlock()
	if gone {
		return nil
	}
	return os.WriteFile(filepath.Join(dir, fileComplete), []byte(wordArchived), 0o600)
}

// logFile are the names of the files that a log consists of.
var logFile = regexp.MustCompile(`^([0-9]{20}\.(log|sum)|times)$`)

func pack(w io.Writer, dir string) error {
	z := gzip.NewWriter(w)
	t := tar.NewWriter(z)
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range files {
		if !logFile.MatchString(e.Name()) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		if err := t.WriteHeader(&tar.Header{Name: e.Name(), Mode: 0o600, Size: int64(len(data)), Typeflag: tar.TypeReg}); err != nil {
			return err
		}
		if _, err := t.Write(data); err != nil {
			return err
		}
	}
	return errors.Join(t.Close(), z.Close())
}

// maxRestores is how many logs are brought back at a time: one of each user.
const maxRestores = 4

// turn waits until no other log of a user is brought back, and there is a place.
// What is on its way is counted by nobody, so it must not be much.
func (s *Store) turn(ctx context.Context, user string) (over func(), err error) {
	for {
		s.mu.Lock()
		wait := s.restores[user]
		for _, any := range s.restores {
			if wait != nil || len(s.restores) < maxRestores {
				break
			}
			wait = any
		}
		if wait == nil {
			mine := make(chan struct{})
			s.restores[user] = mine
			s.mu.Unlock()
			return func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				delete(s.restores, user)
				close(mine)
			}, nil
		}
		s.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// bringBack puts a log that is here no more where it was, out of the archive. It
// is kept again as long as any other.
func (s *Store) bringBack(ctx context.Context, k Key) (found bool, err error) {
	if s.archive == nil {
		return false, nil
	}
	over, err := s.turn(ctx, k.User)
	if err != nil {
		return false, err
	}
	defer over()
	if _, err := os.Stat(filepath.Join(s.dir, k.path())); err == nil { // another reader was first
		return true, nil
	}
	body, err := s.archive.Get(ctx, k.object())
	if err != nil || body == nil {
		return false, err
	}
	defer body.Close()
	if err := s.Room(); err != nil {
		return false, err
	}
	tmp, err := os.MkdirTemp(s.dir, ".restore-")
	if err != nil {
		return false, fmt.Errorf("bring back log: %w", err)
	}
	defer os.RemoveAll(tmp)
	if err := unpack(body, tmp, maxArchived, s.enough); err != nil {
		return false, fmt.Errorf("bring back log: %w", err)
	}
	e := s.entry(k)
	e.mu.Lock()
	defer e.mu.Unlock()
	dir := filepath.Join(s.dir, k.path())
	if err := os.WriteFile(filepath.Join(tmp, fileComplete), []byte(wordArchived), 0o600); err != nil {
		return false, fmt.Errorf("bring back log: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return false, fmt.Errorf("bring back log: %w", err)
	}
	if err := os.Rename(tmp, dir); err != nil && !errors.Is(err, fs.ErrExist) { // another reader was first
		return false, fmt.Errorf("bring back log: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count(e, -e.bytes)
	s.look(k)
	return true, nil
}

// enough says whether the disk has room for more, and makes none: no other log goes
// for one that is brought back.
func (s *Store) enough() error {
	if s.lack() > 0 {
		return ErrFull
	}
	return nil
}

// maxArchived bounds a log that is brought back; sites may have had larger bounds
// than now.
const maxArchived = 16 << 30

func unpack(r io.Reader, dir string, most int64, enough func() error) error {
	z, err := gzip.NewReader(r)
	if err != nil {
		return err
	}
	t := tar.NewReader(z)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			_, err := io.Copy(io.Discard, z) // to the sum at the end of all
			return err
		}
		if err != nil {
			return err
		}
		if most -= h.Size; !logFile.MatchString(h.Name) || h.Typeflag != tar.TypeReg || most < 0 {
			return fmt.Errorf("the archived log has a file %q of %d bytes, which no log has", h.Name, h.Size)
		}
		if err := enough(); err != nil {
			return err
		}
		f, err := os.OpenFile(filepath.Join(dir, h.Name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, t)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
}
