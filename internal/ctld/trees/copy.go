package trees

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/tree"
)

// A Store is a Peer to the controller that leads, but for its name.

// Trees are when each tree was last wanted, by user and tree. Chunks that came for none
// go.
func (s *Store) Trees(context.Context) (map[string]map[string]time.Time, error) {
	s.mu.Lock()
	var all []*owner
	for _, o := range s.users {
		all = append(all, o)
	}
	s.mu.Unlock()
	list := map[string]map[string]time.Time{}
	for _, o := range all {
		trees, err := s.treesOf(o)
		if err != nil {
			return nil, err
		}
		list[o.name] = trees
	}
	return list, nil
}

func (s *Store) treesOf(o *owner) (map[string]time.Time, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	trees := map[string]time.Time{}
	for id, k := range o.trees {
		trees[id] = k.wanted
	}
	return trees, s.dropLoose(o)
}

// Tree is one of a user's; nil: it is not here.
func (s *Store) Tree(_ context.Context, user, id string) (*Copy, error) {
	o, err := s.owner(user)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	k := o.trees[id]
	if k == nil {
		return nil, nil
	}
	return &Copy{k.Kept, k.wanted}, nil
}

// Chunk is a chunk of a user's; nil: it is not here, or not as it came.
func (s *Store) Chunk(_ context.Context, user, sum string) ([]byte, error) {
	o, err := s.owner(user)
	if err != nil || !tree.IsSum(sum) {
		return nil, err
	}
	data, err := os.ReadFile(o.chunkPath(sum))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && tree.SumOf(data) != sum {
		_, err = o.verify(sum)
		return nil, err
	}
	return data, err
}

// Take keeps a tree that another controller has, or says which chunks it lacks. No bound but
// the disk's holds: a job may need it.
func (s *Store) Take(_ context.Context, user string, c Copy) (missing []string, err error) {
	if err := c.Check(); err != nil {
		return nil, api.Errorf(api.CodeBadRequest, "%v", err)
	}
	o, err := s.owner(user)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	id := c.ID()
	if k := o.trees[id]; k != nil {
		if !c.Wanted.After(k.wanted) {
			return nil, nil
		}
		k.wanted = c.Wanted
		return nil, os.Chtimes(o.treePath(id), k.wanted, k.wanted)
	}
	if missing = o.missing(c.Manifest); len(missing) > 0 {
		return missing, nil
	}
	k := &kept{c.Kept, c.Wanted}
	if err := s.diskRoom(o, tree.Size{Bytes: k.charge()}); err != nil {
		return nil, err
	}
	return nil, o.write(id, k)
}

// TakeChunk keeps a chunk that another controller has.
func (s *Store) TakeChunk(_ context.Context, user, sum string, data []byte) error {
	return s.place(user, sum, data, s.diskRoom)
}

// Drop removes a tree that the controller which leads does not keep.
func (s *Store) Drop(_ context.Context, user, id string) error {
	o, err := s.owner(user)
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.trees[id] == nil {
		return nil
	}
	if err := o.drop(id); err != nil {
		return err
	}
	return s.dropLoose(o)
}
