package ref

import (
	"fmt"
	"strings"
)

// masked stands for a password wherever one would be printed.
const masked = "XXXX"

// Credentials log in to a registry. No way of printing them (fmt, JSON, text,
// structured logs, which use one of these) shows the password; read the field
// where it is needed. Keep them by pointer in other structs: fmt cannot call
// methods on values in unexported fields.
type Credentials struct {
	Username, Password string
}

// String returns user:XXXX.
func (c Credentials) String() string { return c.Username + ":" + masked }

// GoString is for %#v.
func (c Credentials) GoString() string {
	return fmt.Sprintf("ref.Credentials{Username:%q, Password:%q}", c.Username, masked)
}

// Format makes every verb print the masked form.
func (c Credentials) Format(f fmt.State, verb rune) {
	if verb == 'v' && f.Flag('#') {
		fmt.Fprint(f, c.GoString())
		return
	}
	fmt.Fprint(f, c.String())
}

// MarshalText returns the masked form. It also serves JSON, as a string, so
// what was marshalled is not credentials any more; a wire type that must carry
// them has fields of its own.
func (c Credentials) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// cutCredentials splits user:password off in front of the last @ of a
// reference whose digest is gone already. So a password may hold any
// character, also @, : and /; a user name may not hold a colon.
func cutCredentials(s string) (*Credentials, string, error) {
	at := strings.LastIndexByte(s, '@')
	if at < 0 {
		return nil, s, nil
	}
	user, password, ok := strings.Cut(s[:at], ":")
	switch {
	case !ok:
		return nil, "", bad("credentials", "(the part before the last @) have no colon between user and password")
	case user == "":
		return nil, "", bad("credentials", "have an empty user name")
	case password == "":
		return nil, "", bad("credentials", "have an empty password")
	case strings.ContainsFunc(s[:at], isControl):
		return nil, "", bad("credentials", "hold a control character")
	}
	return &Credentials{Username: user, Password: password}, s[at+1:], nil
}

func isControl(r rune) bool { return r < 0x20 || r == 0x7f }
