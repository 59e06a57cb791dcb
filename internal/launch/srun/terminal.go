package srun

import (
	"os"

	"golang.org/x/sys/unix"

	"gbatch/internal/launch"
)

// size is that of srun's terminal, or a usual one.
func (r *run) size() *launch.Size {
	if ws, err := unix.IoctlGetWinsize(0, unix.TIOCGWINSZ); err == nil && ws.Col > 0 {
		return &launch.Size{Width: ws.Col, Height: ws.Row}
	}
	return &launch.Size{Width: 80, Height: 24}
}

// attended says that somebody is at srun's terminal, or at that of an srun outside of the
// container, for which this one runs.
func attended() bool {
	if _, ok := os.LookupEnv(launch.Attended); ok {
		_ = os.Unsetenv(launch.Attended) // it is not for the tasks; its name is one
		return true
	}
	_, err := unix.IoctlGetTermios(0, unix.TCGETS)
	return err == nil
}

// rawTerminal passes keys on as they are typed, for as long as a task has a
// terminal of its own.
func rawTerminal() (restore func()) {
	before, err := unix.IoctlGetTermios(0, unix.TCGETS)
	if err != nil {
		return func() {}
	}
	raw := *before
	raw.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	raw.Oflag &^= unix.OPOST
	raw.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	raw.Cflag = raw.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	_ = unix.IoctlSetTermios(0, unix.TCSETS, &raw)
	return func() { _ = unix.IoctlSetTermios(0, unix.TCSETS, before) }
}
