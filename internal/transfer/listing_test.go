package transfer

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// endless writes until nobody reads any more, and at most 64 MiB.
func endless(w io.Writer) {
	for range 64 {
		if _, err := io.WriteString(w, strings.Repeat("x", 1<<20)); err != nil {
			return
		}
	}
}

// TestLongAnswers: of what a server says beside objects and lists little is read, and
// long names are not kept: there may be very many.
func TestLongAnswers(t *testing.T) {
	long := strings.Repeat("x", 10<<10)
	for name, tc := range map[string]struct {
		hook func(w http.ResponseWriter, r *http.Request) bool
		kind Kind
		want string
	}{
		"begin of an upload": {func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPost || !r.URL.Query().Has("uploads") {
				return false
			}
			io.WriteString(w, "<InitiateMultipartUploadResult><UploadId>")
			endless(w)
			return true
		}, TooLarge, "more than 1024 KiB"},
		"name of an upload": {func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPost || !r.URL.Query().Has("uploads") {
				return false
			}
			fmt.Fprintf(w, "<InitiateMultipartUploadResult><UploadId>%s</UploadId></InitiateMultipartUploadResult>", long)
			return true
		}, Invalid, "names of more than 1 KiB"},
		"name of a part": {func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("ETag", `"`+long+`"`)
			return r.Method == http.MethodPut
		}, Invalid, "names of more than 1 KiB"},
		"end of an upload": {func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPost || !r.URL.Query().Has("uploadId") {
				return false
			}
			endless(w)
			return true
		}, TooLarge, "more than 1024 KiB"},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := newServer(t), testClient()
			s.Hook(tc.hook)
			wantKind(t, put(t, c, s, files(t, map[string]int{"large": 11 << 20}), "s3://lab/"), tc.kind, tc.want)
		})
	}
	for size, want := range map[int]string{10 << 10: "names of more than 1 KiB", 1 << 20: "given up"} {
		uri := web(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("ETag", `"`+strings.Repeat("x", size)+`"`)
		})
		src, err := testClient().HTTP(uri)
		if err != nil {
			t.Fatal(err)
		}
		defer src.Close()
		if _, err = List(t.Context(), uri, src); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a version of %d bytes: %.300v, want %s", size, err, want)
		}
	}
}

// TestPartsEnd: a server that lists parts without end is asked for those of the object.
func TestPartsEnd(t *testing.T) {
	s, c := newServer(t), testClient()
	asked := 0
	s.Hook(func(w http.ResponseWriter, _ *http.Request) bool {
		asked++
		fmt.Fprintf(w, `<ListPartsResult><IsTruncated>%t</IsTruncated><NextPartNumberMarker>%d</NextPartNumberMarker><Part><PartNumber>%d</PartNumber><ETag>"t"</ETag><Size>5</Size></Part></ListPartsResult>`, asked < 100, asked, asked)
		return true
	})
	b, err := c.bucket(s.at, "s3://lab/x")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	u := &upload{bucket: b, object: Object{Size: 15}, key: "x", size: 5, id: "u", there: map[int]string{}}
	if err := u.listParts(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if asked != 3 || len(u.there) != 3 {
		t.Errorf("of 3 parts it was asked %d times and %v are there", asked, u.there)
	}
}

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
