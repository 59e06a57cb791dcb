package image

import (
	"context"
	"slices"
	"strings"

	"gbatch/oci/ref"
)

// Who may have what. Contents are shared between users, the right to them is
// not. A right is had by proof, and what was proven is remembered:
//
//   - An image, under the name of a repository: the registry let this login
//     read its manifest there. The answer of a registry counts only for what
//     that very repository has served in full before; any other name has to
//     show manifest, config and layers.
//   - A layer: this login got its bytes, or the place that once served these
//     very bytes says that it would serve them to this login too.
//
// So a digest alone, or a manifest that names it, gives nothing to someone
// whose registry does not have the bytes.

// grant is the right to an image under a name.
func grant(r ref.Ref, identity string) string { return r.Name() + " " + identity }

// allows reports whether credentials with that identity were let in before,
// or callers without any.
func (rec *record) allows(r ref.Ref, identity string) bool {
	return slices.Contains(rec.Grants, grant(r, identity)) || slices.Contains(rec.Grants, grant(r, anyone))
}

// served reports whether the image was had in full under that name.
func (rec *record) served(r ref.Ref) bool {
	return slices.ContainsFunc(rec.Grants, func(g string) bool {
		i := strings.LastIndexByte(g, ' ')
		return i >= 0 && g[:i] == r.Name()
	})
}

// remember adds to a list of rights, and forgets the oldest of too many: who
// had them proves them again.
func remember(list []string, right string) []string {
	if slices.Contains(list, right) {
		return list
	}
	list = append(slices.Clone(list), right)
	return list[max(0, len(list)-maxGrants):]
}

// allows reports whether a login at a place was given the layer, or callers
// without one were anywhere.
func (u *unpacked) allows(place, identity string) bool {
	return slices.Contains(u.Granted, place+" "+identity) ||
		slices.ContainsFunc(u.Granted, func(g string) bool { return strings.HasSuffix(g, " "+anyone) })
}

// servedBy reports whether those compressed bytes came from the place and were
// this layer when unpacked.
func (u *unpacked) servedBy(o *origin, l layer) bool {
	return slices.Contains(u.Served, o.place()+" "+l.desc.Digest.String())
}

// prove notes that an origin has given, or would give, the layer to an identity.
func (u *unpacked) prove(o *origin, l layer, identity string) {
	u.Served = remember(u.Served, o.place()+" "+l.desc.Digest.String())
	u.Granted = remember(u.Granted, o.place()+" "+identity)
}

// proveLayer sees whether the origin gives a layer that is in the store to its
// login.
func (s *Store) proveLayer(ctx context.Context, o *origin, l layer, info unpacked, watch func(Progress)) error {
	if info.servedBy(o, l) {
		if has, identity, err := o.has(ctx, l.desc); err == nil && has {
			watch(Progress{Bytes: l.desc.Size})
			return s.noteProof(o, l, identity)
		}
	}
	return s.retry(ctx, 0, func() error {
		identity, err := o.verify(ctx, l, func(n int64) { watch(Progress{Bytes: n}) })
		if err != nil {
			return err
		}
		watch(Progress{Bytes: l.desc.Size})
		return s.noteProof(o, l, identity)
	})
}

// noteProof writes down who may share a layer.
func (s *Store) noteProof(o *origin, l layer, identity string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	info, ok := s.layers[l.diffID.Hex]
	if !ok {
		return nil // lost meanwhile; it will be pulled
	}
	info.prove(o, l, identity)
	if err := writeJSON(s.layout.Marker(l.diffID.Hex), info); err != nil {
		return classifyLocal(err)
	}
	s.layers[l.diffID.Hex] = info
	return nil
}
