package ctld

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// generators is the directory that scripts/generators has filled. Without it, or a
// program that it needs, the test is skipped.
func generators(t *testing.T, programs ...string) string {
	t.Helper()
	dir := os.Getenv("GBATCH_GENERATORS")
	if dir == "" {
		t.Skip("SKIPPED: GBATCH_GENERATORS names no directory with generators of clients: make clients")
	}
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("SKIPPED: %s is missing", p)
		}
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "node_modules")
}

// described writes the description of the API, in both versions, beside the clients'
// own files, and returns the directory.
func describedIn(t *testing.T, s *testSite, modules string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"openapi.json", "openapi-3.0.json"} {
		rec := httptest.NewRecorder()
		s.server.api.ServeHTTP(rec, httptest.NewRequest("GET", "/"+name, nil))
		if err := os.WriteFile(filepath.Join(dir, name), rec.Body.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(dir, os.DirFS("testdata/clients")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"type":"module"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// plain serves the site over HTTP on loopback, as root on the controller's machine has it.
func (s *testSite) plain() string {
	socket := strings.TrimPrefix(s.Client.Address, "unix://")
	tr := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "gbatch"})
	proxy.Transport = tr
	server := httptest.NewServer(proxy)
	s.t.Cleanup(server.Close)
	return server.URL
}

// in runs a program in a directory and returns what it says.
func in(t *testing.T, dir, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true", "PYTHONPATH="+dir+"/python")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%.8000s", program, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// TestGeneratedTypeScript: a client that is made of the description compiles, and a
// program that uses it submits a job.
func TestGeneratedTypeScript(t *testing.T) {
	modules := generators(t, "node")
	s := newSite(t, nil)
	dir := describedIn(t, s, modules)
	in(t, dir, "node", "node_modules/openapi-typescript/bin/cli.js", "openapi.json", "-o", "schema.ts")
	in(t, dir, "node", "node_modules/typescript/bin/tsc", "-p", ".")
	if got := in(t, dir, "node", "out/submit.js", s.plain()); got != "from-typescript ONHOLD\n" {
		t.Errorf("the program says %q", got)
	}
}

// TestGeneratedPython: likewise in Python, of the older version of the description.
func TestGeneratedPython(t *testing.T) {
	modules := generators(t, "java", "python3")
	const needs = "import urllib3, six, certifi, dateutil"
	python := "/usr/bin/python3" // Debian's, which has Debian's modules
	if out, err := exec.Command(python, "-c", needs).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: %s: install python3-urllib3, python3-six, python3-certifi and python3-dateutil: %s", needs, out)
	}
	s := newSite(t, nil)
	dir := describedIn(t, s, modules)
	in(t, dir, "java", "-jar", "node_modules/@openapitools/openapi-generator-cli/bin/openapi-generator.jar", "generate", "-i", "openapi-3.0.json", "-g", "python", "-o", "python")
	in(t, dir, python, "-m", "compileall", "-q", "python/openapi_client")
	if got := in(t, dir, python, "submit.py", s.plain()); got != "from-python ONHOLD\n" {
		t.Errorf("the program says %q", got)
	}
}

// TestLintedDescription: strict linters have nothing to say.
func TestLintedDescription(t *testing.T) {
	modules := generators(t, "node")
	dir := describedIn(t, newSite(t, nil), modules)
	if err := os.WriteFile(filepath.Join(dir, "rules.yaml"), []byte("extends: [[spectral:oas, all]]\nrules: {contact-properties: off, license-url: off} # the site's, which has no page of its own\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, doc := range []string{"openapi.json", "openapi-3.0.json"} {
		in(t, dir, "node", "node_modules/@redocly/cli/bin/cli.js", "lint", "--extends=recommended-strict", "--skip-rule=info-license-strict", doc) // 3.0 has no names for licenses
		in(t, dir, "node", "node_modules/@stoplight/spectral-cli/dist/index.js", "lint", "--fail-severity=hint", "--ruleset", "rules.yaml", doc)
	}
}
