// Package deploy holds the commented configuration files that installing
// writes.
package deploy

import (
	_ "embed" // the files
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"gbatch/oci/atomicfile"
)

// The files as they are in this directory.
var (
	//go:embed gctld.yaml
	Gctld string
	//go:embed gnoded.yaml
	Gnoded string
)

// Write puts a configuration file there, which survives a power cut: without it the next start would be of another site. One
// that is there is kept as path.old.
func Write(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.Rename(path, path+".old"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return atomicfile.WriteReadable(path, []byte(text))
}

// AlreadyThere is the error of a file that is there, and is not replaced unasked.
func AlreadyThere(path string) error {
	return fmt.Errorf("%s is there already: change it with an editor, or replace it by --force, which keeps it as %s.old", path, path)
}

// Set gives a key at the top level of a file a value, where it stands, also as a
// comment. A file without the key gets it at its end. No value changes nothing.
func Set(text, key, value string) string {
	if value == "" {
		return text
	}
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
