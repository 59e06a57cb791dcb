package image

import "sync"

// tracker adds up the progress of an image's layers.
type tracker struct {
	hub *hub

	mu sync.Mutex
	p  Progress
}

func newTracker(h *hub, layers int) *tracker {
	return &tracker{hub: h, p: Progress{Phase: phaseDownload, Layers: layers}}
}

func (t *tracker) update(change func(*Progress)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(&t.p)
	t.p.Phase = phaseDownload
	if t.p.Bytes >= t.p.Total {
		t.p.Phase = PhaseUnpack
	}
	t.hub.publish(t.p)
}

// expect adds a layer that must be downloaded.
func (t *tracker) expect(size int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.p.Total += size
}

// layer returns the watcher of one layer.
func (t *tracker) layer() func(Progress) {
	var before int64
	return func(l Progress) {
		t.update(func(p *Progress) {
			p.Bytes += l.Bytes - before
			before = l.Bytes
		})
	}
}

// done counts a layer as finished.
func (t *tracker) done() { t.update(func(p *Progress) { p.LayersDone++ }) }
