package vmtest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"testing"
)

// sector is what a disk writes whole or not at all.
const sector = 512

// diskWrite is one request of a guest to its disk, as the emulator notes them (blklogwrites: the format of the kernel's dm-log-writes):
// a sector with four numbers, and what is written.
type diskWrite struct {
	to    int64 // byte
	data  []byte
	flags uint64
	end   int64 // where the note of it ends: in bytes of the file
}

const (
	flushes  = 1 // what was written before is durable
	durable  = 2 // it is durable when it is done
	discards = 4 // nothing is written
)

const writesMagic = 0x6a736677736872

// readWrites reads what is noted wholly.
func readWrites(r io.Reader) (all []diskWrite, err error) {
	var super struct {
		Magic, Version, Entries uint64
		Sector                  uint32
	}
	if err := binary.Read(r, binary.LittleEndian, &super); err != nil {
		return nil, fmt.Errorf("read notes of writes: %w", err)
	}
	if super.Magic != writesMagic || super.Version != 1 || super.Sector != sector {
		return nil, fmt.Errorf("notes of writes are %+v", super)
	}
	if _, err := io.CopyN(io.Discard, r, sector-28); err != nil {
		return nil, err
	}
	at := int64(sector)
	for range super.Entries {
		var head struct{ To, Sectors, Flags, Len uint64 }
		if err := binary.Read(r, binary.LittleEndian, &head); err != nil {
			return all, fmt.Errorf("after %d notes: %w", len(all), err)
		}
		w := diskWrite{to: int64(head.To) * sector, flags: head.Flags}
		if head.Flags&discards == 0 {
			w.data = make([]byte, head.Sectors*sector)
		}
		_, err := io.CopyN(io.Discard, r, sector-32)
		if _, e := io.ReadFull(r, w.data); errors.Join(err, e) != nil {
			return all, fmt.Errorf("after %d notes: %w", len(all), errors.Join(err, e))
		}
		at += sector + int64(len(w.data))
		w.end = at
		all = append(all, w)
	}
	return all, nil
}

// cut writes to a disk what is left of writes when the power is lost after them: all before the last flush and what is durable by
// itself; of the others those that fate keeps, some in part.
func cut(disk io.WriterAt, writes []diskWrite, fate *rand.Rand) (lost int, err error) {
	safe := 0
	for i, w := range writes {
		if w.flags&flushes != 0 {
			safe = i
		}
	}
	for i, w := range writes {
		keep := len(w.data)
		if i > safe && w.flags&durable == 0 {
			switch fate.IntN(3) {
			case 0:
				keep = 0
			case 1:
				keep = sector * fate.IntN(keep/sector+1)
			}
		}
		if keep < len(w.data) {
			lost++
		}
		if _, err := disk.WriteAt(w.data[:keep], w.to); err != nil {
			return lost, err
		}
	}
	return lost, nil
}

func TestWritesAreCut(t *testing.T) {
	var notes bytes.Buffer
	note := func(to, flags uint64, data string) {
		head := make([]byte, sector)
		for i, n := range []uint64{to, uint64(len(data)), flags, 0} {
			binary.LittleEndian.PutUint64(head[8*i:], n)
		}
		notes.Write(head)
		for _, c := range data {
			notes.Write(bytes.Repeat([]byte{byte(c)}, sector))
		}
	}
	super := make([]byte, sector)
	for i, n := range []uint64{writesMagic, 1, 5, sector} {
		binary.LittleEndian.PutUint64(super[8*i:], n)
	}
	notes.Write(super)
	note(0, 0, "ab")
	note(2, flushes, "")
	note(1, durable, "c")
	note(0, 0, "defg")
	note(9, discards, "")
	all, err := readWrites(&notes)
	if err != nil || len(all) != 5 {
		t.Fatalf("%v: %d notes", err, len(all))
	}
	seen := map[string]bool{}
	for seed := range uint64(100) {
		f, err := os.CreateTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := cut(f, all, rand.New(rand.NewPCG(seed, 0))); err != nil {
			t.Fatal(err)
		}
		text := make([]byte, 4*sector)
		if _, err := f.ReadAt(text, 0); err != nil && err != io.EOF {
			t.Fatal(err)
		}
		f.Close()
		seen[string([]byte{text[0], text[sector], text[2*sector], text[3*sector]})] = true
	}
	for _, want := range []string{"ac\x00\x00", "dc\x00\x00", "de\x00\x00", "def\x00", "defg"} {
		if !seen[want] {
			t.Errorf("never %q", want)
		}
		delete(seen, want)
	}
	for text := range seen {
		t.Errorf("%q", text)
	}
}
