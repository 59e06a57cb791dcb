package ref

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
)

const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestParse(t *testing.T) {
	docker := func(registry, repository, tag, digest string) Ref {
		return Ref{Transport: Registry, Registry: registry, Repository: repository, Tag: tag, Digest: digest}
	}
	cases := map[string]struct {
		in       string
		want     Ref
		creds    *Credentials
		familiar string
	}{
		"hub_official":       {"debian:stable", docker("docker.io", "library/debian", "stable", ""), nil, "debian:stable"},
		"hub_default_tag":    {"ubuntu", docker("docker.io", "library/ubuntu", "latest", ""), nil, "ubuntu"},
		"hub_user":           {"nvidia/cuda:10.1-cudnn7-devel-ubuntu18.04", docker("docker.io", "nvidia/cuda", "10.1-cudnn7-devel-ubuntu18.04", ""), nil, "nvidia/cuda:10.1-cudnn7-devel-ubuntu18.04"},
		"hub_alias":          {"index.docker.io/library/ubuntu", docker("docker.io", "library/ubuntu", "latest", ""), nil, "ubuntu"},
		"hub_scheme":         {"docker://ubuntu:22.04", docker("docker.io", "library/ubuntu", "22.04", ""), nil, "ubuntu:22.04"},
		"hub_library_deep":   {"docker.io/library/a/b", docker("docker.io", "library/a/b", "latest", ""), nil, "library/a/b"},
		"hub_host_like":      {"docker.io/foo.bar/x", docker("docker.io", "foo.bar/x", "latest", ""), nil, "docker.io/foo.bar/x"},
		"registry_port":      {"gitlab.ilabt.imec.be:4567/ilabt/gpulab-examples/nvidia/sample:nvidia-smi", docker("gitlab.ilabt.imec.be:4567", "ilabt/gpulab-examples/nvidia/sample", "nvidia-smi", ""), nil, "gitlab.ilabt.imec.be:4567/ilabt/gpulab-examples/nvidia/sample:nvidia-smi"},
		"registry_no_tag":    {"host.example:5000/x", docker("host.example:5000", "x", "latest", ""), nil, "host.example:5000/x"},
		"registry_upper":     {"Host.Example/x:T", docker("host.example", "x", "T", ""), nil, "host.example/x:T"},
		"localhost":          {"localhost:5000/x", docker("localhost:5000", "x", "latest", ""), nil, "localhost:5000/x"},
		"localhost_no_port":  {"localhost/x", docker("localhost", "x", "latest", ""), nil, "localhost/x"},
		"ipv6":               {"[::1]:5000/x:1", docker("[::1]:5000", "x", "1", ""), nil, "[::1]:5000/x:1"},
		"digest":             {"ubuntu@" + digest, docker("docker.io", "library/ubuntu", "", digest), nil, "ubuntu@" + digest},
		"tag_and_digest":     {"h.io/a/b:v1@" + digest, docker("h.io", "a/b", "v1", digest), nil, "h.io/a/b:v1@" + digest},
		"deploy_token":       {"gitlab+deploy-token-3:XYZ@host.be:4567/a/b:tag", docker("host.be:4567", "a/b", "tag", ""), &Credentials{"gitlab+deploy-token-3", "XYZ"}, "host.be:4567/a/b:tag"},
		"oauth_token":        {"$oauthtoken:k/e:y=@nvcr.io/nvidia/x:1", docker("nvcr.io", "nvidia/x", "1", ""), &Credentials{"$oauthtoken", "k/e:y="}, "nvcr.io/nvidia/x:1"},
		"password_with_at":   {"u:p@ss@h.io/a", docker("h.io", "a", "latest", ""), &Credentials{"u", "p@ss"}, "h.io/a"},
		"creds_and_digest":   {"u:p@h.io/a@" + digest, docker("h.io", "a", "", digest), &Credentials{"u", "p"}, "h.io/a@" + digest},
		"creds_hub":          {"u:p@org/private:2", docker("docker.io", "org/private", "2", ""), &Credentials{"u", "p"}, "org/private:2"},
		"image_named_oci":    {"oci:1.2", docker("docker.io", "library/oci", "1.2", ""), nil, "oci:1.2"},
		"layout":             {"oci:/data/img", Ref{Transport: OCILayout, Path: "/data/img"}, nil, "oci:/data/img"},
		"layout_tag":         {"oci:/data/a:b//img/:v1", Ref{Transport: OCILayout, Path: "/data/a:b/img", Tag: "v1"}, nil, ""},
		"layout_digest":      {"oci:/data/img:v1@" + digest, Ref{Transport: OCILayout, Path: "/data/img", Tag: "v1", Digest: digest}, nil, ""},
		"oci_archive":        {"oci-archive:/data/img.tar:v1", Ref{Transport: OCIArchive, Path: "/data/img.tar", Tag: "v1"}, nil, ""},
		"docker_archive":     {"docker-archive:/data/img.tar", Ref{Transport: DockerArchive, Path: "/data/img.tar"}, nil, ""},
		"path_with_at":       {"oci-archive:/data/me@home", Ref{Transport: OCIArchive, Path: "/data/me@home"}, nil, ""},
		"separators":         {"a.b/c__d/e---f/g_h:x", docker("a.b", "c__d/e---f/g_h", "x", ""), nil, "a.b/c__d/e---f/g_h:x"},
		"sha_named_registry": {"u:p@sha.example/x", docker("sha.example", "x", "latest", ""), &Credentials{"u", "p"}, "sha.example/x"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, creds, err := Parse(tc.in)
			if name == "layout_tag" {
				// A slash after the last element is cleaned away first.
				if err == nil {
					t.Fatalf("Parse accepted %+v", got)
				}
				got, creds, err = Parse("oci:/data/a:b//img:v1")
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Ref (-want +got):\n%s", diff)
			}
			if (creds == nil) != (tc.creds == nil) || creds != nil && *creds != *tc.creds {
				t.Errorf("credentials: got %v, want %v", creds, tc.creds)
			}
			if tc.familiar != "" && got.Familiar() != tc.familiar {
				t.Errorf("Familiar() = %q, want %q", got.Familiar(), tc.familiar)
			}
			checkRoundTrip(t, got)
		})
	}
}

