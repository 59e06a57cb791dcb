package replica

import (
	"bytes"
	"io"
	"log/slog"
	"path/filepath"
	"testing"

	"gbatch/internal/state"
	"gbatch/internal/store"
)

// TestCopyRefused: a member that cannot take another one's store keeps its own, and has to end, as it would stay behind.
func TestCopyRefused(t *testing.T) {
	cfg := store.Config{Dir: filepath.Join(t.TempDir(), "store")}
	if err := store.Found(cfg); err != nil {
		t.Fatal(err)
	}
	m := newMachine(cfg, slog.New(slog.DiscardHandler))
	var err error
	if m.st, err = store.OpenMember(cfg); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := m.Restore(io.NopCloser(bytes.NewReader([]byte("no archive, though it is as long as its first block")))); err == nil {
		t.Fatal("it was taken")
	}
	select {
	case err := <-m.Failed():
		t.Log(err)
	default:
		t.Error("the process goes on")
	}
	if err := m.Read(func(s *store.Store) error { return s.All(state.KindJob, func(state.Record) error { return nil }) }); err != nil || m.st == nil {
		t.Errorf("its own store is gone: %v", err)
	}
}
