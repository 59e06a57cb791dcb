package login

import (
	"encoding/json"
	"strings"
	"testing"

	"gbatch/internal/ctld/site"
)

// FuzzClaims: whatever a provider says of somebody, they have a name that users can
// have, in the domain and a group of the rules, or they are not let in.
func FuzzClaims(f *testing.F) {
	for _, s := range []string{
		`{"email":"ann@example.org","email_verified":true,"groups":["hpc"]}`,
		`{"email":"ann@example.org","email_verified":"true","groups":["hpc"]}`,
		`{"email":"root@evil.org@example.org","email_verified":true,"groups":"hpc"}`,
		`{"email":"../x@example.org","email_verified":true,"groups":[["hpc"],{"hpc":1}]}`,
		`{"email":["ann@example.org"],"email_verified":true,"groups":{"hpc":true}}`,
	} {
		f.Add([]byte(s))
	}
	l := &site.Login{UserClaim: "email", Domain: "example.org", Groups: []string{"hpc"}, GroupsClaim: "groups"}
	f.Fuzz(func(t *testing.T, text []byte) {
		var claims map[string]any
		if json.Unmarshal(text, &claims) != nil {
			return
		}
		name, err := nameOf(l, claims)
		if err != nil {
			return
		}
		list, _ := claims["groups"].([]any)
		member := false
		for _, g := range list {
			member = member || g == "hpc"
		}
		if !site.NameRule.MatchString(name) || strings.Contains(name, "@") && !strings.HasSuffix(name, "@example.org") || claims["email"] != name+"@example.org" || claims["email_verified"] != true || !member {
			t.Errorf("%s lets in %q", text, name)
		}
	})
}
