package keep

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

// Archive takes complete logs as objects, beyond what is kept here.
type Archive interface {
	Put(ctx context.Context, name string, body *io.SectionReader) error
	Get(ctx context.Context, name string) (io.ReadCloser, error) // nil without an error: there is none
}

// What stands in the file that marks a complete log.
const (
	wordDue      = "due"      // it is to be archived
	wordArchived = "archived" // it is
	wordCopied   = "copied"   // other controllers have it
)

// object is a log's name in the archive: its directory as a compressed tar file.
func (k Key) object() string { return filepath.ToSlash(k.path()) + objectSuffix }

const objectSuffix = ".tar.gz"

// How often there is a look for logs to be archived, and after a failure.
const (
	archiveEvery = 5 * time.Second
	archivePause = time.Minute
)

// RunArchive archives complete logs until ctx ends. What fails is tried again.
func (s *Store) RunArchive(ctx context.Context) {
	if s.archive != nil {
		s.send(ctx, outbox{to: s.archive, word: wordDue, sent: wordArchived, failed: "logs cannot be archived; they are kept here and tried again"})
	}
}

// outbox is where complete logs go that have a word in their mark.
type outbox struct {
	to         Archive
	word, sent string // before and after it
	failed     string // what to say of the first failure
}

// send sends complete logs until ctx ends.
func (s *Store) send(ctx context.Context, o outbox) {
	wait, failed := archiveEvery, false
	for sleep(ctx, wait) {
		wait = archiveEvery
		for _, e := range s.due(o.word) {
			err := s.put(ctx, e, o)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				if !failed {
					s.log.Error(o.failed, "error", err)
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

// due are the complete logs with a word in their mark, the oldest first.
func (s *Store) due(word string) []*entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*entry
	for _, e := range s.logs {
		if e.complete && e.word == word && !e.gone {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b *entry) int { return a.touched.Compare(b.touched) })
	return list
}

// put sends one log.
func (s *Store) put(ctx context.Context, e *entry, o outbox) error {
	f, size, err := s.packed(e.key)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := o.to.Put(ctx, e.key.object(), io.NewSectionReader(f, 0, size)); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	s.mu.Lock()
	gone := e.gone
	e.word = o.sent
	s.mu.Unlock()
	if gone {
		return nil
	}
	return os.WriteFile(filepath.Join(s.dir, e.key.path(), fileComplete), []byte(o.sent), 0o600)
}

// packed is a log as one file, which is gone when it is closed.
func (s *Store) packed(k Key) (f *os.File, size int64, err error) {
	if f, err = os.CreateTemp(s.dir, ".archive-"); err != nil {
		return nil, 0, fmt.Errorf("pack log: %w", err)
	}
	err = os.Remove(f.Name())
	if err == nil {
		err = pack(f, filepath.Join(s.dir, k.path()))
	}
	if err == nil {
		size, err = f.Seek(0, io.SeekCurrent)
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, 0, fmt.Errorf("pack log: %w", err)
	}
	return f, size, nil
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

// bringBack puts a log that is here no more where it was, from another controller or
// out of the archive. It is kept again as long as any other.
func (s *Store) bringBack(ctx context.Context, k Key) (found bool, err error) {
	if s.archive == nil && s.others == nil {
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
	body, word, err := s.elsewhere(ctx, k)
	if err != nil || body == nil {
		return false, err
	}
	defer body.Close()
	if err := s.place(k, body, word); err != nil {
		return false, fmt.Errorf("bring back log: %w", err)
	}
	return true, nil
}

// elsewhere is a log that is not here, with the word for its mark; nil: it is nowhere.
func (s *Store) elsewhere(ctx context.Context, k Key) (body io.ReadCloser, word string, err error) {
	var unsure error
	if s.others != nil {
		if body, unsure = s.others.Get(ctx, k.object()); body != nil {
			return body, wordCopied, nil
		}
	}
	if s.archive != nil {
		if body, err = s.archive.Get(ctx, k.object()); body != nil || err != nil {
			return body, wordArchived, err
		}
	}
	return nil, "", unsure
}

// place puts a log where it belongs that is complete, in the place of less of it.
func (s *Store) place(k Key, body io.Reader, word string) error {
	if err := s.Room(); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(s.dir, ".restore-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if err := unpack(body, tmp, maxArchived, s.enough); err != nil {
		return err
	}
	if err := errors.Join(os.WriteFile(filepath.Join(tmp, fileComplete), []byte(word), 0o600), syncDir(tmp)); err != nil {
		return err
	}
	e := s.entry(k)
	e.mu.Lock()
	defer e.mu.Unlock()
	dir := filepath.Join(s.dir, k.path())
	if _, err := os.Stat(filepath.Join(dir, fileComplete)); err == nil {
		return nil // it came by another way meanwhile
	}
	s.closeWriter(e)
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(filepath.Dir(dir), 0o700)); err != nil {
		return err
	}
	err = os.Rename(tmp, dir)
	s.mu.Lock()
	s.count(e, -e.bytes)
	s.look(k)
	s.mu.Unlock()
	return errors.Join(err, syncDir(filepath.Dir(dir)))
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
		if err == nil {
			err = f.Sync()
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
}
