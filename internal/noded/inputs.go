package noded

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/noded/config"
	"gbatch/internal/noded/reason"
	"gbatch/internal/transfer"
	"gbatch/oci"
)

// inputsAtOnce is how many inputs of a rank are brought at the same time.
const inputsAtOnce = 4

// fetchInputs brings what is to be there before the program starts.
func (r *rank) fetchInputs(ctx context.Context) error {
	g := r.order.Spec.Gbatch
	if g == nil || len(g.Inputs) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(r.a.data.cfg.Timeout), reason.Errorf(job.InputFailed, "the inputs did not come within %s, the node's limit", time.Duration(r.a.data.cfg.Timeout)))
	defer cancel()
	in := &inputs{r: r, left: int64(r.a.data.cfg.MaxInput), mounts: make([]oci.Mount, len(g.Inputs))}
	in.show.init(r, "input", len(g.Inputs))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(inputsAtOnce)
	for i, want := range g.Inputs {
		group.Go(func() error {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			uri := r.expandURI(want.URI)
			err := in.bring(ctx, i, want, uri)
			if err == nil {
				in.show.one()
			}
			return r.inputError(uri, err)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	r.inputs, r.cached = in.mounts, in.keys
	r.change(newsProgress, func(s *node.RankStatus) { s.Progress = "" })
	r.a.reached("inputs fetched")
	return nil
}

// inputs is the fetching of a rank's inputs.
type inputs struct {
	r      *rank
	mounts []oci.Mount
	show   showing

	mu   sync.Mutex // guards what follows
	left int64      // bytes that the site still allows
	keys []string   // of cache entries
}

// bring fetches one input and says how it is mounted.
func (in *inputs) bring(ctx context.Context, i int, want job.Input, uri string) error {
	src, closeSource, err := in.r.source(uri)
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
	f := transfer.Fetch{URI: uri, Source: src, SHA256: want.SHA256, MaxBytes: most, Progress: in.show.part(i),
		Dir: filepath.Join(in.r.a.data.rankDir(in.r.id), strconv.Itoa(i)),
		Room: func(n int64) (err error) {
			release, err = in.r.a.data.promise(n)
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
		key, got, err = in.r.a.data.cache.Get(ctx, in.r.a.data.client, in.r.order.Project, in.r.id.String(), f, list)
		if cached = !errors.Is(err, transfer.ErrNotCacheable); cached && err == nil {
			content = in.r.a.data.cache.Content(key)
			in.mu.Lock()
			in.keys = append(in.keys, key)
			in.mu.Unlock()
		}
	}
	if !cached {
		got, err = in.r.a.data.client.FetchListed(ctx, f, list)
	}
	if err != nil {
		return err
	}
	m := oci.Mount{Source: content, Target: want.Path, ReadOnly: want.Cache}
	if got.Single {
		m.Source = filepath.Join(content, transfer.SingleName)
	}
	in.mounts[i] = m
	if !cached {
		in.mu.Lock()
		in.r.own = append(in.r.own, content)
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
			config.FormatBytes(total), in.r.a.data.cfg.MaxInput))
	}
	in.left -= total
	return max(total, 1), nil
}

// source is where an input comes from.
func (r *rank) source(uri string) (transfer.Source, func(), error) {
	scheme, _, _ := strings.Cut(uri, ":")
	var src transfer.Source
	var err error
	switch scheme {
	case "s3":
		var at transfer.S3
		if at, err = r.s3(); err == nil {
			src, err = r.a.data.client.S3Source(at, uri)
		}
	case "file":
		root, name, ferr := r.fileRoot(uri, false)
		if ferr != nil {
			return nil, nil, ferr
		}
		return transfer.DirSource(root, name), func() { root.Close() }, nil
	default:
		src, err = r.a.data.client.HTTP(uri)
	}
	if err != nil {
		return nil, nil, transfer.Name(uri, err)
	}
	return src, src.Close, nil
}

// showing tells how far several transfers of a rank are.
type showing struct {
	r    *rank
	what string

	mu          sync.Mutex // guards what follows
	here, all   int        // transfers
	done, total []int64    // bytes of each; -1: not known
	sum, told   int64      // of done, and what of it was told
}

func (s *showing) init(r *rank, what string, n int) {
	s.r, s.what, s.all = r, what, n
	s.done, s.total = make([]int64, n), make([]int64, n)
	s.tell()
}

// part is what the i-th transfer calls with its progress.
func (s *showing) part(i int) func(done, total int64) {
	return func(done, total int64) {
		s.mu.Lock()
		s.sum += done - s.done[i]
		s.done[i], s.total[i] = done, total
		more := s.sum - s.told
		s.mu.Unlock()
		if more >= 1<<20 || more < 0 || done == total {
			s.tell()
		}
	}
}

// one says that a transfer has come to its end.
func (s *showing) one() {
	s.mu.Lock()
	s.here++
	s.mu.Unlock()
	s.tell()
}

func (s *showing) tell() {
	s.mu.Lock()
	s.told = s.sum
	done, total := s.sum, int64(0)
	for i := range s.total {
		if s.total[i] < 0 || total < 0 {
			total = -1
		} else {
			total += s.total[i]
		}
	}
	text := fmt.Sprintf("%s %d of %d", s.what, min(s.here+1, s.all), s.all)
	switch {
	case total > 0:
		text += fmt.Sprintf(": %s of %s", config.FormatBytes(done), config.FormatBytes(total))
	case done > 0:
		text += ": " + config.FormatBytes(done)
	}
	s.mu.Unlock()
	s.r.change(newsPull, func(st *node.RankStatus) { st.Progress = text })
}
