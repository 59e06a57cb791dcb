package keep

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"gbatch/oci/atomicfile"
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
		for _, d := range s.due(o.word) {
			err := s.put(ctx, d.Key, o)
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

// due is a complete log that is to be sent.
type due struct {
	Key
	came time.Time
}

// due are the complete logs with a word in their mark, the oldest first.
func (s *Store) due(word string) []due {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []due
	for _, e := range s.entries() {
		switch at := wordPlace(word); {
		case e.gone:
		case e.pack != nil && e.pack.words[at] > 0:
			for _, l := range e.pack.logs {
				if l.word == at {
					list = append(list, due{l.key(e.key.User), time.UnixMilli(l.came)})
				}
			}
		case e.complete && e.word == word:
			list = append(list, due{e.key, e.touched})
		}
	}
	slices.SortFunc(list, func(a, b due) int { return a.came.Compare(b.came) })
	return list
}

// put sends one log.
func (s *Store) put(ctx context.Context, k Key, o outbox) error {
	p, at := s.smallLog(k)
	f, err := s.packed(k)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := o.to.Put(ctx, k.object(), f.SectionReader); err != nil {
		return err
	}
	if p != nil {
		return s.markSmall(p, at, o.sent)
	}
	e := s.entry(k)
	e.mu.Lock()
	defer e.mu.Unlock()
	s.mu.Lock()
	gone := e.gone
	e.word = o.sent
	s.mu.Unlock()
	if gone {
		return nil
	}
	return os.WriteFile(filepath.Join(s.dir, k.path(), fileComplete), []byte(o.sent), 0o600)
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
	if s.has(k) { // another reader was first
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
	if p, at := s.smallLog(k); p != nil && !at.bad { // it came by another way meanwhile
		return nil
	}
	if n, ok := nameOf(k); ok && !s.begun(k) {
		w, rest, err := readWhole(body)
		if err == nil && w != nil {
			if err = s.enough(); err == nil {
				err = s.putWhole(k, n, *w, word)
			}
		}
		if err != nil || w != nil {
			return err
		}
		body = rest
	}
	tmp, err := os.MkdirTemp(s.dir, ".restore-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if err := unpack(body, tmp, maxArchived, s.enough); err != nil {
		return err
	}
	if err := errors.Join(os.WriteFile(filepath.Join(tmp, fileComplete), []byte(word), 0o600), atomicfile.SyncDir(tmp)); err != nil {
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
	return errors.Join(err, atomicfile.SyncDir(filepath.Dir(dir)))
}

// enough says whether the disk has room for more, and makes none: no other log goes
// for one that is brought back.
func (s *Store) enough() error {
	if s.lack() > 0 {
		return ErrFull
	}
	return nil
}
