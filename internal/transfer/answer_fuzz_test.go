package transfer

import (
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
	var answers atomic.Pointer[[4]string]
	var asked atomic.Int64
	url := web(f, func(w http.ResponseWriter, r *http.Request) {
		a := answers.Load()
		body := a[3]
		if asked.Add(1) == 1 {
			body = a[0]
		}
		if a[2] != "" {
			w.Header().Set("Content-Range", strings.Map(func(c rune) rune { return max(c, ' ') }, a[2]))
		}
		w.Header().Set("ETag", `"e"`)
		code := map[string]int{"206": 206, "416": 416, "404": 404, "503": 503, "302": 302}[a[1]]
		w.WriteHeader(max(code, 200))
		_, _ = w.Write([]byte(body))
	})
	f.Fuzz(func(t *testing.T, first, status, contentRange, rest string, bucket bool) {
		const most = 64
		answers.Store(&[4]string{first, status, contentRange, rest})
		asked.Store(0)
		c := testClient()
		c.Pause, c.Stall = time.Microsecond, 20*time.Millisecond // a listing without end ends soon
		src, err := c.HTTP(url + "/x")
		if bucket {
			src, err = c.S3Source(S3{Endpoint: url, AccessKey: "a", SecretKey: "b"}, "s3://b/p/")
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
