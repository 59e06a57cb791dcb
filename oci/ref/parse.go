package ref

import (
	"net/netip"
	"path"
	"strconv"
	"strings"
)

// Bounds of the distribution specification.
const (
	maxRepository = 255
	maxTag        = 128
	maxReference  = 4096 // of the whole text, so that hostile input stays cheap
)

const dockerScheme = "docker://"

// Parse reads a reference. The credentials are nil where the text has none;
// local images have none. The error is an *Error and never shows a password.
func Parse(s string) (Ref, *Credentials, error) {
	if s == "" {
		return Ref{}, nil, bad("reference", "is empty")
	}
	if len(s) > maxReference {
		return Ref{}, nil, bad("reference", "is longer than %d characters", maxReference)
	}
	for _, transport := range []string{OCILayout, OCIArchive, DockerArchive} {
		if rest, ok := strings.CutPrefix(s, transport+":"); ok && looksLocal(rest) {
			r, err := parseLocal(transport, rest)
			return r, nil, err
		}
	}
	return parseRegistry(strings.TrimPrefix(s, dockerScheme))
}

// looksLocal tells oci:/path from an image that is named oci: only a path
// starts with a slash or a dot.
func looksLocal(rest string) bool {
	return strings.HasPrefix(rest, "/") || strings.HasPrefix(rest, ".")
}

func parseRegistry(s string) (Ref, *Credentials, error) {
	head, digest := cutDigest(s)
	creds, name, err := cutCredentials(head)
	if err != nil {
		return Ref{}, nil, err
	}
	r := Ref{Transport: Registry, Digest: digest}
	if err := checkDigest(digest); err != nil {
		return Ref{}, nil, err
	}
	for _, scheme := range []string{"http://", "https://"} {
		if strings.HasPrefix(name, scheme) {
			return Ref{}, nil, bad("reference", "starts with %s: leave that out", scheme)
		}
	}
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		name, r.Tag = name[:i], name[i+1:]
		if err := checkTag(r.Tag); err != nil {
			return Ref{}, nil, err
		}
	}
	if first, rest, ok := strings.Cut(name, "/"); ok && isHost(first) {
		r.Registry, name = strings.ToLower(first), rest
		if err := checkRegistry(r.Registry); err != nil {
			return Ref{}, nil, err
		}
	}
	switch r.Registry {
	case "", "index.docker.io", "registry-1.docker.io", "registry.hub.docker.com":
		r.Registry = DefaultRegistry
	}
	r.Repository = name
	if r.Registry == DefaultRegistry && !strings.Contains(name, "/") {
		r.Repository = "library/" + name
	}
	if len(r.Repository) > maxRepository {
		return Ref{}, nil, bad("repository", "is longer than %d characters", maxRepository)
	}
	if err := checkRepository(name); err != nil {
		return Ref{}, nil, err
	}
	if r.Tag == "" && r.Digest == "" {
		r.Tag = "latest"
	}
	return r, creds, nil
}

// parseLocal reads /path[:tag][@digest]. Tag and digest are looked for in the
// last element only, so directories may hold colons.
func parseLocal(transport, s string) (Ref, error) {
	if !strings.HasPrefix(s, "/") {
		return Ref{}, bad("path", "is relative: a job runs on another machine, so it must start with /")
	}
	if i := strings.IndexFunc(s, isControl); i >= 0 {
		return Ref{}, bad("path", "holds a control character at position %d", i+1)
	}
	r := Ref{Transport: transport}
	s = path.Clean(s)
	// A digest is cut before the path is split: it holds no slash.
	s, r.Digest = cutDigest(s)
	if err := checkDigest(r.Digest); err != nil {
		return Ref{}, err
	}
	if i := strings.LastIndexByte(s, ':'); i > strings.LastIndexByte(s, '/') {
		s, r.Tag = s[:i], s[i+1:]
		if transport == DockerArchive {
			return Ref{}, bad("tag", "cannot be chosen in a docker-archive: save one image per file")
		}
		if err := checkTag(r.Tag); err != nil {
			return Ref{}, err
		}
	}
	if s == "/" || path.Clean(s) != s {
		return Ref{}, bad("path", "names no file")
	}
	r.Path = s
	return r, nil
}

