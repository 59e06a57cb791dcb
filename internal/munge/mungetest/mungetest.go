// Package mungetest starts a real MUNGE for tests, with a key and a socket of
// its own.
package mungetest

import (
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Start starts a daemon until the test ends and returns its socket. It skips
// where there is none, and fails where GBATCH_E2E_REQUIRED is set.
func Start(t testing.TB) (socket string) {
	t.Helper()
	program, err := exec.LookPath("munged")
	if err != nil {
		program = "/usr/sbin/munged"
	}
	if _, err := os.Stat(program); err != nil {
		if os.Getenv("GBATCH_E2E_REQUIRED") != "" {
			t.Fatal("munged is missing: install the package munge")
		}
		t.Skip("SKIPPED: munged is missing: install the package munge")
	}
	dir, err := os.MkdirTemp("", "munge-") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	key := make([]byte, 64)
	rand.Read(key)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "key"), key, 0o600); err != nil {
		t.Fatal(err)
	}
	socket = filepath.Join(dir, "s")
	cmd := exec.Command(program, "--foreground", "--force", "--socket="+socket, "--key-file="+dir+"/key", "--pid-file="+dir+"/pid",
		"--seed-file="+dir+"/seed", "--num-threads=2")
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	pollUntil(t, "munged answers", func() bool {
		return exec.Command("munge", "-S", socket, "-n").Run() == nil
	})
	return socket
}

// Expired is a credential whose time is over.
func Expired(t testing.TB, socket string) string {
	t.Helper()
	out, err := exec.Command("munge", "-S", socket, "-n", "-t", "1").Output()
	if err != nil {
		t.Fatal(err)
	}
	probe, err := exec.Command("munge", "-S", socket, "-n", "-t", "1").Output()
	if err != nil {
		t.Fatal(err)
	}
	pollUntil(t, "a credential has expired", func() bool {
		cmd := exec.Command("unmunge", "-S", socket, "-k", "STATUS", "-N")
		cmd.Stdin = strings.NewReader(string(probe))
		text, _ := cmd.Output() // it says what is wrong by its exit code
		return strings.Contains(string(text), "15")
	})
	return strings.TrimSpace(string(out))
}

func pollUntil(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("waited in vain until %s", what)
}
