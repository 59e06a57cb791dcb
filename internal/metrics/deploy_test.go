package metrics

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"gbatch/internal/metricstest"
)

const deploy = "../../deploy"

func promtool(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command(metricstest.Promtool(t), args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// TestRules: alerts come when they should, and not when they should not.
func TestRules(t *testing.T) {
	dir := filepath.Join(deploy, "prometheus")
	promtool(t, dir, "check", "config", "--syntax-only", "prometheus.yml")
	promtool(t, dir, "check", "rules", "rules.yml")
	promtool(t, dir, "test", "rules", "rules_test.yml")
}

// ruleFile is what is looked at in a file of rules.
type ruleFile struct {
	Groups []ruleGroup `yaml:"groups"`
}

type ruleGroup struct {
	Name  string `yaml:"name"`
	Rules []rule `yaml:"rules"`
}

type rule struct {
	Alert  string `yaml:"alert,omitempty"`
	Record string `yaml:"record,omitempty"`
	Expr   string `yaml:"expr"`
}

func alerts(t *testing.T) (exprs, names []string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(deploy, "prometheus/rules.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var file ruleFile
	if err := yaml.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			exprs, names = append(exprs, r.Expr), append(names, r.Alert)
		}
	}
	return exprs, names
}

// queries are the expressions of the dashboard.
func queries(t *testing.T) (exprs []string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(deploy, "grafana/gbatch.json"))
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(b, &board); err != nil {
		t.Fatal(err)
	}
	for _, p := range board.Panels {
		for _, q := range p.Targets {
			exprs = append(exprs, strings.ReplaceAll(q.Expr, "$__rate_interval", "5m"))
		}
	}
	return exprs
}

// TestDashboardQueries: Prometheus can parse each of them.
func TestDashboardQueries(t *testing.T) {
	group := ruleGroup{Name: "dashboard"}
	for _, q := range queries(t) {
		group.Rules = append(group.Rules, rule{Record: "dashboard:query", Expr: q})
	}
	if len(group.Rules) < 30 {
		t.Fatalf("the dashboard has %d queries: was it read?", len(group.Rules))
	}
	b, err := yaml.Marshal(ruleFile{[]ruleGroup{group}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "queries.yml"), b, 0o644); err != nil {
		t.Fatal(err)
	}
	promtool(t, dir, "check", "rules", "--lint=none", "queries.yml")
}

// TestWhatIsAskedForIsExported: no alert and no panel waits for a metric that
// there is not. What there is, the documentation lists; tests of the daemons
// hold it to that.
func TestWhatIsAskedForIsExported(t *testing.T) {
	b, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-zA-Z_]+)` ").FindAllStringSubmatch(string(b), -1) {
		listed = append(listed, m[1])
	}
	if len(listed) < 100 {
		t.Fatalf("the documentation lists %d metrics: was it read?", len(listed))
	}
	exprs, _ := alerts(t)
	ours := regexp.MustCompile(`\b(gctld|gnoded|gbatch)_[a-z0-9_]+`)
	for _, expr := range append(exprs, queries(t)...) {
		for _, name := range ours.FindAllString(expr, -1) {
			base := name
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				base = strings.TrimSuffix(base, suffix)
			}
			if !slices.Contains(listed, base) && !slices.Contains(listed, name) {
				t.Errorf("%s is not exported, and asked for by %s", name, expr)
			}
		}
	}
}

// TestEveryAlertIsTested: each is shown to come.
func TestEveryAlertIsTested(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(deploy, "prometheus/rules_test.yml"))
	if err != nil {
		t.Fatal(err)
	}
	_, names := alerts(t)
	for _, name := range names {
		if !strings.Contains(string(b), `alertname="`+name+`"`) || !strings.Contains(string(b), "alertname: "+name+"}") {
			t.Errorf("rules_test.yml does not show that %s comes, or that it does not when all is well", name)
		}
	}
}
