package job

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"gbatch/internal/document"
	"gbatch/oci/ref"
)

// Submission is what a document asks for: the job, the registry login and the
// values of secrets that were split off, and remarks for the user.
type Submission struct {
	Spec     Spec
	Registry *ref.Credentials  // nil: none; never part of Spec
	Secrets  map[string]string // by name, of those in Spec.Gbatch.Secrets whose value is known; never part of Spec
	Notes    []Note
	Hold     bool      // it shall wait until it is released
	Brought  []Brought // what its submitter has to bring along; not part of Spec before that is done
}

// Brought is a directory or file of the submitter's that the job is to have.
type Brought struct {
	From string // on the submitter's machine; a relative one is beside the job's file
	Path string // in the container

	Clone *Commit // From is the address of a repository, which is cloned first; nil: it is a path
}

// Commit is what of a repository is wanted; where it says nothing, the newest of the
// repository's own branch.
type Commit struct {
	Branch string
	Hash   string
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

// What is wrong with a document and how it was understood is told by package
// document. Callers of Parse need no more of it than these.
type (
	Problem  = document.Problem
	Problems = document.Problems
	Note     = document.Note
)

// Parse reads a native job document (GPULab v2 JSON with gbatch's additions).
// The error is a Problems with everything that is wrong.
func Parse(data []byte) (Submission, error) {
	n, err := readDocument(data)
	if err != nil {
		return Submission{}, err
	}
	d := newDecoder(&native)
	var s Spec
	if !d.foreign(n) && document.Object(d, n, specFields, &s) {
		d.checkSpec(n, &s)
	}
	if ps := d.Problems(); ps != nil {
		return Submission{}, ps
	}
	return Submission{Spec: s, Registry: d.creds, Secrets: d.secrets, Notes: d.Notes()}, nil
}

// readDocument checks the size and reads the tree.
func readDocument(data []byte) (*node, error) {
	if len(data) > document.MaxBytes {
		return nil, Problems{{Message: fmt.Sprintf("has %d bytes, a job file may have at most %d", len(data), document.MaxBytes),
			Hint: "put data into project storage and mount it with request.docker.storage"}}
	}
	src := strings.TrimPrefix(string(data), "\ufeff")
	if strings.TrimSpace(src) == "" {
		return nil, Problems{{Message: "is empty", Hint: "a job file is a JSON object with \"name\" and \"request\""}}
	}
	return document.ReadJSON(src)
}

// foreign reports a document of another format in one problem instead of one
// for each of its keys.
func (d *decoder) foreign(n *node) bool {
	if n.Child("request") != nil || n.Child("jobDefinition") == nil {
		return false
	}
	d.Problem(n.Child("jobDefinition"), "makes this a GPULab version 1 document, and a version 2 document was expected",
		"convert it with gsubmit --convert")
	return true
}
