package keep

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// RunCopies gives complete logs to other controllers until ctx ends, so that they are
// there when this one's machine is lost. What is for the archive goes there instead.
func (s *Store) RunCopies(ctx context.Context) {
	if s.others != nil {
		s.send(ctx, outbox{to: s.others, sent: wordCopied, failed: "logs cannot be copied to a majority of the controllers; this is tried again"})
	}
}

// Receive takes a log that another controller gives to this one, by the name that it
// has there.
func (s *Store) Receive(ctx context.Context, name string, body io.Reader) error {
	k, err := keyOf(name)
	if err != nil {
		return err
	}
	over, err := s.turn(ctx, k.User)
	if err != nil {
		return err
	}
	defer over()
	if err := s.place(k, body, wordCopied); err != nil {
		return fmt.Errorf("take log: %w", err)
	}
	return nil
}

// Give packs a log for another controller; nil: it is not here, or not complete. The
// caller closes it.
func (s *Store) Give(name string) (*Object, error) {
	k, err := keyOf(name)
	if err != nil {
		return nil, err
	}
	if p, _ := s.smallLog(k); p == nil {
		if _, err := os.Stat(filepath.Join(s.dir, k.path(), fileComplete)); err != nil {
			return nil, nil
		}
	}
	return s.packed(k)
}

// keyOf is the inverse of object.
func keyOf(name string) (Key, error) {
	path, ok := strings.CutSuffix(name, objectSuffix)
	k, is := parseKey(filepath.FromSlash(path))
	if !ok || !is {
		return Key{}, fmt.Errorf("%q is no name of a log", name)
	}
	return k, nil
}
