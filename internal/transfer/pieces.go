package transfer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
)

// pieceSums has the sum of each piece that came, in a file that is read when a transfer goes on
// after a break. The pieces are then held against their sums: a power cut may have kept a sum and
// not the bytes, and a disk may have changed them since.
type pieceSums struct {
	known map[pieceID]uint32 // of before; never changes

	mu   sync.Mutex
	file *os.File
}

// pieceID names a piece by what is fetched: the same of another version is another one.
type pieceID struct {
	Object [16]byte
	Piece  uint32
}

// pieceSum is an entry of the file. A later one of the same piece counts. A last one that was cut off is none.
type pieceSum struct {
	pieceID
	Sum uint32 // CRC-32C
}

var sumSize = int64(binary.Size(pieceSum{}))

func newSum() hash.Hash32 { return crc32.New(crc32.MakeTable(crc32.Castagnoli)) }

func openSums(path string) (*pieceSums, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	s := &pieceSums{known: map[pieceID]uint32{}, file: f}
	data, err := io.ReadAll(f)
	if err == nil {
		err = f.Truncate(int64(len(data)) / sumSize * sumSize)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	for in := bytes.NewReader(data); ; {
		var e pieceSum
		if binary.Read(in, binary.BigEndian, &e) != nil {
			return s, nil
		}
		s.known[e.pieceID] = e.Sum
	}
}

// note writes down that a piece is here, after its bytes.
func (s *pieceSums) note(p pieceID, sum uint32) error {
	b, err := binary.Append(nil, binary.BigEndian, pieceSum{p, sum})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err = s.file.Write(b)
	return err
}

// partial is an object of which not all is here.
type partial struct {
	Object
	id     [16]byte
	path   string
	pieces int
	size   int64        // of a piece
	left   atomic.Int64 // pieces that are still to come
}

// newPartial says in which pieces an object comes, and into which file. Nothing is made yet.
func (x *fetching) newPartial(o Object) *partial {
	sum := sha256.Sum256([]byte(o.Name + "\x00" + o.Version + "\x00" + fmt.Sprint(o.Size)))
	p := &partial{Object: o, id: [16]byte(sum[:16]), size: x.c.pieceSize, pieces: 1}
	p.path = filepath.Join(x.Dir, partsDir, hex.EncodeToString(p.id[:]))
	if o.Size > p.size && !o.FromStart {
		p.pieces = int((o.Size + p.size - 1) / p.size)
	} else {
		p.size = o.Size
	}
	p.left.Store(int64(p.pieces))
	return p
}

func (p *partial) piece(i int) pieceID { return pieceID{p.id, uint32(i)} }

// interval is where a piece begins and ends; it ends at -1 where the size of the object is not known.
func (p *partial) interval(i int) (from, to int64) {
	if p.Size < 0 {
		return 0, -1
	}
	return int64(i) * p.size, min(int64(i+1)*p.size, p.Size)
}

// makeFile makes the file of an object, or finds the one that was there before a break.
func (x *fetching) makeFile(o Object) (*partial, error) {
	p := x.newPartial(o)
	f, err := os.OpenFile(p.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, local(err)
	}
	defer f.Close()
	if o.Size >= 0 {
		if err := f.Truncate(o.Size); err != nil {
			return nil, local(err)
		}
	}
	return p, nil
}

// has says whether a piece in f is the one that came before a break. An object without a version
// may be another one by now, so none of it counts. One without bytes is there at once.
func (x *fetching) has(p *partial, f *os.File, i int) bool {
	from, to := p.interval(i)
	want, ok := x.sums.known[p.piece(i)]
	if p.Size <= 0 || p.Version == "" || !ok {
		return p.Size == 0
	}
	sum := newSum()
	n, err := io.Copy(sum, io.NewSectionReader(f, from, to-from))
	return err == nil && n == to-from && sum.Sum32() == want
}

// intact says whether an object that was put to its place before a break still is what came then.
func (x *fetching) intact(ctx context.Context, o Object) bool {
	f, err := x.root.Open(o.Name)
	if err != nil {
		return false
	}
	defer f.Close()
	p := x.newPartial(o)
	for i := range p.pieces {
		if ctx.Err() != nil || !x.has(p, f, i) {
			return false
		}
	}
	return true
}
