package disk

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestTakes: what is removed from a file system in a file is free for others when that is looked at.
func TestTakes(t *testing.T) {
	if _, err := exec.LookPath("mkfs.ext4"); err != nil || os.Geteuid() != 0 {
		t.Skip("SKIPPED: it takes root and mkfs.ext4")
	}
	const written = 96 << 20
	d := &Disk{dir: t.TempDir(), slots: make(chan string, maxSlots)}
	dir := filepath.Join(d.dir, slotPrefix+"1")
	if err := os.Mkdir(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	if err := d.mountImage(dir, 256<<20); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dropAll(dir); err != nil {
			t.Error(err)
		}
	})
	look := func(least, most int64) {
		t.Helper()
		if n, err := takes(dir); err != nil || n < least || n > most {
			t.Errorf("takes %d MiB (%v), want %d to %d", n>>20, err, least>>20, most>>20)
		}
	}
	look(0, untrimmed/2)
	write := func(file string) {
		t.Helper()
		f, err := os.Create(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.Write(make([]byte, written)); err != nil {
			t.Fatal(err)
		}
		if err := unix.Syncfs(int(f.Fd())); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(dir, "lost+found", "job"))
	look(written, written+untrimmed)
	if err := os.Remove(filepath.Join(dir, "lost+found", "job")); err != nil {
		t.Fatal(err)
	}
	look(0, untrimmed/2)

	if err := os.Mkdir(filepath.Join(dir, "box"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(filepath.Join(dir, "box", "job"))
	if err := d.giveSlot(dir); err != nil {
		t.Fatal(err)
	}
	if slot, ok := d.popSlot(); !ok || slot != dir {
		t.Errorf("the slot that waits is %q, %t", slot, ok)
	}
	if n, err := allocated(dir); err != nil || n > untrimmed/2 {
		t.Errorf("a slot that waits takes %d MiB (%v)", n>>20, err)
	}
}
