// Package deploy holds the commented configuration files that installing
// writes.
package deploy

import (
	"encoding/json"
	"regexp"

	_ "embed" // the files
)

// The files as they are in this directory.
var (
	//go:embed gctld.yaml
	Gctld string
	//go:embed gnoded.yaml
	Gnoded string
)

// Set gives a key at the top level of a file a value, where it stands, also as a
// comment. A file without the key gets it at its end.
func Set(text, key, value string) string {
	line := regexp.MustCompile(`(?m)^(# )?` + regexp.QuoteMeta(key) + `: .*$`)
	at := line.FindStringIndex(text)
	if at == nil {
		return text + key + ": " + quote(value) + "\n"
	}
	return text[:at[0]] + key + ": " + quote(value) + text[at[1]:]
}

// quote writes a string for YAML.
func quote(s string) string {
	b, _ := json.Marshal(s) // a string always has one
	return string(b)
}
