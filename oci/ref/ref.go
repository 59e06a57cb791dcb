// Package ref reads and writes image references as users write them in job
// files: Docker Hub names, names at another registry, such a name with
// credentials in front, digests, and images that lie in a local directory or
// file. It is pure: it looks nothing up, so a good reference may still name
// nothing. It does not talk to registries; package image does.
//
// A password never leaves this package in an error or in a printed value.
package ref

import (
	"fmt"
	"strings"
)

// The transports: where the bytes of an image come from.
const (
	Registry      = "docker"         // a registry, over HTTP
	OCILayout     = "oci"            // a directory in OCI image layout
	OCIArchive    = "oci-archive"    // a tar of an OCI image layout
	DockerArchive = "docker-archive" // a tar as written by docker save
)

// DefaultRegistry is the registry of a name that has no registry part.
const DefaultRegistry = "docker.io"

// Ref names one image. Values made by Parse are in canonical form: two
// references to the same thing are equal, so a Ref can be a map key. It holds
// no credentials.
type Ref struct {
	Transport  string // one of the transports above
	Registry   string // host or host:port, lower case; only for Registry
	Repository string // with library/ for official Docker Hub images; only for Registry
	Tag        string // "latest" if a registry name has neither tag nor digest; may be empty beside a Digest
	Digest     string // "sha256:<64 hex>" or empty; wins over Tag
	Path       string // absolute and clean; only for the local transports
}

// Local reports whether the image lies in a local directory or file.
func (r Ref) Local() bool { return r.Transport != Registry && r.Transport != "" }

// WithDigest returns the same name pinned to a digest.
func (r Ref) WithDigest(digest string) Ref {
	r.Digest = digest
	return r
}

// Name returns the reference without tag and digest, in canonical form.
func (r Ref) Name() string {
	if r.Local() {
		return r.Transport + ":" + r.Path
	}
	return r.Registry + "/" + r.Repository
}

// String returns the canonical form. Parse reads it back to an equal Ref.
func (r Ref) String() string { return r.Name() + r.suffix() }

// Familiar returns the short form that users write: no docker.io, no library/,
// no tag latest.
func (r Ref) Familiar() string {
	if r.Local() {
		return r.String()
	}
	name := r.Name()
	if r.Registry == DefaultRegistry {
		name = shortHubName(r.Repository)
	}
	if r.Tag == "latest" && r.Digest == "" {
		return name
	}
	return name + r.suffix()
}

// shortHubName drops what Parse adds again, and only that.
func shortHubName(repository string) string {
	first, rest, _ := strings.Cut(repository, "/")
	switch {
	case first == "library" && !strings.Contains(rest, "/"):
		return rest
	case isHost(first):
		return DefaultRegistry + "/" + repository
	}
	return repository
}

func (r Ref) suffix() string {
	s := ""
	if r.Tag != "" {
		s = ":" + r.Tag
	}
	if r.Digest != "" {
		s += "@" + r.Digest
	}
	return s
}

// Error says which part of a reference is wrong. It quotes nothing of the
// text but, where that helps, one character.
type Error struct {
	Part   string // "credentials", "registry", "repository", "tag", "digest", "path", "reference"
	Detail string // what is wrong with it, in one clause
}

// Forms names the accepted forms, for messages.
const Forms = "name:tag, registry:port/name:tag, user:password@registry:port/name:tag, name@sha256:<64 hex digits>, " +
	"oci:/path/layout:tag, oci-archive:/path.tar:tag or docker-archive:/path.tar"

func (e *Error) Error() string {
	return fmt.Sprintf("parse image reference: %s %s; write %s", e.Part, e.Detail, Forms)
}

func bad(part, format string, args ...any) error {
	return &Error{Part: part, Detail: fmt.Sprintf(format, args...)}
}
