package hosttest

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// FreeAddress is one of the loopback interface at which nobody listens yet. Until this process ends the kernel gives its port to
// nobody who wants any, here or elsewhere, to listen or to connect from; who asks for it by its number and lets others use it again,
// as Go's programs and ssh do, gets it. A port that was free a moment ago and is not held may be the next one's.
func FreeAddress() (string, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0) // stays open, and never listens
	if err != nil {
		return "", os.NewSyscallError("socket", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return "", os.NewSyscallError("setsockopt", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return "", os.NewSyscallError("bind", err)
	}
	at, err := unix.Getsockname(fd)
	if err != nil {
		return "", os.NewSyscallError("getsockname", err)
	}
	return fmt.Sprintf("127.0.0.1:%d", at.(*unix.SockaddrInet4).Port), nil
}
