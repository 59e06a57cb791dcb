package runtimes

import (
	"fmt"
	"net"
	"os"
	"time"

	"github.com/opencontainers/runc/libcontainer/utils"
	"golang.org/x/sys/unix"
)

// Console is where a program sends the terminal that it has made.
type Console struct {
	path     string
	listener *net.UnixListener
}

// NewConsole opens one in the bundle.
func (c *Container) NewConsole() (*Console, error) {
	path := c.path(fileConsole)
	_ = os.Remove(path)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("make way for the terminal: %w", err)
	}
	return &Console{path: path, listener: l}, nil
}

// Close ends it.
func (o *Console) Close() error { return o.listener.Close() }

// consoleTimeout is for what was sent before it is asked for.
const consoleTimeout = 5 * time.Second

// Terminal is the user's side with that size, once the command that makes it has
// succeeded.
func (o *Console) Terminal(width, height uint16) (*os.File, error) {
	if err := o.listener.SetDeadline(time.Now().Add(consoleTimeout)); err != nil {
		return nil, err
	}
	conn, err := o.listener.AcceptUnix()
	if err != nil {
		return nil, fmt.Errorf("receive the terminal: %w", err)
	}
	defer conn.Close()
	f, err := conn.File() // blocking, and what is sent is there
	if err != nil {
		return nil, err
	}
	defer f.Close()
	master, err := utils.RecvFile(f)
	if err != nil {
		return nil, fmt.Errorf("receive the terminal: %w", err)
	}
	return master, resize(master, width, height)
}

func resize(terminal *os.File, width, height uint16) error {
	return unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: height, Col: width})
}
