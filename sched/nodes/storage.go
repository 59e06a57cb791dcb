package nodes

import (
	"fmt"
	"slices"
	"strings"

	"gbatch/sched/spec"
)

// storageOf says whether a node has all storage of a shape, and which of it is
// away there now: empty, none is.
func (shape *Shape) storageOf(n *spec.Node) (away string, ok bool) {
	for _, s := range shape.Storage {
		r, ok := n.Root(s)
		if !ok {
			return "", false
		}
		if r.Away != "" && away == "" {
			away = r.Name
		}
	}
	return away, true
}

// Roots puts in place of each path the longest root that it lies below, of any node.
func (ix *Index) Roots(list []spec.Storage) []spec.Storage {
	var out []spec.Storage
	for _, s := range list {
		longest := ""
		for _, kind := range ix.Order {
			for _, r := range kind.Sample.Storage {
				if len(r.Name) > len(longest) && spec.Below(s.Path, r.Name) {
					longest = r.Name
				}
			}
		}
		if longest != "" {
			s.Path = longest
		}
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// StorageCount is on how many nodes some storage is that a job needs.
type StorageCount struct {
	spec.Storage
	Has, Away int // of the first, those on which it is away now
}

// countStorage counts for each storage of a shape where it is. All is how many
// nodes there are.
func (ix *Index) countStorage(shape *Shape) (list []StorageCount, all int) {
	if len(shape.Storage) == 0 {
		return nil, 0
	}
	list = make([]StorageCount, len(shape.Storage))
	for _, kind := range ix.Order {
		all += kind.Known
		for i, s := range shape.Storage {
			list[i].Storage = s
			if r, ok := kind.Sample.Root(s); ok {
				if list[i].Has += kind.Known; r.Away != "" {
					list[i].Away += kind.Known
				}
			}
		}
	}
	return list, all
}

// words says where the storage is, or nothing where all nodes have it.
func (c StorageCount) words(all int) string {
	if c.Has == all && c.Away == 0 {
		return ""
	}
	what := "storage " + c.Path
	if c.Write {
		what += " for writing"
	}
	text := fmt.Sprintf("%s is on %d of %d nodes", what, c.Has, all)
	if c.Away > 0 {
		text += fmt.Sprintf(", and away on %d of them", c.Away)
	}
	return text
}

// storageText says which storage no node has, or that no node has all of it.
func (ix *Index) storageText(shape *Shape) string {
	list, all := ix.countStorage(shape)
	var where []string
	for _, c := range list {
		what := c.Path
		if c.Write {
			what += " for writing"
		}
		if c.Has == 0 {
			return fmt.Sprintf("no node has storage %s (storage here: %s)", what, ix.rootsText())
		}
		if text := c.words(all); text != "" {
			where = append(where, text)
		}
	}
	return "no such node has all the storage: " + strings.Join(where, "; ")
}

// rootsText is the storage that there is, and on how many nodes.
func (ix *Index) rootsText() string {
	var names []string
	count, all := map[string]int{}, 0
	for _, kind := range ix.Order {
		all += kind.Known
		for _, r := range kind.Sample.Storage {
			if count[r.Name] == 0 && kind.Known > 0 {
				names = append(names, r.Name)
			}
			count[r.Name] += kind.Known
		}
	}
	if len(names) == 0 {
		return "none"
	}
	slices.Sort(names)
	more := ""
	if len(names) > maxRoots {
		names, more = names[:maxRoots], ", ..."
	}
	for i, name := range names {
		if count[name] < all {
			names[i] = fmt.Sprintf("%s on %d of %d nodes", name, count[name], all)
		}
	}
	return strings.Join(names, ", ") + more
}

// maxRoots bounds how many roots are named to a user.
const maxRoots = 16

// AwayText says that storage of the node's is away, and why.
func (n *Node) AwayText(root string) string {
	i := slices.IndexFunc(n.Storage, func(r spec.Root) bool { return r.Name == root })
	if i < 0 {
		return "storage " + root + " is away"
	}
	return fmt.Sprintf("storage %s is away: %s", root, n.Storage[i].Away)
}

// rootNames are the roots of a node, for people.
func rootNames(roots []spec.Root) string {
	var names []string
	for _, r := range roots {
		name := r.Name
		if r.ReadOnly {
			name += " (read-only)"
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return "none"
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
