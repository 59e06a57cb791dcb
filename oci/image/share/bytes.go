package share

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Verify reads what another node sent, and at the end fails by wrong where that is not what was wanted.
func Verify(r io.ReadCloser, want v1.Descriptor, wrong func(text string) error) io.ReadCloser {
	return &verified{ReadCloser: r, want: want, sum: sha256.New(), wrong: wrong}
}

// verified verifies what another node sent.
type verified struct {
	io.ReadCloser
	want v1.Descriptor
	sum  hash.Hash
	n    int64

	wrong func(text string) error
}

func (r *verified) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.sum.Write(p[:n])
	r.n += int64(n)
	switch {
	case err != io.EOF:
	case r.n < r.want.Size:
		return n, r.wrong("another node broke off")
	case hex.EncodeToString(r.sum.Sum(nil)) != r.want.Digest.Hex:
		return n, r.wrong("what another node sent does not match its digest")
	}
	return n, err
}

// Copy writes the bytes of a layer into the file for other nodes. That it cannot harms nobody.
type Copy struct {
	File   *os.File // nil: they are not kept
	n      int64
	failed bool
}

func (k *Copy) Write(p []byte) (int, error) {
	if k.File != nil && !k.failed {
		n, err := k.File.Write(p)
		k.n += int64(n)
		k.failed = err != nil
	}
	return len(p), nil
}

// All says whether the whole layer is in the file.
func (k *Copy) All(size int64) bool { return k.File != nil && !k.failed && k.n == size }

// Close closes the file.
func (k *Copy) Close() {
	if k.File != nil {
		k.File.Close()
	}
}
