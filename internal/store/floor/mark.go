package floor

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
)

// Mark says which database it is and how far it has come.
type Mark struct {
	ID    uint64   // of the database, drawn when it is made or taken over
	Count uint64   // commits since then
	Hash  [32]byte // over the hash before and what was committed
}

// Next is the mark after a commit of these bytes.
func (m Mark) Next(commit []byte) Mark {
	h := sha256.New()
	h.Write(m.Hash[:])
	h.Write(commit)
	m.Count++
	h.Sum(m.Hash[:0])
	return m
}

const (
	markSize = 8 + 8 + 32 + checkSize
	// checkSize is of the checksum by which a mark that was half written is told.
	checkSize = 8
)

// Encode gives a mark as bytes.
func (m Mark) Encode() []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, markSize), m.ID)
	b = binary.BigEndian.AppendUint64(b, m.Count)
	b = append(b, m.Hash[:]...)
	sum := sha256.Sum256(b)
	return append(b, sum[:checkSize]...)
}

// Decode is the inverse of Encode.
func Decode(b []byte) (Mark, error) {
	if len(b) != markSize {
		return Mark{}, errors.New("mark of the commits is cut off")
	}
	body := b[:markSize-checkSize]
	if sum := sha256.Sum256(body); !bytes.Equal(sum[:checkSize], b[len(body):]) {
		return Mark{}, errors.New("mark of the commits is damaged")
	}
	m := Mark{ID: binary.BigEndian.Uint64(b), Count: binary.BigEndian.Uint64(b[8:])}
	copy(m.Hash[:], b[16:])
	return m, nil
}
