package metrics

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"gbatch/internal/metricstest"
)

var jobs = Gauge("test_jobs", "Jobs by user.", "user")

func scrape(t *testing.T, read func(*Set)) string {
	t.Helper()
	reg := prometheus.NewRegistry()
	reg.MustRegister(&Collector{Families: []Family{jobs}, Read: read})
	w := httptest.NewRecorder()
	Handler(reg).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("scrape: %d %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// Names are made by others: whatever they hold, the scrape can be read, and
// what becomes equal is one series.
func TestOddNames(t *testing.T) {
	text := scrape(t, func(s *Set) {
		for _, name := range []string{"a\"b", "a\nb", `a\b`, "\xff\xfe", "\xff\xfd", "", strings.Repeat("é", 200), strings.Repeat("é", 300), "a{b=\"c\"} 7"} {
			s.Add(jobs, 1, name)
		}
	})
	want := `# HELP test_jobs Jobs by user.
# TYPE test_jobs gauge
test_jobs{user=""} 1
test_jobs{user="a\nb"} 1
test_jobs{user="a\"b"} 1
test_jobs{user="a\\b"} 1
test_jobs{user="a{b=\"c\"} 7"} 1
test_jobs{user="` + strings.Repeat("é", 64) + `"} 2
test_jobs{user="` + "\uFFFD" + `"} 2
`
	if diff := cmp.Diff(want, text); diff != "" {
		t.Errorf("scrape (-want +got):\n%s", diff)
	}
	metricstest.Lint(t, text)
}

func FuzzLabel(f *testing.F) {
	f.Add("alice")
	f.Add("\xff\xff")
	f.Add(strings.Repeat("x", maxLabel-1) + "é")
	f.Fuzz(func(t *testing.T, s string) {
		l := labelValue(s)
		if !utf8.ValidString(l) || len(l) > 3*maxLabel {
			t.Errorf("label of %q: %q", s, l)
		}
		if utf8.ValidString(s) && !strings.HasPrefix(s, l) {
			t.Errorf("label of %q: %q is no part of it", s, l)
		}
	})
}

func TestTop(t *testing.T) {
	label := Top(map[string]float64{"a": 1, "b": 3, "c": 3, "d": 0}, 2)
	var got []string
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		got = append(got, label(name))
	}
	if diff := cmp.Diff([]string{Other, "b", "c", Other, Other}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFirst(t *testing.T) {
	f := First{Max: 3}
	var got []string
	for i := range 5 {
		got = append(got, f.Label(fmt.Sprint(i)))
	}
	got = append(got, f.Label("1"))
	if diff := cmp.Diff([]string{"0", "1", "2", Other, Other, "1"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
