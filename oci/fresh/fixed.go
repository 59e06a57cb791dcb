package fresh

import "golang.org/x/sys/unix"

// Fixed is a small file system of a container in which nothing is to be made, as /dev.
type Fixed struct {
	fd           int
	files, space uint64 // what is free
}

// OpenFixed takes hold of one, likewise.
func OpenFixed(pid int, target string) (*Fixed, error) {
	fd, err := openIn(pid, target)
	if err != nil {
		return nil, err
	}
	f := &Fixed{fd: fd}
	if f.files, f.space, err = free(fd); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func free(fd int) (files, space uint64, err error) {
	var st unix.Statfs_t
	err = unix.Fstatfs(fd, &st)
	return st.Ffree, st.Bfree, err
}

// Same says whether as much lies there as at first.
func (f *Fixed) Same() bool {
	files, space, err := free(f.fd)
	return err == nil && files == f.files && space == f.space
}

// Close lets go of it.
func (f *Fixed) Close() { _ = unix.Close(f.fd) }
