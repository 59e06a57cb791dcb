package stdio

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Resize tells the programs of a terminal its new size in columns and lines.
func Resize(terminal *os.File, width, height uint16) error {
	raw, err := terminal.SyscallConn() // Fd could make it block
	if err != nil {
		return fmt.Errorf("resize: %w", err)
	}
	cerr := raw.Control(func(fd uintptr) {
		err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: height, Col: width})
	})
	return errors.Join(cerr, err)
}
