package config

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/goccy/go-yaml/ast"

	"gbatch/internal/units"
)

// Size is a number of bytes, written in the config as 512MiB, 2GB or 1024.
type Size int64

// UnmarshalYAML reads the forms above.
func (s *Size) UnmarshalYAML(n ast.Node) error {
	text := scalar(n)
	v, err := humanize.ParseBytes(text)
	if err != nil || v > 1<<62 {
		return atLine(n, "%q is not a size: write it as 512MiB or 2GB", text)
	}
	*s = Size(v)
	return nil
}

// MarshalYAML is the inverse.
func (s Size) MarshalYAML() ([]byte, error) { return []byte(s.String()), nil }

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

// UnmarshalYAML reads the forms above.
func (d *Duration) UnmarshalYAML(n ast.Node) error {
	text := scalar(n)
	v, err := units.ParseDuration(text)
	if err != nil {
		return atLine(n, "%q is not a duration: write it as 90s, 5m or 24h", text)
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
func (m *Mode) UnmarshalYAML(n ast.Node) error {
	text := scalar(n)
	v, err := strconv.ParseUint(trimOctal(text), 8, 32)
	if err != nil || v > 0o7777 {
		return atLine(n, "%q is not a file mode: write it in octal, as \"02770\"", text)
	}
	*m = Mode(v)
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

// scalar is the text of a YAML value, without quotes.
func scalar(n ast.Node) string { return n.GetToken().Value }

func atLine(n ast.Node, format string, args ...any) error {
	return fmt.Errorf("line %d: %s", n.GetToken().Position.Line, fmt.Sprintf(format, args...))
}
