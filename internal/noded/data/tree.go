package data

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/job"
	"gbatch/internal/transfer"
	"gbatch/internal/tree"
	"gbatch/oci/draft"
	"gbatch/oci/rmtree"
)

// OpenTree opens part of the archive of a directory that a job takes along, at the
// controller, and says how long all of it is.
type OpenTree func(context.Context, client.TreePart) (io.ReadCloser, int64, error)

// treeSource is such an archive as one object. The controller may be away for a
// while.
type treeSource struct {
	open      OpenTree
	job, tree string
}

func (s treeSource) Close() {}

func (s treeSource) List(ctx context.Context) ([]transfer.Object, error) {
	body, length, err := s.read(ctx, 0, 1)
	if err != nil {
		return nil, err
	}
	return []transfer.Object{{Size: length, Version: s.tree}}, body.Close()
}

func (s treeSource) Open(ctx context.Context, _ transfer.Object, from, to int64) (io.ReadCloser, error) {
	body, _, err := s.read(ctx, from, to)
	return body, err
}

func (s treeSource) read(ctx context.Context, from, to int64) (io.ReadCloser, int64, error) {
	var pauses client.Backoff
	for {
		body, length, err := s.open(ctx, client.TreePart{Job: s.job, Tree: s.tree, From: from, To: to})
		refused := (*api.Error)(nil)
		switch {
		case err == nil:
			return body, length, nil
		case client.IsUnavailable(err):
		case errors.As(err, &refused) && refused.Code == api.CodeNotFound:
			return nil, 0, transfer.At(transfer.NotFound, "", refused.Message)
		case errors.As(err, &refused):
			return nil, 0, transfer.At(transfer.Invalid, "", refused.Message)
		default:
			return nil, 0, err
		}
		if client.Sleep(ctx, pauses.Next()) != nil {
			return nil, 0, err
		}
	}
}

// bringTree fetches the archive of a directory that the job takes along, which
// the user's other jobs share, and unpacks it for this rank alone.
func (in *inputs) bringTree(ctx context.Context, i int, want job.Input) error {
	id, file, _ := want.Tree()
	uri := job.TreeURI(id, "")
	src := treeSource{in.t.Tree, in.t.Order.UUID, id}
	list, err := transfer.List(ctx, uri, src)
	if err != nil {
		return err
	}
	most, err := in.reserve(uri, list)
	if err != nil {
		return err
	}
	release, err := in.t.promise(2 * list[0].Size) // the archive and what is in it
	if err != nil {
		return transfer.Name(uri, err)
	}
	defer release()
	key, _, err := in.t.cache.Get(ctx, in.t.Client, transfer.Caller{Scope: "trees of " + in.t.Order.User, User: in.t.Order.User, Holder: in.t.ID.String()},
		transfer.Fetch{URI: uri, Source: src, Objects: list, MaxBytes: most, Progress: in.show.part(i)})
	if err != nil {
		return err
	}
	dir := filepath.Join(in.t.RankDir(in.t.ID), fmt.Sprint(i), transfer.ContentDir)
	if err := unpackTree(filepath.Join(in.t.cache.Content(key), transfer.SingleName), dir, list[0].Size); err != nil {
		return transfer.LocalError(uri, err)
	}
	m := draft.Mount{Source: dir, Target: want.Path}
	if file != "" {
		if m.Source, err = plainFile(dir, file); err != nil {
			return transfer.At(transfer.NotFound, want.URI, err.Error())
		}
	}
	in.got.Mounts[i] = m
	in.mu.Lock()
	defer in.mu.Unlock()
	in.got.Own = append(in.got.Own, dir)
	return nil
}

// unpackTree makes a directory anew of an archive. The controller has looked at
// it, and it is looked at again.
func unpackTree(archive, dir string, size int64) error {
	if err := rmtree.Remove(dir); err != nil { // of before a restart of the daemon
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = tree.Unpack(f, root, tree.Size{Files: math.MaxInt64, Bytes: size})
	return err
}

// plainFile is a file or directory of an unpacked tree, in which it is reached by
// no link.
func plainFile(dir, name string) (string, error) {
	for at := name; at != "."; at = filepath.Dir(at) {
		info, err := os.Lstat(filepath.Join(dir, at))
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return "", fmt.Errorf("there is no file %s in it that is no link", name)
		}
		if err != nil {
			return "", err
		}
	}
	return filepath.Join(dir, name), nil
}
