package job

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"gbatch/oci/ref"
)

// Submission is what a document asks for: the job, the registry login and the
// values of secrets that were split off, and remarks for the user.
type Submission struct {
	Spec     Spec
	Registry *ref.Credentials  // nil: none; never part of Spec
	Secrets  map[string]string // by name, of those in Spec.Gbatch.Secrets whose value is known; never part of Spec
	Notes    []Note
}

// Document is the submission as a native document that Parse reads back to the
// same submission. A registry login and secrets are in it: send it to the
// controller and show it to nobody.
func (s Submission) Document() ([]byte, error) {
	if len(s.Secrets) > 0 {
		g := *s.Spec.Gbatch
		g.Secrets = slices.Clone(g.Secrets)
		for i := range g.Secrets {
			g.Secrets[i].Value = s.Secrets[g.Secrets[i].Name]
		}
		s.Spec.Gbatch = &g
	}
	if s.Registry != nil {
		docker := &s.Spec.Request.Docker
		// The scheme keeps a user called "oci" from being read as a transport.
		docker.Image = "docker://" + s.Registry.Username + ":" + s.Registry.Password + "@" + docker.Image
	}
	return json.Marshal(s.Spec)
}

// Note tells a user how something was understood. It is not an error.
type Note struct {
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
}

func (n Note) String() string {
	if n.Path == "" {
		return "document: " + n.Message
	}
	return n.Path + ": " + n.Message
}

// Parse reads a native job document (GPULab v2 JSON with gbatch's additions).
// The error is a Problems with everything that is wrong.
func Parse(data []byte) (Submission, error) {
	n, src, err := readDocument(data)
	if err != nil {
		return Submission{}, err
	}
	d := &decoder{src: src, elsewhere: elsewhere}
	var s Spec
	if !d.foreign(n) && object(d, n, specFields, &s) {
		d.checkSpec(n, &s)
	}
	if ps := d.problems(); ps != nil {
		return Submission{}, ps
	}
	return Submission{Spec: s, Registry: d.creds, Secrets: d.secrets, Notes: d.notes}, nil
}

// readDocument checks size and encoding and reads the syntax tree.
func readDocument(data []byte) (*node, string, error) {
	if len(data) > MaxDocumentBytes {
		return nil, "", Problems{{Message: fmt.Sprintf("has %d bytes, a job file may have at most %d", len(data), MaxDocumentBytes),
			Hint: "put data into project storage and mount it with request.docker.storage"}}
	}
	src := strings.TrimPrefix(string(data), "\ufeff")
	if strings.TrimSpace(src) == "" {
		return nil, "", Problems{{Message: "is empty", Hint: "a job file is a JSON object with \"name\" and \"request\""}}
	}
	if !utf8.ValidString(src) {
		return nil, "", notJSON(src, &syntaxError{off: invalidByte(src), text: "expected text in UTF-8, found another encoding"})
	}
	n, err := readJSON(src)
	if err != nil {
		return nil, "", notJSON(src, err)
	}
	return n, src, nil
}

// invalidByte is the offset of the first byte that is not UTF-8.
func invalidByte(s string) int {
	for i, c := range s {
		if c == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
				return i
			}
		}
	}
	return len(s)
}

func notJSON(src string, e *syntaxError) Problems {
	line, column := position(src, e.off)
	return Problems{{Message: fmt.Sprintf("is not JSON: line %d, column %d: %s", line, column, e.text), Hint: e.hint, Line: line}}
}

// foreign reports a document of another format in one problem instead of one
// for each of its keys.
func (d *decoder) foreign(n *node) bool {
	if n.child("request") != nil || n.child("jobDefinition") == nil {
		return false
	}
	d.push("jobDefinition")
	d.problem(n.child("jobDefinition"), "makes this a GPULab version 1 document, and a version 2 document was expected",
		"convert it with gsubmit --convert")
	d.pop()
	return true
}
