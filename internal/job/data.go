package job

import (
	"fmt"
	"net/url"
	"path"
	"strings"

	"gbatch/internal/document"
)

// Input is data that is there before the program starts.
type Input struct {
	URI    string `json:"uri"`              // s3://BUCKET/KEY, https://, http:// where the site allows, file:// below a storage root, or tree:ID[/PATH] of a directory that was brought along
	Path   string `json:"path"`             // in the container: of the file, or of the directory if URI ends in /
	SHA256 string `json:"sha256,omitempty"` // of the one file, in hex
	Cache  bool   `json:"cache,omitempty"`  // kept on the node for other jobs, and mounted read-only
}

// Output is data that is saved when the program has ended.
type Output struct {
	Path    string `json:"path"`              // in the container: a directory or a file
	URI     string `json:"uri"`               // s3://BUCKET/PREFIX/, file:// below a storage root, or results:///PATH below the site's place for results
	Pattern string `json:"pattern,omitempty"` // of the files below Path, as "*.pt" or "**/*.json"; empty: all
	When    string `json:"when,omitempty"`    // empty: it succeeded; "failure", "always"
}

// The words of Output.When; the empty word is success.
const (
	WhenFailure = "failure"
	WhenAlways  = "always"
)

// S3 is where s3:// leads, and which secrets hold its keys.
type S3 struct {
	Endpoint     string `json:"endpoint,omitempty"` // https://HOST[:PORT]; empty: the site's
	Region       string `json:"region,omitempty"`
	AccessKey    string `json:"accessKeySecret,omitempty"`    // name of a secret; empty: AWS_ACCESS_KEY_ID
	SecretKey    string `json:"secretKeySecret,omitempty"`    // name of a secret; empty: AWS_SECRET_ACCESS_KEY
	SessionToken string `json:"sessionTokenSecret,omitempty"` // name of a secret; empty: AWS_SESSION_TOKEN if there is one
}

const maxTransfers = 1000

var inputFields = []field[Input]{
	{"uri", func(d *decoder, n *node, i *Input) { d.str(n, &i.URI, inputURI) }, true},
	{"path", func(d *decoder, n *node, i *Input) { d.absolute(n, &i.Path) }, true},
	{"sha256", func(d *decoder, n *node, i *Input) { d.str(n, &i.SHA256, sha256Hex) }, false},
	{"cache", func(d *decoder, n *node, i *Input) { d.boolean(n, &i.Cache) }, false},
}

var outputFields = []field[Output]{
	{"path", func(d *decoder, n *node, o *Output) { d.absolute(n, &o.Path) }, true},
	{"uri", func(d *decoder, n *node, o *Output) { d.str(n, &o.URI, dataURI("s3", "file", "results")) }, true},
	{"pattern", func(d *decoder, n *node, o *Output) { d.str(n, &o.Pattern, filePattern) }, false},
	{"when", func(d *decoder, n *node, o *Output) { d.str(n, &o.When, oneOf(WhenFailure, WhenAlways)) }, false},
}

var s3Fields = []field[S3]{
	{"endpoint", func(d *decoder, n *node, s *S3) { d.str(n, &s.Endpoint, dataURI("https", "http")) }, false},
	{"region", func(d *decoder, n *node, s *S3) { d.str(n, &s.Region, word(".-")) }, false},
	{"accessKeySecret", func(d *decoder, n *node, s *S3) { d.str(n, &s.AccessKey, SecretName) }, false},
	{"secretKeySecret", func(d *decoder, n *node, s *S3) { d.str(n, &s.SecretKey, SecretName) }, false},
	{"sessionTokenSecret", func(d *decoder, n *node, s *S3) { d.str(n, &s.SessionToken, SecretName) }, false},
}

func readInputs(d *decoder, n *node, g *Gbatch) {
	at := map[string]int{}
	d.elements(n, maxTransfers, func(i int, n *node) {
		var in Input
		if !document.Object(d, n, inputFields, &in) {
			return
		}
		if first, ok := at[in.Path]; ok && in.Path != "" {
			d.ProblemAt(n, "path", fmt.Sprintf("is %s, as that of entry [%d] is", document.Quote(in.Path), first), "give each input its own path")
		}
		at[in.Path] = i
		if in.SHA256 != "" && strings.HasSuffix(in.URI, "/") {
			d.ProblemAt(n, "sha256", "is the checksum of one file, and uri names a directory", "remove it")
		}
		if strings.HasPrefix(in.URI, "http") && strings.HasSuffix(in.URI, "/") {
			d.ProblemAt(n, "uri", "is a directory, and web servers do not list what is in one", "name the file, or use s3://")
		}
		if _, _, is := in.Tree(); is && (in.Cache || in.SHA256 != "") {
			d.ProblemAt(n, "uri", "is a directory that was brought along: it has its checksum in its name, and each job has its own copy", "remove \"cache\" and \"sha256\"")
		}
		d.ownPath(n, in.Path)
		g.Inputs = append(g.Inputs, in)
	})
}

