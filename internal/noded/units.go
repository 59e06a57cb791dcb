package noded

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/dustin/go-humanize"
)

// Size is a number of bytes, written in the config as 512MiB, 2GB or 1024.
type Size int64

// UnmarshalYAML reads the forms above.
func (s *Size) UnmarshalYAML(b []byte) error {
	text := unquote(b)
	n, err := humanize.ParseBytes(text)
	if err != nil || n > 1<<62 {
		return fmt.Errorf("%q is not a size: write it as 512MiB or 2GB", text)
	}
	*s = Size(n)
	return nil
}

// MarshalYAML is the inverse.
func (s Size) MarshalYAML() ([]byte, error) { return []byte(s.String()), nil }

func (s Size) String() string { return formatBytes(int64(s)) }

// formatBytes writes an amount as people do: in the largest unit that needs
// few digits, as "8 GiB" and "1.5 GiB".
func formatBytes(n int64) string {
	if n < 0 {
		return strconv.FormatInt(n, 10) + " B"
	}
	return humanize.IBytes(uint64(n))
}

// Duration is a length of time, written in the config as 90s, 5m or 24h.
type Duration time.Duration

// UnmarshalYAML reads the forms above.
func (d *Duration) UnmarshalYAML(b []byte) error {
	text := unquote(b)
	v, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("%q is not a duration: write it as 90s, 5m or 24h", text)
	}
	*d = Duration(v)
	return nil
}

// MarshalYAML is the inverse.
func (d Duration) MarshalYAML() ([]byte, error) { return []byte(d.String()), nil }

func (d Duration) String() string { return time.Duration(d).String() }

// Mode is permission bits, written in octal as "02770" or 0750.
type Mode os.FileMode

// UnmarshalYAML reads octal digits; setuid, setgid and sticky are 04000,
// 02000 and 01000 as in chmod.
func (m *Mode) UnmarshalYAML(b []byte) error {
	text := unquote(b)
	n, err := strconv.ParseUint(trimOctal(text), 8, 32)
	if err != nil || n > 0o7777 {
		return fmt.Errorf("%q is not a file mode: write it in octal, as \"02770\"", text)
	}
	*m = Mode(n)
	return nil
}

// MarshalYAML is the inverse.
func (m Mode) MarshalYAML() ([]byte, error) { return []byte(fmt.Sprintf("%q", m.String())), nil }

func (m Mode) String() string { return fmt.Sprintf("%05o", uint32(m)) }

func trimOctal(s string) string {
	if len(s) > 2 && s[0] == '0' && (s[1] == 'o' || s[1] == 'O') {
		return s[2:]
	}
	return s
}

// unquote takes a YAML scalar's bytes to its text.
func unquote(b []byte) string {
	s := string(b)
	if len(s) >= 2 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1]
	}
	return s
}
