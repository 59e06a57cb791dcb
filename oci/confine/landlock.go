package confine

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Thread keeps this thread, and what it begins, from reaching what runs
// outside by a signal or by an abstract socket, which has a name in the network
// namespace and no permissions: those of the host's are open to whoever has its
// network. Within the container both work as ever. All of its processes have to
// be begun by this thread, or they could not reach each other. Kernels before
// 6.12 do not know it, and the process and network namespaces have to do.
func Thread() error {
	if version, _, _ := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION); int(version) < scopes {
		return nil
	}
	attr := unix.LandlockRulesetAttr{Scoped: unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errors.Is(errno, unix.EOPNOTSUPP) {
		return nil // built in, and not switched on
	}
	if errno != 0 {
		return fmt.Errorf("confine the container: %w", errno)
	}
	defer unix.Close(int(fd))
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return fmt.Errorf("confine the container: %w", errno)
	}
	return nil
}

// scopes is the version of Landlock that first had them.
const scopes = 6

// Keyring keeps the daemon's keys from the container. The keyring is this
// thread's and what it begins has it too; one that the container's first
// process makes would count for its user, who may have 200.
func Keyring() error {
	_, err := unix.KeyctlInt(unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0) // one without a name
	if err != nil && !errors.Is(err, unix.ENOSYS) {
		return fmt.Errorf("make a keyring: %w", err)
	}
	return nil
}