// treeScheme begins the URI of a directory that its user has brought along: it
// is on the controller's disk under this name, which says what is in it.
const treeScheme = "tree:"

// TreeURI names a directory that was brought along, or one file of it.
func TreeURI(id, file string) string { return strings.TrimSuffix(treeScheme+id+"/"+file, "/") }

// Tree is the name of the directory that an input is of, and which file of it;
// is says that it is one.
func (i Input) Tree() (id, file string, is bool) {
	rest, is := strings.CutPrefix(i.URI, treeScheme)
	id, file, _ = strings.Cut(rest, "/")
	return id, file, is
}

// Trees are the directories that a job takes along.
func (s *Spec) Trees() map[string]bool {
	ids := map[string]bool{}
	if s.Gbatch != nil {
		for _, in := range s.Gbatch.Inputs {
			if id, _, is := in.Tree(); is {
				ids[id] = true
			}
		}
	}
	return ids
}

// inputURI wants a URI that inputs can have.
func inputURI(s string) string {
	id, file, is := Input{URI: s}.Tree()
	if !is {
		return dataURI("s3", "https", "http", "file")(s)
	}
	if wrong := sha256Hex(id); wrong != "" {
		return fmt.Sprintf("is %s: want tree:ID as gsubmit --workdir-upload writes it; what follows the colon %s", document.Quote(s), wrong)
	}
	if file != "" && (path.Clean(file) != file || path.IsAbs(file) || file == ".." || strings.HasPrefix(file, "../") || len(s) > maxPathBytes) {
		return fmt.Sprintf("is %s: what follows the ID is the name of one file in the directory", document.Quote(s))
	}
	return dataPath(file)
}

func readOutputs(d *decoder, n *node, g *Gbatch) {
	d.elements(n, maxTransfers, func(_ int, n *node) {
		var out Output
		if document.Object(d, n, outputFields, &out) {
			d.ownPath(n, out.Path)
			g.Outputs = append(g.Outputs, out)
		}
	})
}

// ownPath refuses a path that is the system's.
func (d *decoder) ownPath(n *node, p string) {
	if message, hint := checkStorage(Storage{HostPath: "/x", ContainerPath: p}); message != "" && p != "" {
		d.ProblemAt(n, "path", message, hint)
	}
}

// dataURI wants a URI of one of the schemes, with what belongs into it and no
// password, which would be shown.
func dataURI(schemes ...string) func(string) string {
	return func(s string) string {
		u, err := url.Parse(s)
		if err != nil || len(s) > maxPathBytes {
			return "is no URI"
		}
		if wrong := oneOf(schemes...)(u.Scheme); wrong != "" {
			return "has a scheme that " + wrong
		}
		switch {
		case u.User != nil:
			return "has a login in it, which would be shown: put it into secrets"
		case u.Scheme == "results" && (u.Host != "" || strings.Trim(u.Path, "/") == "" || path.Clean(u.Path) != strings.TrimSuffix(u.Path, "/")):
			return fmt.Sprintf("is %s: want results:///PATH", document.Quote(s))
		case u.Scheme == "file" && (u.Host != "" || !path.IsAbs(u.Path)):
			return fmt.Sprintf("is %s: want file:///ABSOLUTE/PATH", document.Quote(s))
		case u.Scheme != "file" && u.Scheme != "results" && u.Host == "":
			return fmt.Sprintf("is %s, which names no host or bucket", document.Quote(s))
		case u.Fragment != "" || !strings.HasPrefix(u.Scheme, "http") && (u.RawQuery != "" || u.ForceQuery):
			return fmt.Sprintf("is %s: nothing may follow the path", document.Quote(s))
		case !strings.HasPrefix(u.Scheme, "http"):
			return dataPath(u.Path)
		}
		return ""
	}
}

// dataPath looks at the path of a URI, in which escapes are decoded.
func dataPath(s string) string {
	switch {
	case strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c == 0x7f }):
		return "must not contain line breaks or control characters"
	case strings.Contains(s+"/", "/../"):
		return fmt.Sprintf("must not contain .. elements, is %s", document.Quote(s))
	}
	return ""
}

func sha256Hex(s string) string {
	if len(s) != 64 || strings.Trim(s, "0123456789abcdef") != "" {
		return "must be 64 hexadecimal digits in lower case"
	}
	return ""
}

// filePattern wants a pattern that path.Match takes part by part; ** stands for
// any number of directories.
func filePattern(s string) string {
	if s == "" || strings.HasPrefix(s, "/") || len(s) > maxPathBytes {
		return fmt.Sprintf("is %s: want a pattern below path, such as *.pt or **/*.json", document.Quote(s))
	}
	for part := range strings.SplitSeq(s, "/") {
		if _, err := path.Match(part, "x"); err != nil || part == ".." || part == "." {
			return fmt.Sprintf("is %s, which is no pattern", document.Quote(s))
		}
	}
	return ""
}