// cutDigest splits off what follows the last @ if it is meant as a digest. A
// bad digest is returned as well, so that it is reported as one and is not
// mistaken for an image name behind credentials.
func cutDigest(s string) (head, digest string) {
	at := strings.LastIndexByte(s, '@')
	if at < 0 || strings.Contains(s[at:], "/") {
		return s, ""
	}
	algorithm, _, ok := strings.Cut(strings.ToLower(s[at+1:]), ":")
	if !ok || !strings.HasPrefix(algorithm, "sha") || strings.Trim(algorithm[3:], "0123456789") != "" || algorithm == "sha" {
		return s, ""
	}
	return s[:at], s[at+1:]
}

func checkDigest(d string) error {
	if d == "" {
		return nil
	}
	algorithm, hex, _ := strings.Cut(d, ":")
	if algorithm != "sha256" {
		return bad("digest", "is not a sha256 digest")
	}
	if len(hex) != 64 {
		return bad("digest", "has %d hex digits where sha256 has 64", len(hex))
	}
	if i := strings.IndexFunc(hex, func(c rune) bool { return !isDigit(c) && (c < 'a' || c > 'f') }); i >= 0 {
		return bad("digest", "has a character other than 0-9 and a-f at position %d", i+1)
	}
	return nil
}

func checkTag(tag string) error {
	if tag == "" {
		return bad("tag", "is empty after the colon")
	}
	if len(tag) > maxTag {
		return bad("tag", "has %d characters where %d are allowed", len(tag), maxTag)
	}
	for i, c := range tag {
		if !isLower(c) && !isDigit(c) && c != '_' && (c < 'A' || c > 'Z') && (i == 0 || c != '.' && c != '-') {
			return bad("tag", "may not have %q at position %d: letters, digits, _ and, not first, . and - are allowed", c, i+1)
		}
	}
	return nil
}

// checkRepository wants lower-case words joined by one of . _ __ or dashes, in
// components joined by slashes.
func checkRepository(name string) error {
	if name == "" {
		return bad("repository", "(the image name) is empty")
	}
	for i, c := range name {
		switch {
		case c >= 'A' && c <= 'Z':
			return bad("repository", "must be in lower case, but has %q at position %d", c, i+1)
		case !isLower(c) && !isDigit(c) && !strings.ContainsRune("/._-", c):
			return bad("repository", "may not have %q at position %d: a-z, 0-9, and . _ - / between them are allowed", c, i+1)
		}
	}
	for component := range strings.SplitSeq(name, "/") {
		if component == "" {
			return bad("repository", "has an empty part between slashes")
		}
		if !goodSeparators(component) {
			return bad("repository", "has . _ or - at the start or end of a part, or several of them together")
		}
	}
	return nil
}

func goodSeparators(component string) bool {
	for run := range strings.FieldsFuncSeq(component, func(c rune) bool { return isLower(c) || isDigit(c) }) {
		if run != "." && run != "_" && run != "__" && strings.Trim(run, "-") != "" {
			return false
		}
	}
	first, last := rune(component[0]), rune(component[len(component)-1])
	return (isLower(first) || isDigit(first)) && (isLower(last) || isDigit(last))
}

// isHost tells a registry from the first part of a Docker Hub name, by the
// rule that every client uses.
func isHost(first string) bool {
	return strings.ContainsAny(first, ".:") || strings.EqualFold(first, "localhost")
}

func checkRegistry(host string) error {
	name, port := host, ""
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		name, port = host[:i], host[i+1:]
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || port[0] == '0' {
			return bad("registry", "has a port that is no number from 1 to 65535")
		}
	}
	if v6, ok := strings.CutPrefix(name, "["); ok {
		v6, ok = strings.CutSuffix(v6, "]")
		if addr, err := netip.ParseAddr(v6); !ok || err != nil || !addr.Is6() || addr.Zone() != "" {
			return bad("registry", "is no IPv6 address in [ ]")
		}
		return nil
	}
	if len(name) > 253 {
		return bad("registry", "has a host name longer than 253 characters")
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || label[0] == '-' || label[len(label)-1] == '-' {
			return bad("registry", "has a host name with an empty part, or with a - at the start or end of one")
		}
	}
	for i, c := range name {
		if !isLower(c) && !isDigit(c) && !strings.ContainsRune(".-_", c) {
			return bad("registry", "may not have %q at position %d of its host name", c, i+1)
		}
	}
	return nil
}

func isLower(c rune) bool { return c >= 'a' && c <= 'z' }
func isDigit(c rune) bool { return c >= '0' && c <= '9' }
