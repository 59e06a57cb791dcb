package store

import (
	"encoding/binary"
	"log/slog"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"gbatch/internal/job"
	"gbatch/internal/state"
)

// FuzzMemberBatch has a member apply anything as what another controller has sent: it
// is refused or can be read, and after it the member applies a batch that is none of that.
func FuzzMemberBatch(f *testing.F) {
	seeds, err := pebble.Open("seeds", &pebble.Options{FS: vfs.NewMem(), Logger: quiet{slog.New(slog.DiscardHandler), nil}})
	if err != nil {
		f.Fatal(err)
	}
	batch := func(fill func(*pebble.Batch) error) []byte {
		b := seeds.NewBatch()
		defer b.Close()
		if err := fill(b); err != nil {
			f.Fatal(err)
		}
		return append([]byte(nil), b.Repr()...)
	}
	one := state.Record{Kind: state.KindJob, Job: 7, Value: []byte("v")}
	good := batch(func(b *pebble.Batch) error { return b.Set(key(one), value(one), nil) })
	f.Add(good)
	f.Add(batch(func(b *pebble.Batch) error { return b.Delete(key(one), nil) }))
	f.Add(batch(func(b *pebble.Batch) error { return b.DeleteRange([]byte("j"), []byte("k"), nil) }))
	f.Add(batch(func(b *pebble.Batch) error { return b.Merge([]byte("j"), []byte("k"), nil) }))
	f.Add(batch(func(b *pebble.Batch) error { return b.Set(nil, nil, nil) }))
	f.Add(good[:batchHeader+1])
	f.Add([]byte("short"))
	if err := seeds.Close(); err != nil {
		f.Fatal(err)
	}
	told := 0
	cfg := Config{Dir: "db", FS: vfs.NewMem(), Log: slog.New(slog.DiscardHandler), Applied: func(uint64, job.Number, []byte) { told++ }}
	if err := Found(cfg); err != nil {
		f.Fatal(err)
	}
	s, err := OpenMember(cfg)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = s.Close() }) // what it applied may be anything
	place := uint64(0)
	f.Fuzz(func(t *testing.T, sent []byte) {
		place++
		before := s.Commits()
		if err := s.Apply(place, 0, sent); err != nil {
			if readBatch(sent, nil) != nil && s.Commits() != before {
				t.Errorf("a batch that cannot be read is counted: %v", err)
			}
		} else if n := binary.LittleEndian.Uint32(sent[batchHeader-4:]); n == 0 && len(sent) > batchHeader {
			t.Errorf("%d bytes are no entries", len(sent))
		}
		place++
		told = 0
		if err := s.Apply(place, 0, good); err != nil || told != 1 {
			t.Fatalf("the next batch: %v, %d jobs told", err, told)
		}
	})
}
