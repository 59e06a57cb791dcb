package cgroups

import (
	"sync"

	"golang.org/x/sys/unix"
)

// keptFiles are files with a group's figures that stay open.
type keptFiles struct {
	mu   sync.Mutex
	open map[opened]int
}

// opened is a file, and whether it is to be read or written.
type opened struct {
	path string
	how  int
}

// Keep is the group for who reads its figures often: each file stays open from when it was read first until
// Close. To find it by its path takes the kernel longer than to read it.
func (g *Group) Keep() *Group {
	return &Group{host: g.host, path: g.path, kept: &keptFiles{open: map[opened]int{}}}
}

// Close closes what Keep had opened. Nobody reads any more.
func (g *Group) Close() {
	g.kept.mu.Lock()
	defer g.kept.mu.Unlock()
	for file, fd := range g.kept.open {
		_ = unix.Close(fd)
		delete(g.kept.open, file)
	}
}

// open opens a file of the group's. Done lets go of it.
func (g *Group) open(path string, how int) (fd int, done func(), err error) {
	open := func() (int, error) { return unix.Open(path, how|unix.O_CLOEXEC, 0) }
	if g.kept == nil {
		fd, err = again(open)
		return fd, func() { _ = unix.Close(fd) }, err
	}
	g.kept.mu.Lock()
	defer g.kept.mu.Unlock()
	file := opened{path, how}
	fd, is := g.kept.open[file]
	if !is {
		if fd, err = again(open); err == nil {
			g.kept.open[file] = fd
		}
	}
	return fd, func() {}, err
}
