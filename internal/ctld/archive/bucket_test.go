package archive

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gbatch/internal/transfer/s3test"
)

// TestBucket: objects go to the place that is named, with keys that may change at
// any time and that nobody else may read.
func TestBucket(t *testing.T) {
	s3 := s3test.New(t)
	file := filepath.Join(t.TempDir(), "keys")
	write := func(text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
	}
	b, err := New(Place{URI: "s3://lab/logs/", Endpoint: s3.URL, KeyFile: file})
	if err != nil {
		t.Fatal(err)
	}
	put := func() error {
		return b.Put(t.Context(), "u-ann/a.tar.gz", io.NewSectionReader(strings.NewReader("hello"), 0, 5))
	}
	for name, tc := range map[string]struct {
		text string
		mode os.FileMode
		want string
	}{
		"one word": {"key", 0o600, "has 1 words"},
		"open":     {s3test.AccessKey + " " + s3test.SecretKey, 0o644, "can be read by others"},
		"wrong":    {s3test.AccessKey + " wrong", 0o600, ""},
	} {
		write(tc.text, tc.mode)
		if err := put(); err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), s3test.SecretKey) {
			t.Errorf("%s: %v", name, err)
		}
	}
	write(s3test.AccessKey+"\n"+s3test.SecretKey+"\n", 0o600)
	if err := put(); err != nil {
		t.Fatal(err)
	}
	body, err := b.Get(t.Context(), "u-ann/a.tar.gz")
	if err != nil || body == nil {
		t.Fatalf("%v, %v", body, err)
	}
	defer body.Close()
	if text, err := io.ReadAll(body); string(text) != "hello" || err != nil {
		t.Errorf("read %q, %v", text, err)
	}
	if body, err := b.Get(t.Context(), "none"); body != nil || err != nil {
		t.Errorf("an object that is not there: %v, %v", body, err)
	}
}

func TestCheckPlace(t *testing.T) {
	for _, tc := range []struct{ uri, endpoint, want string }{
		{"s3://lab/logs", "", ""}, {"s3://lab", "http://127.0.0.1:9000", ""}, {"s3://lab/a/b/", "https://s3.example.org/", ""},
		{"https://lab/logs", "", "want s3://"}, {"s3:///logs", "", "want s3://"}, {"", "", "want s3://"}, {"s3://lab?x=1", "", "want s3://"},
		{"s3://lab", "s3.example.org", "no https://"}, {"s3://lab", "https://s3.example.org/path", "no https://"}, {"s3://lab", "ftp://x", "no https://"},
	} {
		err := Place{URI: tc.uri, Endpoint: tc.endpoint}.Check()
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s at %q: %v, want %q", tc.uri, tc.endpoint, err, tc.want)
		}
	}
}
