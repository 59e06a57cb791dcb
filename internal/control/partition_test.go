package control

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/cockroachdb/datadriven"
)

// site runs the commands that change the site's rules.
//
//	partitions: the list as JSON below
func (w *world) site(d *datadriven.TestData) (string, bool) {
	cfg := *w.c.cfg
	var into any = &cfg.Partitions
	switch d.Cmd {
	case "partitions":
		cfg.Partitions = nil
	case "licenses":
		cfg.Policy.Licenses, into = nil, &cfg.Policy.Licenses
	default:
		return "", false
	}
	if err := json.Unmarshal([]byte(d.Input), into); err != nil {
		w.t.Fatalf("%s: %v", d.Pos, err)
	}
	cfg.Policy.Partitions = cfg.Partitions.Policy()
	w.cfg.Policy.Licenses = cfg.Policy.Licenses
	_, refusal, eff := Apply(w.c, w.now, Reconfigure{Config: cfg})
	if w.store(eff); refusal != nil {
		return refusal.Message, true
	}
	var b strings.Builder
	for n := range w.c.nodes.list.All() {
		fmt.Fprintf(&b, "%s: %s\n", n.Name, strings.Join(n.Partitions, ", "))
	}
	return b.String(), true
}
