package disk

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// amount is how much there is of something on disk.
type amount struct{ bytes, files int64 }

// size is what a part has now, or more than most.
func (p *part) size(most int64) (amount, error) {
	if p.image {
		n, err := takes(p.dirs[0])
		return amount{bytes: n}, err
	}
	if p.project == 0 {
		return measure(p.dirs, most), nil
	}
	q, err := p.area.count(p.project)
	return amount{int64(q.Bytes), int64(q.Inodes)}, err
}

// measure adds up what lies below directories, until it is more than most. A
// container may write there meanwhile: links are never followed, and what is
// gone or cannot be read counts as nothing. Each file counts as a block at
// least, so that many empty ones are something too.
func measure(dirs []string, most int64) amount {
	m := measuring{most: most}
	for _, path := range dirs {
		if fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0); err == nil {
			m.below(os.NewFile(uintptr(fd), path), 0)
		}
	}
	return m.amount
}

type measuring struct {
	amount
	most int64
}

const (
	leastFile  = 4096
	maxNesting = 2000 // directories in each other: whoever makes more hides something
)

// below adds what is in dir, and closes it.
func (m *measuring) below(dir *os.File, depth int) {
	defer dir.Close()
	for m.bytes <= m.most {
		entries, err := dir.ReadDir(1024)
		for _, e := range entries {
			var st unix.Stat_t
			if unix.Fstatat(int(dir.Fd()), e.Name(), &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
				continue
			}
			m.files++
			m.bytes += max(st.Blocks*512/max(int64(st.Nlink), 1), leastFile)
			if st.Mode&unix.S_IFMT != unix.S_IFDIR {
				continue
			}
			if depth == maxNesting {
				m.bytes = m.most + 1
				return
			}
			fd, err := unix.Openat(int(dir.Fd()), e.Name(), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
			if err == nil {
				m.below(os.NewFile(uintptr(fd), e.Name()), depth+1)
			}
		}
		if err != nil && !errors.Is(err, io.EOF) || len(entries) == 0 {
			return
		}
	}
}
