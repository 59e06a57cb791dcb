package site

import (
	"fmt"
	"strings"
	"testing"
)

// TestLoginPages: where browsers come back to from a login is the page, by TLS.
func TestLoginPages(t *testing.T) {
	for page, good := range map[string]bool{
		"https://head.example.org:7077/web/": true,
		"https://head.example.org/web/":      true,
		"http://head.example.org/web/":       false,
		"https://head.example.org/web":       false,
		"https://head.example.org/":          false,
		"https://ann@head.example.org/web/":  false,
		"https://head.example.org/web/?x":    false,
		"https:///web/":                      false,
		"":                                   false,
	} {
		l := &Login{Issuer: "https://id.example.org", ClientID: "gbatch", Pages: []string{page}}
		var said []string
		l.check(func(path, format string, a ...any) { said = append(said, path+": "+fmt.Sprintf(format, a...)) })
		if got := strings.Join(said, "; "); good != (got == "") || !good && !strings.HasPrefix(got, "login.pages: ") {
			t.Errorf("%q: %q", page, got)
		}
	}
}
