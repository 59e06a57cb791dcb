package data

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"gbatch/internal/job"
	"gbatch/internal/noded/config"
	"gbatch/internal/noded/reason"
	"gbatch/internal/transfer"
	"gbatch/oci/draft"
)

// inputsAtOnce is how many inputs of a rank are brought at the same time.
const inputsAtOnce = 4

// Inputs are what was brought for a rank.
type Inputs struct {
	Mounts []draft.Mount
	Cached []string // keys of those that are in the cache
	Own    []string // directories for the container's user
}

// There says whether all inputs are where they were: one that was found damaged since is fetched anew for the next try.
func (in Inputs) There() error {
	for _, m := range in.Mounts {
		if _, err := os.Lstat(m.Source); err != nil {
			return fmt.Errorf("an input is not there any more: %w", err)
		}
	}
	return nil
}

// Fetch brings what is to be there before the program starts.
func (d *Data) Fetch(ctx context.Context, r Rank) (Inputs, error) {
	g := r.Order.Spec.Gbatch
	if g == nil || len(g.Inputs) == 0 {
		return Inputs{}, nil
	}
	t := &transfers{d, r}
	limit := time.Duration(d.cfg.Timeout)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, reason.Errorf(job.InputFailed, "the inputs did not come within %s, the node's limit", limit))
	defer cancel()
	in := &inputs{t: t, left: int64(d.cfg.MaxInput), got: Inputs{Mounts: make([]draft.Mount, len(g.Inputs))}}
	in.show.init(t.Progress, "input", len(g.Inputs))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(inputsAtOnce)
	for i, want := range g.Inputs {
		group.Go(func() error {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			uri := t.expandURI(want.URI)
			var err error
			if _, _, is := want.Tree(); is {
				err = in.bringTree(ctx, i, want)
			} else {
				err = in.bring(ctx, i, want, uri)
			}
			if err == nil {
				in.show.one()
			}
			return t.inputError(uri, err)
		})
	}
	if err := group.Wait(); err != nil {
		return Inputs{}, err
	}
	t.Progress("")
	return in.got, nil
}

// inputs is the fetching of a rank's inputs.
type inputs struct {
	t    *transfers
	show showing

	mu   sync.Mutex // guards what follows
	left int64      // bytes that the site still allows
	got  Inputs     // of its mounts, each is its fetcher's own
}

// bring fetches one input and says how it is mounted.
func (in *inputs) bring(ctx context.Context, i int, want job.Input, uri string) error {
	src, closeSource, err := in.t.source(uri)
	if err != nil {
		return err
	}
	defer closeSource()
	list, err := transfer.List(ctx, uri, src)
	if err != nil {
		return err
	}
	most, err := in.reserve(uri, list)
	if err != nil {
		return err
	}
	release := func() {}
	defer func() { release() }()
	f := transfer.Fetch{URI: uri, Source: src, Objects: list, SHA256: want.SHA256, MaxBytes: most, Progress: in.show.part(i),
		Dir: filepath.Join(in.t.RankDir(in.t.ID), strconv.Itoa(i)),
		Room: func(n int64) (err error) {
			release, err = in.t.promise(n)
			if err != nil {
				release = func() {}
			}
			return err
		}}
	content := filepath.Join(f.Dir, transfer.ContentDir)
	cached := false
	var got transfer.Fetched
	if want.Cache {
		var key string
		key, got, err = in.t.cache.Get(ctx, in.t.Client, transfer.Caller{Scope: in.t.Order.Project, User: in.t.Order.User, Holder: in.t.ID.String()}, f)
		if cached = !errors.Is(err, transfer.ErrNotCacheable); cached && err == nil {
			content = in.t.cache.Content(key)
			in.mu.Lock()
			in.got.Cached = append(in.got.Cached, key)
			in.mu.Unlock()
		}
	}
	if !cached {
		got, err = in.t.Client.Fetch(ctx, f)
	}
	if err != nil {
		return err
	}
	m := draft.Mount{Source: content, Target: want.Path, ReadOnly: want.Cache}
	if got.Single {
		m.Source = filepath.Join(content, transfer.SingleName)
	}
	in.got.Mounts[i] = m
	if !cached {
		in.mu.Lock()
		in.got.Own = append(in.got.Own, content)
		in.mu.Unlock()
	}
	return nil
}

// reserve counts an input against what the site allows a rank. Of an unknown
// size all that is left is reserved.
func (in *inputs) reserve(uri string, list []transfer.Object) (most int64, err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	var total int64
	for _, o := range list {
		if o.Size < 0 {
			total = in.left
			break
		}
		total += o.Size
	}
	if total > in.left {
		return 0, transfer.At(transfer.TooLarge, uri, fmt.Sprintf("has %s; with the job's other inputs that is more than %s, this site's limit",
			config.FormatBytes(total), in.t.cfg.MaxInput))
	}
	in.left -= total
	return max(total, 1), nil
}

// source is where an input comes from.
func (t *transfers) source(uri string) (transfer.Source, func(), error) {
	scheme, _, _ := strings.Cut(uri, ":")
	var src transfer.Source
	var err error
	switch scheme {
	case "s3":
		var at transfer.S3
		if at, err = t.s3(); err == nil {
			src, err = t.Client.S3Source(at, uri)
		}
	case "file":
		dir, name, ferr := t.fileDir(uri, false)
		if ferr != nil {
			return nil, nil, ferr
		}
		return transfer.DirSource(dir, name), func() { dir.Root.Close() }, nil
	default:
		src, err = t.Client.HTTP(uri)
	}
	if err != nil {
		return nil, nil, transfer.Name(uri, err)
	}
	return src, src.Close, nil
}
