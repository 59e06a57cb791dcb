package unpack

import (
	"bufio"
	"bytes"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

type compression int

const (
	none compression = iota
	gzipped
	zstandard
)

// Compressed says whether bytes that begin like this are compressed.
func Compressed(magic []byte) bool { return compressionOf(magic) != none }

func compressionOf(magic []byte) compression {
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		return gzipped
	case bytes.HasPrefix(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return zstandard
	}
	return none
}

// zstdMemory bounds the window that a layer may ask for.
const zstdMemory = 256 << 20

// decompress goes by the content, as media types in manifests are wrong too
// often. The closer frees the decoder, not r.
func decompress(r io.Reader) (io.Reader, func(), error) {
	in := bufio.NewReaderSize(r, 1<<16)
	magic, err := in.Peek(4)
	if err != nil && err != io.EOF {
		return nil, nil, err
	}
	switch compressionOf(magic) {
	case gzipped:
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, nil, err
		}
		return z, func() { z.Close() }, nil
	case zstandard:
		z, err := zstd.NewReader(in, zstd.WithDecoderMaxMemory(zstdMemory), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, nil, err
		}
		return z, z.Close, nil
	}
	return in, func() {}, nil
}
