package jobstore

import (
	"crypto/sha256"
	"encoding/base64"
	"sync"

	"gbatch/internal/job"
	"gbatch/internal/state"
)

// documents are those that were read lately, by their names: the tasks of an array have one, and so have
// jobs that are alike.
type documents struct {
	mu    sync.Mutex
	known map[string]*job.Spec
	bytes int // of their texts
}

// maxDocuments and maxDocumentBytes bound them. When there are more they are read anew.
const (
	maxDocuments     = 4096
	maxDocumentBytes = 16 << 20
)

// Named is Document for those who only read it, and its name, which is of what is in it.
func (r *Reader) Named(j *state.Job) (string, *job.Spec, error) {
	text, err := r.text(j)
	if err != nil {
		return "", nil, err
	}
	sum := sha256.Sum256(text)
	name := base64.RawURLEncoding.EncodeToString(sum[:])
	if j.Cron != nil { // its document has what others that share the text have not
		name += ".cron"
	}
	d := &r.documents
	d.mu.Lock()
	spec := d.known[name]
	d.mu.Unlock()
	if spec != nil {
		return name, spec, nil
	}
	if spec, err = document(j, text); err != nil {
		return "", nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.bytes += len(text); d.known == nil || len(d.known) >= maxDocuments || d.bytes > maxDocumentBytes {
		d.known, d.bytes = map[string]*job.Spec{}, len(text)
	}
	d.known[name] = spec
	return name, spec, nil
}
