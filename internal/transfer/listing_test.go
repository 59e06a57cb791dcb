package transfer

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestListsEnd: a server whose list does not end, or is too large for what is in
// it, is told from a long list, by its first pages.
func TestListsEnd(t *testing.T) {
	page := func(w io.Writer, token int, keys ...string) {
		fmt.Fprintf(w, `<?xml version="1.0"?><ListBucketResult><Name>lab</Name><IsTruncated>true</IsTruncated><NextContinuationToken>t%d</NextContinuationToken>`, token)
		for _, k := range keys {
			fmt.Fprintf(w, `<Contents><Key>data/%s</Key><Size>1</Size><ETag>"x"</ETag></Contents>`, k)
		}
		io.WriteString(w, "</ListBucketResult>")
	}
	for name, tc := range map[string]struct {
		serve func(w io.Writer, n int)
		most  int // requests
		want  string
	}{
		"empty pages":      {func(w io.Writer, n int) { page(w, n) }, maxEmpty, "s3://lab/data/: the server lists 0 objects on 100 pages, and goes on"},
		"directories only": {func(w io.Writer, n int) { page(w, n, "a/") }, maxEmpty + maxEmpty/perPage + 1, "and goes on"},
		"a huge page": {func(w io.Writer, n int) {
			io.WriteString(w, "<ListBucketResult><Name>")
			for range 20 {
				if _, err := io.WriteString(w, strings.Repeat("x", 1<<20)); err != nil {
					return
				}
			}
		}, 1, "s3://lab/data/: a page of the server's list has more than 16 MiB"},
		"a long list": {func(w io.Writer, n int) {
			var keys []string
			for i := range 1000 {
				keys = append(keys, fmt.Sprintf("%d-%d", n, i))
			}
			page(w, n, keys...)
		}, maxObjects/1000 + 1, "s3://lab/data/: has more than 100000 objects"},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := newServer(t), testClient()
			asked := 0
			s.Hook(func(w http.ResponseWriter, _ *http.Request) bool {
				asked++
				w.Header().Set("Content-Type", "application/xml")
				tc.serve(w, asked)
				return true
			})
			src, err := c.S3Source(s.at, "s3://lab/data/")
			if err != nil {
				t.Fatal(err)
			}
			defer src.Close()
			_, err = List(t.Context(), "s3://lab/data/", src)
			wantKind(t, err, TooLarge, tc.want)
			if asked > tc.most {
				t.Errorf("it was asked %d times, want at most %d", asked, tc.most)
			}
		})
	}
}
