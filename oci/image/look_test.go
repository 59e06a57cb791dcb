package image

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"gbatch/oci/ref"
)

// info describes an image in the store.
type info struct {
	Digest  string
	Refs    []string // names it was pulled by, newest last
	Size    int64    // unpacked bytes, shared layers included
	LastUse time.Time
	Holds   []string // ids, sorted
}

// Images lists the store, most recently used first.
func (s *Store) Images() []info {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := map[string][]string{}
	for id, h := range s.holds {
		held[h.Digest] = append(held[h.Digest], id)
	}
	list := make([]info, 0, len(s.images))
	for digest, rec := range s.images {
		slices.Sort(held[digest])
		list = append(list, info{Digest: digest, Refs: slices.Clone(rec.Refs), Size: rec.Size, LastUse: rec.lastUse, Holds: held[digest]})
	}
	slices.SortFunc(list, func(a, b info) int {
		return cmp.Or(b.LastUse.Compare(a.LastUse), strings.Compare(a.Digest, b.Digest))
	})
	return list
}

// Resolve returns the digest that a reference names now, as Image.Digest would
// have it, and checks that the credentials may read it. It pulls nothing.
func (s *Store) Resolve(ctx context.Context, r ref.Ref, creds *ref.Credentials) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.config.PullTimeout, errPullTimeout)
	defer cancel()
	digest, err := s.resolve(ctx, r, creds)
	if err != nil {
		return "", s.errorFor(r, err)
	}
	return digest.String(), nil
}

// Load returns an image that is in the store, without asking whether the
// caller may use it: for those that it holds. It fails if the image is not
// there in full.
func (s *Store) Load(digest string) (*Image, error) {
	_, img := s.image(digest)
	if img == nil {
		return nil, fmt.Errorf("load image %s: %w", digest, errAbsent)
	}
	return img, nil
}