func checkRoundTrip(t *testing.T, want Ref) {
	t.Helper()
	for _, s := range []string{want.String(), want.Familiar()} {
		got, creds, err := Parse(s)
		if err != nil || creds != nil || got != want {
			t.Fatalf("%q reads back as %+v, %v, %v; want %+v", s, got, creds, err, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	cases := map[string]struct{ in, part, detail string }{
		"empty":           {"", "reference", "is empty"},
		"long":            {strings.Repeat("a", 5000), "reference", "longer than 4096"},
		"scheme":          {"https://h.io/a", "reference", "starts with https://"},
		"no_colon":        {"user@h.io/a", "credentials", "no colon"},
		"no_user":         {":SECRETPW@h.io/a", "credentials", "empty user"},
		"no_password":     {"user:@h.io/a", "credentials", "empty password"},
		"control":         {"user:SECRET\nPW@h.io/a", "credentials", "control character"},
		"creds_no_name":   {"user:SECRETPW@", "repository", "is empty"},
		"creds_bad_name":  {"user:SECRETPW@h.io/A", "repository", "lower case, but has 'A' at position 1"},
		"creds_bad_tag":   {"user:SECRETPW@h.io/a:", "tag", "is empty"},
		"space":           {"ubuntu :1", "repository", "' ' at position 7"},
		"bad_tag":         {"ubuntu:-x", "tag", "'-' at position 1"},
		"long_tag":        {"ubuntu:" + strings.Repeat("x", 129), "tag", "129 characters where 128"},
		"long_repository": {strings.Repeat("x", 256), "repository", "longer than 255"},
		"empty_part":      {"h.io/a//b", "repository", "empty part"},
		"separators":      {"h.io/a..b", "repository", "several"},
		"leading":         {"-a", "repository", "start or end"},
		"short_digest":    {"a@sha256:12", "digest", "2 hex digits"},
		"upper_digest":    {"a@" + strings.ToUpper(digest), "digest", "sha256"},
		"sha512":          {"a@sha512:12", "digest", "not a sha256"},
		"creds_digest":    {"u:SECRETPW@h.io/a@sha256:xyz", "digest", "3 hex digits"},
		"port":            {"h.io:99999/a", "registry", "port"},
		"port_zero":       {"h.io:0/a", "registry", "port"},
		"host_part":       {"h..io/a", "registry", "empty part"},
		"host_character":  {"h.i+o/a", "registry", "'+' at position 4"},
		"ipv6":            {"[zz]:5/a", "registry", "IPv6"},
		"relative":        {"oci:./layout", "path", "is relative"},
		"root":            {"oci:/", "path", "names no file"},
		"parent":          {"oci:/a/..:b", "path", "names no file"},
		"control_path":    {"oci:/a\x00b", "path", "control character at position 3"},
		"archive_tag":     {"docker-archive:/a.tar:b", "tag", "save one image per file"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, _, err := Parse(tc.in)
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("Parse = %+v, %v; want an *Error", got, err)
			}
			if e.Part != tc.part || !strings.Contains(e.Detail, tc.detail) {
				t.Errorf("got part %q: %q; want part %q: %q", e.Part, e.Detail, tc.part, tc.detail)
			}
			if !strings.Contains(err.Error(), "registry:port/name:tag") {
				t.Errorf("%q does not name the accepted forms", err)
			}
			if strings.Contains(err.Error(), "SECRET") {
				t.Errorf("password shown by %q", err)
			}
		})
	}
}

func TestCredentialsNeverShowThePassword(t *testing.T) {
	c := Credentials{Username: "user", Password: "SECRET"}
	type holder struct{ c *Credentials }
	var out strings.Builder
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&out, format+"\n", c)
		fmt.Fprintf(&out, format+"\n", &c)
		if strings.HasSuffix(format, "v") {
			fmt.Fprintf(&out, format+"\n", holder{&c})
		}
		fmt.Fprintf(&out, format+"\n", []any{c, map[string]any{"k": &c}})
	}
	for _, v := range []any{c, &c, map[string]any{"c": c}} {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(b)
	}
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "c", c, "p", &c)
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "c", c, "p", &c)
	hex := fmt.Sprintf("%x", "SECRET")
	if s := out.String(); strings.Contains(s, "SECRET") || strings.Contains(s, hex) {
		t.Errorf("password shown:\n%s", s)
	}
}

