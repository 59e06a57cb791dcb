package rank

import (
	"errors"
	"fmt"
	"os"

	"gbatch/internal/node"
	"gbatch/internal/noded/record"
)

// The files of a rank's directory, beside the container's.
const (
	fileStop   = "stop.json"
	FileAlone  = "alone"  // marks one that runs on without contact, for the guard of leases
	fileWarned = "warned" // marks a rank that was sent its early warning
	fileMeter  = "gpus.json"
)

// record notes durably, before anything of the user's can run, what the rank
// is and which cores it has.
func (r *Rank) record(s *state) error {
	rec := record.Record{ID: r.order.id, Order: r.order.RunOrder, Cores: r.cores.CPUs.String(), Digest: r.image.Digest, Before: r.digests(), Boot: r.node.Boot, Link: r.net.Link(), Ports: s.now().Ports, Cached: r.inputs.Cached}
	if r.order.at != r.order.id {
		rec.Home = &r.order.at
	}
	if err := r.order.saveRecord(rec); err != nil {
		return fmt.Errorf("record rank: %w", err)
	}
	if r.order.Alone {
		if err := record.Mark(r.order.dir, FileAlone); err != nil {
			return fmt.Errorf("record rank: %w", err)
		}
	}
	s.setPhase(node.PhaseStarting)
	return nil
}

// PutAside makes room for a rank of the job with this UUID where the log of
// another job's is kept, and says where that is now.
func PutAside(dir, uuid string) (string, error) {
	rec, err := record.Load(dir)
	if err == nil && node.SameJob(rec.Order.UUID, uuid) {
		return dir, nil
	}
	aside := record.Aside(dir, rec.Order.UUID)
	return aside, errors.Join(RemoveDir(aside), os.Rename(dir, aside))
}
