package transfer

import (
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// FuzzAnswer fetches from a server that answers anything: whatever it lists and
// sends, what comes here lies in the directory and is as large as allowed.
func FuzzAnswer(f *testing.F) {
	const listing = `<?xml version="1.0"?><ListBucketResult><Name>b</Name><Prefix>p/</Prefix><KeyCount>1</KeyCount><IsTruncated>false</IsTruncated>` +
		`<Contents><Key>p/%</Key><Size>3</Size><ETag>"e"</ETag></Contents></ListBucketResult>`
	f.Add(strings.Replace(listing, "%", "a/b", 1), "200", "", "abc", true)
	f.Add(strings.Replace(listing, "%", "../../x", 1), "200", "", "abc", true)
	f.Add(strings.Replace(listing, "<Size>3", "<Size>-3", 1), "200", "", "abc", true)
	f.Add(strings.Replace(listing, "false", "true", 1), "200", "", "abc", true)
	f.Add("abc", "206", "bytes 0-0/3", "abc", false)
	f.Add("abc", "206", "bytes 0-0/-3", "abc", false)
	f.Add("abc", "206", "bytes 0-0/9223372036854775807", "abcdef", false)
	f.Add("", "416", "bytes */0", "", false)
	f.Fuzz(func(t *testing.T, first, status, contentRange, rest string, bucket bool) {
		const most = 64
		c := testClient()
		c.Pause = time.Nanosecond
		c.way = &answers{first: first, rest: rest, status: status, contentRange: contentRange}
		src, err := c.HTTP("https://host.example/x")
		if bucket {
			src, err = c.S3Source(S3{Endpoint: "https://host.example", AccessKey: "a", SecretKey: "b"}, "s3://b/p/")
		}
		if err != nil {
			t.Fatal(err)
		}
		defer src.Close()
		dir := t.TempDir()
		if _, err := c.Fetch(t.Context(), Fetch{Source: src, URI: "x", Dir: filepath.Join(dir, "here"), MaxBytes: most}); err != nil {
			return
		}
		total := int64(0)
		err = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			st, err := os.Lstat(p)
			if !strings.HasPrefix(p, filepath.Join(dir, "here")+"/") {
				t.Errorf("it made %s", p)
			}
			if strings.Contains(p, "/"+ContentDir+"/") {
				total += st.Size()
			}
			return err
		})
		if err != nil || total > most {
			t.Errorf("%d bytes came, %v", total, err)
		}
	})
}

// answers is a server that answers anything, without a network: it would take
// nearly all of the time.
type answers struct {
	asked                             atomic.Int64
	first, rest, status, contentRange string
}

func (a *answers) CloseIdleConnections() {}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	body := a.rest
	if a.asked.Add(1) == 1 {
		body = a.first
	}
	h := http.Header{"Etag": {`"e"`}}
	if a.contentRange != "" {
		h.Set("Content-Range", strings.Map(func(c rune) rune { return max(c, ' ') }, a.contentRange))
	}
	code := max(map[string]int{"206": 206, "416": 416, "404": 404, "503": 503, "302": 302}[a.status], 200)
	length := int64(len(body))
	if r.Method == http.MethodHead {
		body = ""
	}
	return &http.Response{StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: h,
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: length, Request: r}, nil
}
