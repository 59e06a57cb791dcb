// Package pages has files lie in large pages of memory.
package pages

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Enlarge has a file in memory lie in pages of 2 MiB, where the kernel can (since 6.1): whoever
// executes it takes fewer faults for it, and has less to give back at its end. Where it cannot, nothing
// is lost but that. The kernel does so where the file is mapped at an address that is a multiple, too.
func Enlarge(f *os.File, size int) {
	const large = 2 << 20
	whole := uintptr(size+large-1) &^ (large - 1)
	room, err := unix.MmapPtr(-1, 0, nil, whole+large, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return
	}
	defer func() { _ = unix.MunmapPtr(room, whole+large) }()
	at := unsafe.Add(room, -uintptr(room)&(large-1))
	if _, err := unix.MmapPtr(int(f.Fd()), 0, at, whole, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_FIXED); err == nil {
		_ = unix.Madvise(unsafe.Slice((*byte)(at), whole), unix.MADV_COLLAPSE)
	}
}
