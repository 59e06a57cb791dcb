package share

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"sync"
	"time"
)

// ErrLacks is that a node does not have a layer now, or is asked for too many.
var ErrLacks = errors.New("the layer is not there, or not yet")

// ErrNever is that a node has a layer, but not the bytes that it came as.
var ErrNever = errors.New("the layer is there unpacked only")

// Spool is the compressed layers of a store.
type Spool struct {
	dir string
	max int64 // bytes of all; 0: none are kept
	age time.Duration
	now func() time.Time

	mu      sync.Mutex
	kept    map[string]*Layer // by Key
	bytes   int64             // of all files, those that only readers have included
	pulling map[string]int    // names of images that are being pulled
	changed chan struct{}     // closed when a layer or a pull comes or goes
}

// Bounds are those of a Spool.
type Bounds struct {
	Bytes int64         // of all layers; 0: none are kept
	Age   time.Duration // without being read
}

// New makes a spool whose files are in dir.
func New(dir string, b Bounds, now func() time.Time) *Spool {
	return &Spool{dir: dir, max: b.Bytes, age: b.Age, now: now, kept: map[string]*Layer{}, pulling: map[string]int{}, changed: make(chan struct{})}
}

// maxLayers are kept at the same time: each has a file that is open.
const maxLayers = 256

// Key names a layer by its bytes and by the repository that served them: what one
// repository says about who may read counts for nothing that it did not serve.
func Key(image, digest string) string { return image + " " + digest }

// Layer is one file. It is read while it is being written.
type Layer struct {
	key  string
	file *os.File
	size int64

	// Under the spool's lock.
	here    int64 // bytes that are in the file
	ended   bool  // no more come: all are here, or the download failed
	dropped bool  // it is for nobody new
	users   int   // readers, and the download
	used    time.Time
	grew    chan struct{} // closed when any of these changes
}

func (s *Spool) tell() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (k *Layer) tell() {
	close(k.grew)
	k.grew = make(chan struct{})
}

// Pull notes that an image is being pulled, until done is called: its layers may come yet.
func (s *Spool) Pull(image string) (done func()) {
	add := func(n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.pulling[image] += n; s.pulling[image] == 0 {
			delete(s.pulling, image)
		}
		s.tell()
	}
	add(1)
	return sync.OnceFunc(func() { add(-1) })
}

// Begin makes a file for a layer that is about to be downloaded; nil: it is not kept, as it
// is already, or there is no room for it. The caller calls End.
func (s *Spool) Begin(key string, size, room int64) *Layer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept[key] != nil || size > s.max || size < 0 {
		return nil
	}
	for _, k := range s.kept {
		if !k.ended {
			room -= k.size - k.here
		}
	}
	if room < 4*size { // the layer itself wants to be unpacked beside it
		return nil
	}
	full := func() bool { return s.bytes+size > s.max || len(s.kept) >= maxLayers }
	if s.shrinkLocked(full); full() {
		return nil
	}
	f, err := os.CreateTemp(s.dir, "kept-")
	if err != nil {
		return nil
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil
	}
	k := &Layer{key: key, file: f, size: size, users: 1, used: s.now(), grew: make(chan struct{})}
	s.kept[key] = k
	s.bytes += size
	s.tell()
	return k
}

// Grow notes that so many bytes are there.
func (s *Spool) Grow(k *Layer, here int64) {
	if k == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if here = min(here, k.size); here > k.here {
		k.here = here
		k.tell()
	}
}

// End says that the download is over, and whether all is there.
func (s *Spool) End(k *Layer, whole bool) {
	if k == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k.ended, k.used = true, s.now()
	if whole {
		k.here = k.size
	} else {
		s.dropLocked(k)
	}
	k.tell()
	s.leaveLocked(k)
}

func (s *Spool) leaveLocked(k *Layer) {
	if k.users--; k.users == 0 && k.dropped {
		s.bytes -= k.size
		k.file.Close()
	}
}

// dropLocked lets nobody new read a layer; its file goes with the last who does.
func (s *Spool) dropLocked(k *Layer) {
	if k.dropped {
		return
	}
	k.dropped = true
	delete(s.kept, k.key)
	if k.users == 0 {
		s.bytes -= k.size
		k.file.Close()
	}
}

// shrinkLocked drops layers that nobody reads, those used longest ago first, while need says so.
func (s *Spool) shrinkLocked(need func() bool) {
	var idle []*Layer
	for _, k := range s.kept {
		if k.users == 0 {
			idle = append(idle, k)
		}
	}
	slices.SortFunc(idle, func(a, b *Layer) int { return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.key, b.key)) })
	for _, k := range idle {
		if !need() {
			return
		}
		s.dropLocked(k)
	}
}

// Expire drops what nobody has read for long.
func (s *Spool) Expire(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.kept {
		if k.users == 0 && now.Sub(k.used) >= s.age {
			s.dropLocked(k)
		}
	}
}

// Shed gives all room back that is not being read now.
func (s *Spool) Shed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shrinkLocked(func() bool { return true })
}

// Close lets nobody read any more.
func (s *Spool) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.max = 0
	for _, k := range s.kept {
		s.dropLocked(k)
	}
	s.tell()
}

// Open returns a layer for reading. Where its image is being pulled it waits for the layer to
// come until ctx ends.
func (s *Spool) Open(ctx, life context.Context, image, digest string) (*Reader, error) {
	for {
		s.mu.Lock()
		k, coming, changed := s.kept[Key(image, digest)], s.pulling[image] > 0, s.changed
		if k != nil {
			k.users++
			k.used = s.now()
		}
		s.mu.Unlock()
		if k != nil {
			return &Reader{spool: s, layer: k, ctx: life}, nil
		}
		if !coming {
			return nil, ErrLacks
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ErrLacks
		}
	}
}

// Reader reads a layer, as far as it is there, and waits for the rest.
type Reader struct {
	spool *Spool
	layer *Layer
	ctx   context.Context // of who reads; ends waiting
	at    int64
	once  sync.Once
}

var errFailed = errors.New("its download failed there")

func (r *Reader) Read(p []byte) (int, error) {
	for {
		r.spool.mu.Lock()
		here, ended, grew := r.layer.here, r.layer.ended, r.layer.grew
		r.spool.mu.Unlock()
		switch {
		case r.at < here:
			n, err := r.layer.file.ReadAt(p[:min(int64(len(p)), here-r.at)], r.at)
			r.at += int64(n)
			if err == io.EOF { // what wrote it lied
				err = errFailed
			}
			if n > 0 {
				return n, nil
			}
			return n, err
		case r.at == r.layer.size:
			return 0, io.EOF
		case ended:
			return 0, errFailed
		}
		select {
		case <-grew:
		case <-r.ctx.Done():
			return 0, context.Cause(r.ctx)
		}
	}
}

func (r *Reader) Close() error {
	r.once.Do(func() {
		r.spool.mu.Lock()
		defer r.spool.mu.Unlock()
		r.layer.used = r.spool.now()
		r.spool.leaveLocked(r.layer)
	})
	return nil
}

// Size is how many bytes the layer has.
func (r *Reader) Size() int64 { return r.layer.size }

// File is what the layer's bytes are to be written to.
func (k *Layer) File() *os.File { return k.file }
