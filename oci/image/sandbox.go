package image

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"gbatch/oci/image/socket"
	"gbatch/oci/image/unpack"

	"golang.org/x/sys/unix"
)

// A worker runs in namespaces of its own of every kind. Its users are host ids
// that own nothing, so it is no one on this machine: its own id is the last of
// them. It has the five rights to give files an owner and attributes, and those
// count in its user namespace only. It has no network, no process but itself,
// and a file system of one directory, in which disk and worker agree on ids:
// the mount maps those of the worker to those that the image's files shall have.

const (
	idBase  = 1 << 31          // host id that stands for the image's id 0
	idCount = 1<<31 - 1<<16    // ids that files of an image may have
	ownID   = idCount - 1      // the worker's own, which none may have
	readyIn = 60 * time.Second // for a worker to start, on a busy machine
)

// ownCaps let a worker give files away and set their attributes.
var ownCaps = []uintptr{unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID, unix.CAP_SETFCAP}

// Check says whether images can be pulled into a store below that directory:
// whether a process for it can be started, on that file system. It may be
// called beside an open store.
func Check(dir string) error {
	tmp, err := os.MkdirTemp(dir, "check-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	s, err := Open(Config{Dir: tmp, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, ErrForbidden }})
	if err != nil {
		return err
	}
	_, err = s.workers.start()
	return errors.Join(err, s.Close())
}

func workerCommand(control *os.File, said *firstLine) *exec.Cmd {
	ids := []syscall.SysProcIDMap{{HostID: idBase, Size: idCount}}
	return &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{os.Args[0], workerArg}, Env: []string{workerEnv + "=1"},
		Dir: "/", Stderr: said, ExtraFiles: []*os.File{control},
		SysProcAttr: &syscall.SysProcAttr{
			Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP,
			UidMappings: ids, GidMappings: ids, GidMappingsEnableSetgroups: true,
			Credential:  &syscall.Credential{Uid: ownID, Gid: ownID},
			AmbientCaps: ownCaps,
		},
	}
}

// makeReady waits for the worker to be there and takes the host's files away
// from it. Until then it has read nothing of a stranger's.
func (p *process) makeReady() error {
	_ = p.control.SetReadDeadline(time.Now().Add(readyIn))
	var first packet
	_, err := socket.Receive(p.control, &first)
	if err != nil || !first.Ready {
		return errors.Join(errors.New("it did not start"), err)
	}
	_ = p.control.SetReadDeadline(time.Time{})
	pid := strconv.Itoa(p.cmd.Process.Pid)
	// If memory runs short, this goes before anything that matters.
	_ = os.WriteFile("/proc/"+pid+"/oom_score_adj", []byte("900"), 0)
	return onLostThread(func() error { return furnish("/proc/"+pid+"/ns/", p.dir) })
}

// onLostThread calls do on a thread that is given up afterwards, as it has
// entered another namespace. The process's first thread cannot be given up, and
// stands for the process in /proc: it is kept busy while another one does it.
func onLostThread(do func() error) error {
	done := make(chan error)
	go func() { // ends with do; its thread ends with it
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			defer runtime.UnlockOSThread()
			done <- onLostThread(do)
			return
		}
		done <- do()
	}()
	return <-done
}

// furnish makes the file system of the process with those namespaces: an empty
// root that cannot be written to, and its directory.
func furnish(ns, dir string) error {
	users, err := unix.Open(ns+"user", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("open user namespace", err)
	}
	defer unix.Close(users)
	mounts, err := unix.Open(ns+"mnt", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("open mount namespace", err)
	}
	defer unix.Close(mounts)
	work, err := mappedTree(dir, users)
	if err != nil {
		return err
	}
	defer unix.Close(work)
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"unshare", func() error { return unix.Unshare(unix.CLONE_FS) }},
		{"enter mount namespace", func() error { return unix.Setns(mounts, unix.CLONE_NEWNS) }},
		{"keep mounts apart", func() error { return unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") }},
		{"mount root", func() error {
			return unix.Mount("none", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "size=4k,mode=0755")
		}},
		{"go to root", func() error { return unix.Chdir(dir) }},
		{"make " + workDir, func() error { return unix.Mkdir("."+workDir, 0o755) }},
		{"mount " + workDir, func() error {
			return unix.MoveMount(work, "", unix.AT_FDCWD, "."+workDir, unix.MOVE_MOUNT_F_EMPTY_PATH)
		}},
		{"close root", func() error {
			return unix.Mount("", ".", "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
		}},
		{"change root", func() error { return unix.PivotRoot(".", ".") }},
		{"leave the host's files", func() error { return unix.Unmount(".", unix.MNT_DETACH) }},
	} {
		if err := step.do(); err != nil {
			return os.NewSyscallError(step.what, err)
		}
	}
	return nil
}

// mappedTree is a mount of a directory by which files have the ids on disk that
// they have for the user namespace's processes.
func mappedTree(dir string, users int) (int, error) {
	tree, err := unix.OpenTree(unix.AT_FDCWD, dir, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return -1, os.NewSyscallError("open_tree", err)
	}
	err = unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &unix.MountAttr{
		Attr_set: unix.MOUNT_ATTR_IDMAP | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC, Userns_fd: uint64(users),
	})
	if err != nil {
		unix.Close(tree)
		return -1, fmt.Errorf("the file system of the image store cannot map owners (idmapped mounts; ext4, xfs and btrfs can): %w", err)
	}
	return tree, nil
}

// markOpaque makes directories of a layer hide those of lower layers. That
// takes rights over the host, which no worker has.
func markOpaque(fs string, dirs []string) error {
	root, err := unix.Open(fs, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return classifyLocal(os.NewSyscallError("open layer", err))
	}
	defer unix.Close(root)
	for _, name := range dirs {
		dir, err := unix.Openat2(root, name, &unix.OpenHow{
			Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC,
			Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
		})
		if err != nil {
			return errNoAnswer
		}
		err = unix.Fsetxattr(dir, unpack.OpaqueXattr, []byte{'y'}, 0)
		unix.Close(dir)
		if err != nil {
			return classifyLocal(os.NewSyscallError("mark directory", err))
		}
	}
	return nil
}
