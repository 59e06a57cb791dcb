package handed

import (
	"encoding/json"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// maxEnv bounds what is read of the standard input.
const maxEnv = 4 << 20

// Env are the variables that came by the standard input, of which it lets go, and of the memory that they
// came in; nil: there are none.
func Env() (env []string, err error) {
	text, err := io.ReadAll(io.LimitReader(os.Stdin, maxEnv))
	if err != nil || len(text) == 0 {
		return nil, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	if err := unix.Dup3(int(null.Fd()), 0, 0); err != nil {
		return nil, err
	}
	if json.Unmarshal(text, &env) != nil {
		return nil, errors.New("the variables that were handed over cannot be read") // and never what they are
	}
	return env, nil
}
