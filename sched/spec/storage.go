package spec

import "strings"

// Storage is what a rank mounts or writes of a node's file systems, as jobs name
// it: a path, or .ssh.
type Storage struct {
	Path  string `json:"path"`
	Write bool   `json:"write,omitempty"` // it must be possible to write there
}

// Root is storage that a node has: what lies below Name.
type Root struct {
	Name     string `json:"name"`
	ReadOnly bool   `json:"readOnly,omitempty"`
	Away     string `json:"away,omitempty"` // why it is not there now; empty: it is
}

// Below says whether a path is a root or lies below it.
func Below(path, root string) bool {
	rest, ok := strings.CutPrefix(path, root)
	return ok && (rest == "" || rest[0] == '/')
}

// Root is that of the node's on which the storage lies, the longest by name, and
// whether there is one. A node that has not told its roots has all that is asked.
func (n *Node) Root(s Storage) (r Root, ok bool) {
	if n.Storage == nil {
		return Root{Name: s.Path}, true
	}
	for _, x := range n.Storage {
		if Below(s.Path, x.Name) && (!ok || len(x.Name) > len(r.Name)) {
			r, ok = x, true
		}
	}
	return r, ok && !(s.Write && r.ReadOnly)
}

// key is equal for equal storage.
func (s Storage) key() string {
	if s.Write {
		return s.Path + " w"
	}
	return s.Path + " r"
}
