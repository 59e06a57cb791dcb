// Package bring takes a directory of the user's along with a job: it packs what
// no file says to leave out, and sends the controller what that has not yet.
package bring

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"

	"gbatch/internal/api"
	"gbatch/internal/cli/human"
	"gbatch/internal/tree"
)

// most bounds what is read here; the controller's own bounds are smaller.
var most = tree.Size{Files: 2_000_000, Bytes: 1 << 40}

// Packed is a directory or file as it was here at one moment.
type Packed struct {
	tree.Manifest
	Size tree.Size
	File string // of a single file: its name
	path string
	skip func(name string, isDir bool) bool
	done func() error
}

// Pack reads a directory without what its files of ignored names leave out, or one
// file.
func Pack(ctx context.Context, path string) (*Packed, error) { return pack(ctx, path, ignoredBelow) }

// PackAll reads a directory with all that is in it.
func PackAll(ctx context.Context, path string) (*Packed, error) {
	return pack(ctx, path, func(string) (*ignored, error) { return nil, nil })
}

func pack(ctx context.Context, path string, ignored func(dir string) (*ignored, error)) (*Packed, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	p := &Packed{path: path, done: func() error { return nil }}
	if info.IsDir() {
		if p.path, err = filepath.EvalSymlinks(path); err != nil { // a walk does not follow it
			return nil, err
		}
		rules, err := ignored(p.path)
		if err != nil {
			return nil, err
		}
		if rules != nil {
			p.skip, p.done = rules.skip, func() error { return rules.err }
		}
	} else {
		p.File = filepath.Base(path)
	}
	for range tries {
		if err = p.read(ctx, func(tree.Chunk, []byte) error { return nil }); !errors.Is(err, tree.ErrChanged) {
			break
		}
	}
	return p, err
}

// read packs it, again perhaps: what changed in between is another tree.
func (p *Packed) read(ctx context.Context, emit func(tree.Chunk, []byte) error) (err error) {
	p.Manifest, p.Size, err = tree.Packing{Dir: p.path, Skip: p.skip, Most: most, Emit: emit}.Pack(ctx)
	if err = errors.Join(err, p.done()); err == nil && p.Size.Files == 0 {
		err = fmt.Errorf("%s has no file that is brought along", p.path)
	}
	return err
}

// Controller is who keeps trees.
type Controller interface {
	AddTree(context.Context, tree.Manifest) (*api.TreeResponse, error)
	PutChunk(ctx context.Context, sum string, data []byte) error
}

// tries is how often a directory may change while it is sent.
const tries = 5

// atOnce is how many chunks are under way.
const atOnce = 4

// Send has the controller keep it, and gives its name there. Say is told what is
// sent, if anything is.
func (p *Packed) Send(ctx context.Context, c Controller, say func(format string, args ...any)) (id string, err error) {
	for range tries {
		got, err := c.AddTree(ctx, p.Manifest)
		if err != nil || got.Tree != "" {
			return got.Tree, err
		}
		lacks := map[string]bool{}
		for _, sum := range got.Missing {
			lacks[sum] = true
		}
		missing := map[string]bool{}
		var bytes int64
		for _, m := range p.Chunks {
			if !missing[m.Sum] && lacks[m.Sum] {
				missing[m.Sum] = true
				bytes += m.Size
			}
		}
		say("sending %s of the %s in %s (%d files)", human.Size(nil, bytes), human.Size(nil, p.Size.Bytes), human.Clean(p.path), p.Size.Files)
		known := map[string]bool{}
		for _, m := range p.Chunks {
			known[m.Sum] = !missing[m.Sum]
		}
		if err := p.send(ctx, c, known); err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("%s changes faster than it can be sent: stop what writes there, or name it in %s", p.path, ownIgnore)
}

// send sends all chunks but those that the controller has.
func (p *Packed) send(ctx context.Context, c Controller, known map[string]bool) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	err := p.read(ctx, func(k tree.Chunk, data []byte) error {
		if known[k.Sum] {
			return nil
		}
		known[k.Sum] = true
		data = slices.Clone(data)
		group.Go(func() error { return c.PutChunk(ctx, k.Sum, data) })
		return context.Cause(ctx)
	})
	sent := group.Wait()
	if sent != nil {
		return sent
	}
	if errors.Is(err, tree.ErrChanged) {
		return nil // it is looked at again
	}
	return err
}
