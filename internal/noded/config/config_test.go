package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/deploy"
	"gbatch/internal/document"
	"gbatch/internal/settings/settingstest"
)

// TestGoodConfig reads a file that uses every key.
func TestGoodConfig(t *testing.T) {
	c, err := Load("testdata/good/all.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/good/all.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if missing, err := settingstest.Missing(string(text), reflect.TypeFor[Config]()); err != nil || missing != nil {
		t.Errorf("testdata/good/all.yaml lacks the keys %q, %v", missing, err)
	}
	want := StorageRoot{Name: "/project", Path: "/srv/project/{project}", Create: true, Mode: 0o2770}
	if diff := cmp.Diff(want, c.Storage[0]); diff != "" {
		t.Errorf("storage root (-want +got):\n%s", diff)
	}
	if c.ShmSize != 128<<20 || c.Logs.KeepSize != 20<<30 {
		t.Errorf("sizes: shm %s, logs %s", c.ShmSize, c.Logs.KeepSize)
	}
}

// TestBadConfigs: each file begins with comments that are its problems.
func TestBadConfigs(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for line := range strings.Lines(string(text)) {
				if rest, ok := strings.CutPrefix(line, "#= "); ok {
					want = append(want, strings.TrimSpace(rest))
				}
			}
			_, err = Load(file)
			problems, ok := errors.AsType[document.Problems](err)
			if !ok {
				t.Fatalf("error %v", err)
			}
			var got []string
			for _, p := range problems {
				got = append(got, p.String())
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMetricsConfig(t *testing.T) {
	for name, tc := range map[string]struct {
		m    Metrics
		want string // part of the error; empty: none
	}{
		"none":               {},
		"loopback":           {m: Metrics{Listen: "127.0.0.1:9401"}},
		"loopback6":          {m: Metrics{Listen: "[::1]:9401"}},
		"token":              {m: Metrics{Listen: ":9401", TokenFile: "/etc/gbatch/metrics.token"}},
		"open":               {Metrics{Listen: "0.0.0.0:9401"}, "give a metrics.tokenFile"},
		"everywhere":         {Metrics{Listen: ":9401"}, "give a metrics.tokenFile"},
		"no port":            {Metrics{Listen: "127.0.0.1"}, "want ADDRESS:PORT"},
		"alias":              {Metrics{Listen: "127.0.0.1:1", Aliases: []string{"nvml"}}, "there is dcgm"},
		"alias of nothing":   {Metrics{Aliases: []string{DCGMAliases}}, "metrics.listen: missing"},
		"relative directory": {Metrics{JobMap: "jobs"}, "metrics.jobMap"},
	} {
		t.Run(name, func(t *testing.T) {
			c := Config{Name: "n", Controller: "unix:///run/gctld.sock", Metrics: tc.m}
			c.SetDefaults()
			err := c.Validate()
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// TestDurations: the grammar of job files and that of Go are both taken.
func TestDurations(t *testing.T) {
	for _, text := range []string{"5m", "5 minutes", "300s"} {
		c, err := Parse([]byte("lease: " + text + "\n"))
		if err != nil || c.Lease != Duration(5*time.Minute) {
			t.Errorf("%s: %s, %v", text, c.Lease, err)
		}
	}
}

func FuzzConfig(f *testing.F) {
	files, _ := filepath.Glob("testdata/*/*.yaml")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Parse(text)
		if err == nil {
			c.SetDefaults()
			_ = c.Validate()
		}
	})
}

// TestTemplate: the commented configuration has each key that is read, and what
// stands in comments can be read where it stands.
func TestTemplate(t *testing.T) {
	if _, err := Parse([]byte(deploy.Gnoded)); err != nil {
		t.Fatal(err)
	}
	all := settingstest.Uncomment(deploy.Gnoded)
	if _, err := Parse([]byte(all)); err != nil {
		t.Errorf("without its comment marks: %v", err)
	}
	if missing, err := settingstest.Missing(all, reflect.TypeFor[Config]()); missing != nil || err != nil {
		t.Errorf("it lacks %q, %v", missing, err)
	}
}
