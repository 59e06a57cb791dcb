package trees

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sort"

	"gbatch/internal/tree"
)

func nothing(*tar.Header, io.Reader) error { return nil }

// open is the archive of a user's tree; fs.ErrNotExist: there is none.
func (s *Store) open(user, id string) (io.ReadSeeker, error) {
	o, err := s.owner(user)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	k := o.trees[id]
	if k == nil {
		return nil, fs.ErrNotExist
	}
	r := o.open(k.Manifest)
	r.unlocked = true
	return r, nil
}

// open reads the chunks of a manifest, one after the other.
func (o *owner) open(m tree.Manifest) *reader {
	r := &reader{o: o, m: m, ends: make([]int64, len(m.Chunks))}
	var end int64
	for i, c := range m.Chunks {
		end += c.Size
		r.ends[i] = end
	}
	return r
}

// reader is an archive as its chunks have it. What a disk has changed of them is
// an error.
type reader struct {
	o    *owner
	m    tree.Manifest
	ends []int64 // of the chunks, in the archive
	at   int64
	data []byte // of the chunk that was read last
	last int    // its place in the manifest

	unlocked bool // the owner's mutex is not held while this reads
}

func (r *reader) Read(p []byte) (int, error) {
	i := sort.Search(len(r.ends), func(i int) bool { return r.ends[i] > r.at })
	if i == len(r.ends) {
		return 0, io.EOF
	}
	c := r.m.Chunks[i]
	if r.data == nil || r.last != i {
		data, err := os.ReadFile(r.o.chunkPath(c.Sum))
		if err == nil && tree.SumOf(data) != c.Sum {
			err = errors.New("its bytes are not what was sent: the disk has changed them")
		}
		if err != nil {
			if r.unlocked { // whoever asks again gets what another controller has
				_, gone := r.o.verify(c.Sum)
				err = errors.Join(err, gone)
			}
			return 0, fmt.Errorf("read chunk %s of an uploaded directory: %w", c.Sum, err)
		}
		r.data, r.last = data, i
	}
	n := copy(p, r.data[c.Size-(r.ends[i]-r.at):])
	r.at += int64(n)
	return n, nil
}

func (r *reader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += r.at
	case io.SeekEnd:
		offset += r.m.Bytes()
	}
	if offset < 0 {
		return 0, errors.New("seek before the beginning")
	}
	r.at = offset
	return offset, nil
}
