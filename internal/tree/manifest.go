package tree

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// MaxChunk bounds a chunk's bytes.
const MaxChunk = 512 << 10

// Chunk is a piece of a tree's archive.
type Chunk struct {
	Sum  string `json:"sum"` // SHA-256, in hex
	Size int64  `json:"size"`
}

// Manifest is the chunks of a tree in their order.
type Manifest struct {
	Chunks []Chunk `json:"chunks"`
}

// ID names a tree by its content.
func (m Manifest) ID() string {
	h := sha256.New()
	for _, c := range m.Chunks {
		fmt.Fprintf(h, "%s %d\n", c.Sum, c.Size)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Bytes is the length of the archive.
func (m Manifest) Bytes() (n int64) {
	for _, c := range m.Chunks {
		n += c.Size
	}
	return n
}

// IsSum says whether a text is a SHA-256 as chunks and trees are named.
func IsSum(s string) bool {
	return len(s) == 2*sha256.Size && strings.Trim(s, "0123456789abcdef") == ""
}

// Check refuses a manifest that no tree has.
func (m Manifest) Check() error {
	if len(m.Chunks) == 0 {
		return fmt.Errorf("a tree has at least one chunk")
	}
	for i, c := range m.Chunks {
		if !IsSum(c.Sum) || c.Size < 1 || c.Size > MaxChunk {
			return fmt.Errorf("chunk %d is none: want a SHA-256 and 1 to %d bytes", i, MaxChunk)
		}
	}
	return nil
}

// SumOf is the name of a chunk with this content.
func SumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
