package sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gbatch/internal/control"
	"gbatch/internal/units"
	"gbatch/sched"
)

// AddNodes adds nodes as COUNTxGPUSxMODEL says, as 2x8xh100. A new node is like
// one of the same model that is there, or else has 16 cores and 128 GiB for
// each GPU.
func AddNodes(nodes []Node, text string) ([]Node, error) {
	parts := strings.SplitN(text, "x", 3)
	bad := fmt.Errorf("nodes to add are %q: want COUNTxGPUSxMODEL, as 2x8xh100", text)
	if len(parts) != 3 || parts[2] == "" {
		return nil, bad
	}
	count, err1 := strconv.Atoi(parts[0])
	gpus, err2 := strconv.Atoi(parts[1])
	if err1 != nil || err2 != nil || count < 1 || count > 10_000 || gpus < 0 || gpus > sched.MaxGPUs {
		return nil, bad
	}
	like := -1
	for i := range nodes {
		if g := nodes[i].Inventory.GPUs; len(g) == gpus && gpus > 0 && strings.Contains(strings.ToLower(g[0].Model), strings.ToLower(parts[2])) {
			like = i
			break
		}
	}
	out := slices.Clone(nodes)
	next := 0
	for range count {
		name := ""
		for name == "" || slices.ContainsFunc(out, func(o Node) bool { return o.Name == name }) {
			next++
			name = fmt.Sprintf("new%d", next)
		}
		n := gpuNode(name, gpus, parts[2])
		n.Inventory.CPUs, n.Inventory.MemBytes = 16*max(gpus, 1), int64(max(gpus, 1))<<37
		if like >= 0 {
			n = cloneNode(nodes[like], name)
		}
		out = append(out, n)
	}
	return out, nil
}

// cloneNode is a node of the same hardware with other identifiers.
func cloneNode(n Node, name string) Node {
	inv := n.Inventory
	inv.Hostname = name
	rename := map[string]string{}
	inv.GPUs = slices.Clone(inv.GPUs)
	for i := range inv.GPUs {
		fresh := fmt.Sprintf("%s/%d", name, i)
		rename[inv.GPUs[i].UUID] = fresh
		inv.GPUs[i].UUID, inv.GPUs[i].Unhealthy = fresh, ""
	}
	for i := range inv.GPUs {
		links := slices.Clone(inv.GPUs[i].Links)
		for l := range links {
			links[l] = rename[links[l]]
		}
		inv.GPUs[i].Links = links
	}
	return Node{name, inv}
}

// Set changes one rule, as "half_life=14d", "mode=easy", "weights.fair_share=20000"
// or "max_wait_boost=2d". Names are those of the policy; case and underscores do
// not matter.
func Set(cfg *control.Config, text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok {
		return fmt.Errorf("rule to set is %q: want NAME=VALUE, as half_life=14d", text)
	}
	if plain(name) == "halflife" {
		ms, err := millis(value)
		if err != nil {
			return fmt.Errorf("set %s: %w", name, err)
		}
		cfg.Accounting.HalfLifeMS = ms
		return cfg.Accounting.Validate()
	}
	data, err := json.Marshal(cfg.Policy)
	if err != nil {
		return err
	}
	var tree map[string]any
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.UseNumber()
	if err := d.Decode(&tree); err != nil {
		return err
	}
	if err := setIn(tree, strings.Split(name, "."), value); err != nil {
		return fmt.Errorf("set %s: %w", name, err)
	}
	if data, err = json.Marshal(tree); err != nil {
		return err
	}
	p := sched.Policy{}
	if err := json.Unmarshal(data, &p); err != nil {
		return fmt.Errorf("set %s: %w", name, err)
	}
	if err := p.Validate(); err != nil {
		return fmt.Errorf("set %s: %w", name, err)
	}
	cfg.Policy = p
	return nil
}

func plain(s string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(s))
}

func setIn(tree map[string]any, path []string, value string) error {
	names := slices.Sorted(maps.Keys(tree))
	for _, n := range names {
		span, isSpan := strings.CutSuffix(n, "Ms")
		if p := plain(path[0]); p != plain(n) && (!isSpan || p != plain(span)) {
			continue
		}
		if len(path) > 1 {
			inner, ok := tree[n].(map[string]any)
			if !ok {
				return fmt.Errorf("%s has no parts", n)
			}
			return setIn(inner, path[1:], value)
		}
		switch tree[n].(type) {
		case string:
			tree[n] = value
			return nil
		case json.Number:
			if isSpan {
				ms, err := millis(value)
				tree[n] = ms
				return err
			}
			i, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return fmt.Errorf("%q is no whole number", value)
			}
			tree[n] = i
			return nil
		}
		return fmt.Errorf("%s is no single value", n)
	}
	return fmt.Errorf("there is no such rule; there are half_life, %s", strings.Join(names, ", "))
}

// millis reads a length of time as 90m, 12h or 14d, or a number of seconds.
func millis(s string) (int64, error) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && n >= 0 && n < 1<<40 {
		return n * 1000, nil
	}
	d, err := units.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("%q is no length of time: want it as 90m, 12h or 14d", s)
	}
	return d.Milliseconds(), nil
}
