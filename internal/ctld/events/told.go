package events

import "sync"

const (
	toldEvents = 256      // that are kept as they were written, of each audience
	toldBytes  = 16 << 10 // one that is longer is written anew for each stream
)

// told keeps the last events of jobs as they were written for one audience: with
// many streams each change is written once and not for each of them.
type told struct {
	mu   sync.Mutex
	last [toldEvents]struct {
		id   uint64
		text []byte
	}
}

// text is the event of an id; write makes it where it is not kept. It is not to be
// changed.
func (t *told) text(id uint64, write func() ([]byte, error)) ([]byte, error) {
	at := &t.last[id%toldEvents]
	t.mu.Lock()
	if at.id == id {
		defer t.mu.Unlock()
		return at.text, nil
	}
	t.mu.Unlock()
	text, err := write()
	if err != nil || len(text) > toldBytes {
		return text, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if id >= at.id { // a stream that is behind takes no place from newer ones
		at.id, at.text = id, text
	}
	return text, nil
}
