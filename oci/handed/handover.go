package handed

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"gbatch/oci/stdio"
)

// Handover is what only exists while somebody holds it: shim and container
// hold it from the start on, and with them it goes.
type Handover struct {
	User      *os.File   // the user namespace; nil: the host's
	Namespace *os.File   // of the network; nil: none
	Listeners []*os.File // on the host, one for each of ShimNetwork.Ports

	Stdio stdio.Files // of the program; see oci.ShimConfig

	// Env are NAME=value pairs over those of the spec that must be in no file,
	// such as passwords: the spec lies on a disk. See draft.Request. In the
	// spec's arguments and variables a name between U+E000 and U+E001 is its value.
	Env []string
}

// List is the files in the order in which they are handed over.
func (h Handover) List() []*os.File {
	var files []*os.File
	if h.User != nil {
		files = append(files, h.User)
	}
	if h.Namespace != nil {
		files = append(append(files, h.Namespace), h.Listeners...)
	}
	return append(files, h.Stdio.All()...)
}

// EnvFile holds Env for the shim in memory; nil if there is none.
func (h Handover) EnvFile() (*os.File, error) {
	if len(h.Env) == 0 {
		return nil, nil
	}
	text, err := json.Marshal(h.Env)
	if err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("gbatch-env", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("hand variables over: %w", err)
	}
	f := os.NewFile(uintptr(fd), "env")
	if _, err = f.Write(text); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("hand variables over: %w", err)
	}
	return f, nil
}
