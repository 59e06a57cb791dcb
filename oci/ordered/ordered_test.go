package ordered

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"gbatch/oci/keeper"
)

// TestForgedEnd: who runs as the keeper's user can have it say anything, and a container
// ends by an exit code or a signal all the same.
func TestForgedEnd(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		said uint32
		want syscall.WaitStatus
	}{
		"exit 3":    {3 << 8, 3 << 8},
		"signal 15": {15, 15},
		"stopped":   {uint32(syscall.SIGSTOP)<<8 | 0x7f, syscall.WaitStatus(syscall.SIGKILL)},
		"continued": {0xffff, syscall.WaitStatus(syscall.SIGKILL)},
	} {
		t.Run(name, func(t *testing.T) {
			k, files, err := Open(program)
			if err != nil {
				t.Fatal(err)
			}
			defer k.Close()
			for _, f := range files {
				defer f.Close()
			}
			if err := keeper.Send(int(files[1].Fd()), &keeper.Word{Status: c.said}); err != nil {
				t.Fatal(err)
			}
			if got, _, err := k.Await(); err != nil || got != c.want {
				t.Errorf("ended with %#x (%v), want %#x", got, err, c.want)
			}
		})
	}
}
