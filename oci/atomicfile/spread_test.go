package atomicfile

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSpread: directories in one that was spread lie apart on ext4. Elsewhere nothing is done.
func TestSpread(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		if err := Spread(dir); err != nil {
			t.Fatal(err)
		}
	}
	if err := Spread("/proc"); err != nil {
		t.Error(err)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		t.Fatal(err)
	}
	if fs.Type != unix.EXT4_SUPER_MAGIC || fs.Files < 1<<20 {
		t.Skip("SKIPPED, where directories lie: this is no large ext4 file system")
	}
	apart := map[uint64]bool{}
	for i := range 32 {
		own := filepath.Join(dir, strconv.Itoa(i))
		if err := os.Mkdir(own, 0o700); err != nil {
			t.Fatal(err)
		}
		apart[part(t, own)] = true
	}
	if len(apart) < 2 {
		t.Errorf("32 directories lie in %d part of the disk", len(apart))
	}
}

// part is one of many parts of the disk in which a file's inode lies.
func part(t *testing.T, path string) uint64 {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		t.Fatal(err)
	}
	return st.Ino >> 17
}
