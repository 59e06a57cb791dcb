package userns

import (
	"math"
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// RangeSize is how many ids a container has: those that images use, up to the
// number by which most systems know nobody.
const RangeSize = 1 << 16

// Owner is who a container belongs to, by the host's numbers.
type Owner struct {
	UID uint32 // root inside is this user outside
	GID uint32 // the user's own group; group 0 inside
	// Groups are further groups of the host, such as the project's. Each has
	// the same number inside as outside, so that what a program is told of it
	// holds in both places.
	Groups []uint32
	// First is the first of RangeSize numbers, of users and of groups, that
	// belong to this owner alone. All other ids of the container come from it.
	First uint32
}

// Map says which id of the host each id of a container is. The zero value is no
// map: the container's ids are the host's.
type Map struct {
	UIDs, GIDs []specs.LinuxIDMapping
}

// MapOf returns the map of an owner's containers.
func MapOf(o Owner) Map {
	return Map{UIDs: extents(o.UID, nil, o.First), GIDs: extents(o.GID, o.Groups, o.First)}
}

// extents maps 0 to root, each of same to itself and the rest to the range from
// first on. The kernel refuses a map that has an id of the host twice.
func extents(root uint32, same []uint32, first uint32) []specs.LinuxIDMapping {
	same = slices.DeleteFunc(slices.Sorted(slices.Values(same)), func(id uint32) bool {
		return id == 0 || id == root || id == math.MaxUint32 || id-first < RangeSize
	})
	out := []specs.LinuxIDMapping{{ContainerID: 0, HostID: root, Size: 1}}
	next := uint32(1)
	add := func(until uint32) {
		if next < until {
			out = append(out, specs.LinuxIDMapping{ContainerID: next, HostID: first + next, Size: until - next})
		}
	}
	for _, id := range slices.Compact(same) {
		if id < RangeSize {
			add(id)
			next = id + 1
		}
		out = append(out, specs.LinuxIDMapping{ContainerID: id, HostID: id, Size: 1})
	}
	add(RangeSize)
	return out
}

// IsZero says that there is no map.
func (m Map) IsZero() bool { return len(m.UIDs) == 0 && len(m.GIDs) == 0 }

// Equal says that two maps are the same.
func (m Map) Equal(other Map) bool {
	return slices.Equal(m.UIDs, other.UIDs) && slices.Equal(m.GIDs, other.GIDs)
}

// Host returns the host's ids of a user and a group of the container. False
// means that the container has no such id.
func (m Map) Host(uid, gid uint32) (hostUID, hostGID int, ok bool) {
	if m.IsZero() {
		return int(uid), int(gid), true
	}
	u, uok := outside(m.UIDs, uid)
	g, gok := outside(m.GIDs, gid)
	return u, g, uok && gok
}

func outside(extents []specs.LinuxIDMapping, id uint32) (int, bool) {
	for _, e := range extents {
		if id >= e.ContainerID && id-e.ContainerID < e.Size {
			return int(e.HostID + (id - e.ContainerID)), true
		}
	}
	return 0, false
}

// InsideGID returns the container's number of a group of the host. False means
// that the container does not have it.
func (m Map) InsideGID(gid uint32) (uint32, bool) {
	if m.IsZero() {
		return gid, true
	}
	return inside(m.GIDs, gid)
}

// Inside returns the container's ids of a user and a group of the host. Who is
// nobody in the container is root there: the host's root, who made it.
func (m Map) Inside(uid, gid uint32) (insideUID, insideGID int) {
	if m.IsZero() {
		return int(uid), int(gid)
	}
	u, _ := inside(m.UIDs, uid)
	g, _ := inside(m.GIDs, gid)
	return int(u), int(g)
}

func inside(extents []specs.LinuxIDMapping, id uint32) (uint32, bool) {
	for _, e := range extents {
		if id >= e.HostID && id-e.HostID < e.Size {
			return e.ContainerID + (id - e.HostID), true
		}
	}
	return 0, false
}
