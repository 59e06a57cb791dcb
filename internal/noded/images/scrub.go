package images

import (
	"log/slog"
	"slices"
)

// Scrub reads all image layers from the disk, at pace, and logs those that were damaged, with the ranks
// that may have read of them: they go on, and nobody else gets these layers. It says how many there were.
func (u *Holds) Scrub(log *slog.Logger, pace func(bytes int64) error) (int, error) {
	found, err := u.Store.Verify(pace)
	for _, d := range found {
		log.Error("an image layer was damaged on the disk: it is pulled again with the next image that needs it; jobs that run on it may have read what was damaged",
			"layer", d.Layer, "why", d.Why, "jobs", u.running(d.Held))
	}
	return len(found), err
}

// running are the ranks that run on images, in order.
func (u *Holds) running(digests []string) []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	names := []string{}
	for id, own := range u.used {
		if id != aheadID(id.Job) && slices.ContainsFunc(own, func(d string) bool { return slices.Contains(digests, d) }) {
			names = append(names, id.String())
		}
	}
	slices.Sort(names)
	return names
}
