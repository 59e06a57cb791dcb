package config

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/dustin/go-humanize"

	"gbatch/internal/units"
)

// Size is a number of bytes, written in the config as 512MiB, 2GB or 1024.
type Size int64

// UnmarshalText reads the forms above.
func (s *Size) UnmarshalText(b []byte) error {
	text := string(b)
	v, err := humanize.ParseBytes(text)
	if err != nil || v > 1<<62 {
		return fmt.Errorf("%q is not a size: write it as 512MiB or 2GB", text)
	}
	*s = Size(v)
	return nil
}

func (s Size) String() string { return FormatBytes(int64(s)) }

// FormatBytes writes an amount as people do: in the largest unit that needs
// few digits, as "8 GiB" and "1.5 GiB".
func FormatBytes(n int64) string {
	if n < 0 {
		return strconv.FormatInt(n, 10) + " B"
	}
	return humanize.IBytes(uint64(n))
}

// Duration is a length of time, written in the config as 90s, 5m or 24h, or as
// job files have it, "5 minutes".
type Duration time.Duration

// UnmarshalText reads the forms above.
func (d *Duration) UnmarshalText(b []byte) error {
	text := string(b)
	v, err := units.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("%q is not a duration: write it as 90s, 5m or 24h", text)
	}
	*d = Duration(v)
	return nil
}

func (d Duration) String() string { return time.Duration(d).String() }

// Mode is permission bits, written in octal as "02770" or 0750.
type Mode os.FileMode

// UnmarshalText reads octal digits; setuid, setgid and sticky are 04000,
// 02000 and 01000 as in chmod.
func (m *Mode) UnmarshalText(b []byte) error {
	text := string(b)
	v, err := strconv.ParseUint(trimOctal(text), 8, 32)
	if err != nil || v > 0o7777 {
		return fmt.Errorf("%q is not a file mode: write it in octal, as \"02770\"", text)
	}
	*m = Mode(v)
	return nil
}

func (m Mode) String() string { return fmt.Sprintf("%05o", uint32(m)) }

func trimOctal(s string) string {
	if len(s) > 2 && s[0] == '0' && (s[1] == 'o' || s[1] == 'O') {
		return s[2:]
	}
	return s
}
