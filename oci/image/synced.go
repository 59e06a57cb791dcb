package image

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// A new image is used before its files have reached the disk: on a node whose
// jobs write a lot, waiting for that can take minutes. Until they have, the
// record says so, and if the machine crashes before, the image is pulled
// again. A crash of the process alone loses nothing.

// trusted reports whether a record can be relied on in this boot: its files are on disk,
// or the machine has not crashed since they were written.
func (s *Store) trusted(rec *record) bool { return rec.Synced || rec.Boot == s.boot }

// awaitSynced waits in the background for an image to be on disk, and records it.
// The store waits for it in Close.
func (s *Store) awaitSynced(digest string) {
	s.work.Go(func() {
		if err := syncFS(s.layout.Layers); err != nil {
			return // the record goes on saying that it is not
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		rec := s.images[digest]
		if rec == nil || rec.Synced {
			return
		}
		next := *rec
		next.Synced = true
		if err := s.writeRecordLocked(&next); err == nil {
			s.images[digest] = &next
		}
	})
}

// syncFS is one call instead of an fsync for each of thousands of files.
func syncFS(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := unix.Syncfs(int(d.Fd())); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}
