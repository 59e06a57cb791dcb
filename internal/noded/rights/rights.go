package rights

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"

	"gbatch/oci/userns"
)

// Rights are those of one user. The zero value is root without capabilities.
type Rights struct {
	id     id
	first  uint32 // of the ids that belong to this user alone; 0: none
	daemon bool
}

// id is who the kernel takes a thread for when it looks at files.
type id struct {
	uid, gid uint32
	groups   []uint32
}

// Of returns the rights that root of an owner's containers has.
func Of(o userns.Owner) Rights {
	return Rights{id: id{o.UID, o.GID, o.Groups}, first: o.First}
}

// Daemon returns this process's own rights, for what is no user's and for jobs
// that are root on the node.
func Daemon() Rights { return Rights{daemon: true} }

// OfProcess returns the rights at files that a process has.
func OfProcess(pid int) (Rights, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return Rights{}, err
	}
	const fsID = 3 // of the real, effective, saved and file system's
	ids := map[string][]uint32{}
	for line := range strings.Lines(string(text)) {
		name, list, _ := strings.Cut(line, ":")
		if name != "Uid" && name != "Gid" && name != "Groups" {
			continue
		}
		for _, word := range strings.Fields(list) {
			n, err := strconv.ParseUint(word, 10, 32)
			if err != nil {
				return Rights{}, err
			}
			ids[name] = append(ids[name], uint32(n))
		}
	}
	if len(ids["Uid"]) <= fsID || len(ids["Gid"]) <= fsID {
		return Rights{}, errors.New("the process has no ids")
	}
	return Rights{id: id{ids["Uid"][fsID], ids["Gid"][fsID], ids["Groups"]}}, nil
}

// Do calls do with these rights. They hold for the thread that do is called on,
// and thus for the system calls that do makes itself: not for goroutines that
// it begins, nor for what is done later with files that it opened.
func (r Rights) Do(do func() error) error {
	if r.daemon {
		return do()
	}
	return r.id.do(do)
}

// Reach is Do for the file of a name below a root. A container has other
// users than its root, whose ids belong to this user alone, and its root may
// read and write what those keep to themselves. So where do is refused it is
// called again, as the last on the way to the file of those whom a directory or
// the file belongs to.
func (r Rights) Reach(root *os.Root, name string, do func() error) error {
	err := r.Do(do)
	if r.daemon || r.first == 0 || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	as := r.id
	for part := range prefixes(name) {
		var st fs.FileInfo
		look := func() (err error) { st, err = root.Lstat(part); return err }
		// The root itself is held, and is looked at by the daemon: who may not pass it cannot.
		if part == "." && look() != nil || part != "." && as.do(look) != nil {
			break
		}
		if o, ok := st.Sys().(*syscall.Stat_t); ok && r.owns(o.Uid) {
			as.uid = o.Uid
			if r.owns(o.Gid) {
				as.gid = o.Gid
			}
		}
	}
	if as.uid == r.id.uid {
		return err
	}
	return as.do(do)
}

func (r Rights) owns(n uint32) bool { return n-r.first < userns.RangeSize }

// prefixes are the directories on the way to a name, and the name.
func prefixes(name string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		if !yield(".") || name == "." {
			return
		}
		for i, c := range name {
			if c == '/' && !yield(name[:i]) {
				return
			}
		}
		yield(strings.TrimSuffix(name, "/"))
	}
}
