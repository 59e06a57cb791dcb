package identity

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"gbatch/oci/atomicfile"
)

// LockRun is where the daemons of a machine say which node names they serve.
const LockRun = "/run/gbatch/nodes"

// ContactRun is where they note when they last heard from the controller: in
// memory, as no job's disk may keep the others from going on.
const ContactRun = "/run/gbatch/contact"

// GuardRun is where the guards of their leases hold their locks.
const GuardRun = "/run/gbatch/guards"

// Lock is a file that one process at a time can hold. The kernel lets go of it
// when the process ends, however that happens.
type Lock struct{ f *os.File }

// TakeLock holds path for this process and writes its pid there. what names
// the guarded thing in the error.
func TakeLock(path, what string) (*Lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", what, err)
	}
	if err := hold(f); err != nil {
		defer f.Close()
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock %s: %w", what, err)
		}
		pid, _ := os.ReadFile(path)
		return nil, fmt.Errorf("another gnoded (pid %s) uses %s; stop it first, or give this one its own directory and name: --state-dir and --name, or stateDir and name in its gnoded.yaml", strings.TrimSpace(string(pid)), what)
	}
	if err := f.Truncate(0); err == nil {
		_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", what, err)
	}
	return &Lock{f}, nil
}

// forkTime is how long a process that a killed daemon was about to begin may still have the
// daemon's files: until it is executed, or sees that the daemon has gone.
const forkTime = time.Second

// hold locks a file for this process.
func hold(f *os.File) error {
	for began := time.Now(); ; time.Sleep(forkTime / 100) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Since(began) > forkTime {
			return err
		}
	}
}

// TakeDir holds a directory itself for this process, as its lock's file can be removed while it is held, and the directory not.
func TakeDir(path, what string) (*Lock, error) {
	d, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", what, err)
	}
	if err := hold(d); errors.Is(err, unix.EWOULDBLOCK) {
		d.Close()
		return nil, fmt.Errorf("another gnoded uses %s, whose file lock was removed; stop it first", what)
	}
	return &Lock{d}, nil // where there are no such locks, the file's alone counts
}

func (l *Lock) Close() {
	if l != nil {
		l.f.Close()
	}
}

// LoadInstance reads the state directory's id, made with the directory. It
// stands for what the node remembers: the controller takes another id as the
// loss of every attempt it had here.
//
// It is there twice, as all that runs here ends with it. The copy has a sum, and is right where
// the two differ.
func LoadInstance(dir string) (string, error) {
	path, second := filepath.Join(dir, "instance"), filepath.Join(dir, "instance.copy")
	first, err := readInstance(path)
	id, copyErr := readInstance(second)
	switch {
	case copyErr == nil && id == first:
		return id, nil
	case copyErr == nil:
	case err == nil:
		id = first // of an earlier version, or the copy is damaged
	case errors.Is(err, fs.ErrNotExist) && errors.Is(copyErr, fs.ErrNotExist):
		id = uuid.NewString()
	default:
		return "", fmt.Errorf("%w; and %w; remove both if nothing of this node is to be kept", err, copyErr)
	}
	err = atomicfile.WriteDurable(path, []byte(id+"\n"))
	if err == nil {
		err = atomicfile.WriteDurable(second, atomicfile.Sum([]byte(id)))
	}
	if err != nil && first == "" && copyErr != nil {
		return "", fmt.Errorf("make instance id: %w", err)
	}
	return id, nil // with one of the two until the disk has room
}

func readInstance(path string) (string, error) {
	b, err := atomicfile.Read(path)
	if err != nil {
		return "", fmt.Errorf("read instance id: %w", err)
	}
	id, err := uuid.Parse(strings.TrimSpace(string(b)))
	if err != nil {
		return "", fmt.Errorf("read %s: it is damaged (%w)", path, err)
	}
	return id.String(), nil
}