// FuzzParse also compares with a registry client's parser: what we accept, the
// client must accept as the same name.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"ubuntu", "debian:stable", "localhost:5000/x", "[::1]:5000/x", "u:p@h.io/a/b:t@" + digest, "a@" + digest,
		"oci:/a/b:c", "oci-archive:/a.tar", "docker-archive:/a", "docker.io/library/library/x", "docker://x", "oci:/a@sha256:", "A.B/c", "localhost/a",
		"docker.io/localhost/x", "u:@:@@", "registry-1.docker.io/x",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, creds, err := Parse(s)
		if err != nil {
			if len(err.Error()) > 600 {
				t.Fatalf("error of %d bytes", len(err.Error()))
			}
		} else {
			checkRoundTrip(t, r)
			if !r.Local() {
				theirs, err := name.ParseReference(r.String(), name.StrictValidation)
				if err != nil {
					// Their names have two characters at least.
					if len(r.Repository) >= 2 {
						t.Fatalf("%q: the client refuses %q: %v", s, r, err)
					}
				} else if got := strings.TrimPrefix(theirs.Context().Name(), "index."); got != r.Name() {
					t.Fatalf("%q: the client reads %q, we read %q", s, got, r.Name())
				}
			}
			if creds != nil && (creds.Username == "" || creds.Password == "") {
				t.Fatal("half of the credentials are empty")
			}
		}
		// Whatever stands for a name, a password before it is never shown.
		const secret = "s3cr3t-P4ssw0rd"
		for _, full := range []string{"user:" + secret + "@" + s, "user:" + s + secret + "@h.io/a", "docker://user:" + secret + "@" + s} {
			r, creds, err := Parse(full)
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Fatalf("error shows the password: %v", err)
			}
			if err == nil && creds != nil && strings.Contains(r.String()+r.Familiar()+creds.String()+fmt.Sprintf("%#v", creds), secret) {
				t.Fatalf("password shown for %q", full)
			}
		}
	})
}
