package images

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"gbatch/oci/atomicfile"
	"gbatch/oci/ref"
)

// Steps are the images that steps of a rank were begun in beside the job's own, which
// are held until the rank's end. It is on disk before such a container begins.
type Steps struct {
	file string

	mu sync.Mutex // held also while it is written
	pins
}

// pins are references with digests: an image stays the same for all steps of a rank.
type pins struct {
	Asked map[string]string `json:"asked"` // by what steps call it
	Named map[string]string `json:"named"` // by the name of a container
}

// Bounds of one rank: none of its images can be removed meanwhile, and all of this is
// written with each that is new.
const (
	maxStepImages = 16
	maxStepNames  = 64 // of containers
)

const fileStepImages = "images.json"

// LoadSteps reads what an earlier daemon wrote down.
func LoadSteps(dir string) (*Steps, error) {
	s := &Steps{file: filepath.Join(dir, fileStepImages), pins: pins{map[string]string{}, map[string]string{}}}
	b, err := atomicfile.Read(s.file)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &s.pins)
	}
	return s, err
}

// Pin notes which image a step's container has that was asked for by an image, a name or both.
func (s *Steps) Pin(asked, name string, r ref.Ref) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := r.String()
	if s.Named[name] == at || name == "" && (asked == "" || s.Asked[asked] == at) {
		return nil
	}
	next := pins{maps.Clone(s.Asked), maps.Clone(s.Named)}
	if asked != "" {
		next.Asked[asked] = at
	}
	if name != "" {
		next.Named[name] = at
	}
	b, err := json.Marshal(next)
	if err == nil {
		err = atomicfile.WriteDurable(s.file, atomicfile.Sum(b))
	}
	if err == nil {
		s.pins = next
	}
	return err
}

// Digests are those of all of them.
func (s *Steps) Digests() (list []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range slices.Concat(slices.Collect(maps.Values(s.Asked)), slices.Collect(maps.Values(s.Named))) {
		if r, _, err := ref.Parse(at); err == nil {
			list = append(list, r.Digest)
		}
	}
	return list
}

// Find is the image that a step asks for: that of the name, where there is one.
func (s *Steps) Find(asked, name string, own ref.Ref) (r ref.Ref, creds *ref.Credentials, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, known := s.Named[name]
	if !known {
		at, known = s.Asked[asked]
	}
	_, named := s.Named[name]
	switch {
	case name != "" && !named && len(s.Named) >= maxStepNames:
		return r, nil, fmt.Errorf("steps of the job have had %d names of containers on this node, which is the most: use one of them again, or none", maxStepNames)
	case known:
	case asked == "":
		return own, nil, nil
	case len(s.Asked) >= maxStepImages:
		return r, nil, fmt.Errorf("steps of the job have had %d images on this node, which is the most: give further ones a job of their own", maxStepImages)
	default:
		at = asked
	}
	r, creds, err = ref.Parse(at)
	if err == nil && r.Digest == "" && r.String() == own.WithDigest("").String() {
		r = own
	}
	return r, creds, err
}
