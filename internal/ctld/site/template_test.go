package site

import (
	"net/netip"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/deploy"
	"gbatch/internal/settings"
	"gbatch/internal/settings/settingstest"
)

// TestGuide: each example of the operator's guide is a file that is taken.
func TestGuide(t *testing.T) {
	text, err := os.ReadFile("../../../docs/administration.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(examples) < 4 {
		t.Fatalf("the guide has %d examples: was it read?", len(examples))
	}
	for _, e := range examples {
		if _, err := parse("example", []byte(e[1])); err != nil {
			t.Errorf("%v\n%s", err, e[1])
		}
	}
}

// TestTemplate: the commented configuration has each key that is read, shows the
// defaults, and what stands in comments can be read where it stands.
func TestTemplate(t *testing.T) {
	c, err := parse("gctld.yaml", []byte(deploy.Gctld))
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	same := cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })
	if diff := cmp.Diff(want, c, same, settingstest.EmptyIsNil); diff != "" {
		t.Errorf("it shows other values than the defaults (-default +shown):\n%s", diff)
	}
	all := settingstest.Uncomment(deploy.Gctld)
	if err := settings.Read([]byte(all), &c).Err(); err != nil {
		t.Errorf("without its comment marks: %v", err)
	}
	missing, err := settingstest.Missing(all, reflect.TypeFor[Config]())
	missing = slices.DeleteFunc(missing, func(key string) bool { // shown once, where they are of all, or of perUser
		last := key[strings.LastIndexByte(key, '.')+1:]
		return strings.HasPrefix(key, "limits.users.*.") || strings.HasPrefix(key, "policy.") && slices.Contains([]string{"running", "queued", "gpus", "gpuMinutes"}, last)
	})
	if len(missing) > 0 || err != nil {
		t.Errorf("it lacks %q, %v", missing, err)
	}
}
