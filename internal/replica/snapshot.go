package replica

import (
	"errors"
	"fmt"

	"github.com/hashicorp/raft"

	"gbatch/internal/store"
)

// snapshot is a copy of a store that is being sent or kept.
type snapshot struct{ copied store.Config }

// Persist writes the copy.
func (s snapshot) Persist(sink raft.SnapshotSink) error {
	if err := s.copied.Pack(sink); err != nil {
		return errors.Join(fmt.Errorf("copy the store: %w", err), sink.Cancel())
	}
	return sink.Close()
}

// Release removes it.
func (s snapshot) Release() { _ = s.copied.Remove() } // what stays is removed before the next one
