package accounting

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"
)

// Term is one line of the share tree with everything that its fair-share factor
// comes from.
type Term struct {
	Account    string `json:"account"`
	User       string `json:"user,omitempty"` // empty: the account's own line
	Parent     string `json:"parent,omitempty"`
	Depth      int    `json:"depth"` // 0 for accounts below the root
	Shares     int64  `json:"shares"`
	NormShares int64  `json:"normShares"` // of its siblings, in Scale parts
	Usage      int64  `json:"usage"`      // decayed, billed thousandths x milliseconds
	NormUsage  int64  `json:"normUsage"`  // of its siblings, in Scale parts
	LevelFS    int64  `json:"levelFs"`    // NormShares / NormUsage in Scale parts; Unused without usage
	Factor     int64  `json:"factor"`     // of users, in Scale parts
	Rank       int    `json:"rank"`       // of users, 1 the first
	Total      Amount `json:"total"`      // never decays
	Month      int64  `json:"month"`      // billed since this month began, thousandths x milliseconds
	Budget     int64  `json:"budget,omitempty"`
	Monthly    bool   `json:"monthly,omitempty"` // the budget is one of a calendar month
}

// Unused is the level factor of those who used nothing: above all others.
const Unused = 1<<63 - 1

// vertex is a place in the share tree: an account, or a user below one.
type vertex struct {
	Term
	up       *vertex
	children []*vertex
	newcomer bool // stands for users of the project that have no row yet
}

// Shares are the factors as of now, by Fair Tree: at each level of the tree the
// children with the higher ratio of shares to usage go first with all that is
// below them, and users get their rank in the order in which they are reached.
func (l *Ledger) Shares(now int64) *Shares {
	root, all := l.build(now)
	rank(root)
	out := &Shares{claims: map[key]Claim{}, newcomers: map[string]Claim{}, budgets: map[string]Budget{}}
	for _, v := range all {
		switch {
		case v.newcomer:
			out.newcomers[v.Account] = Claim{Factor: v.Factor, Part: v.part()}
		case v.User != "":
			k := key{v.Account, v.User}
			c := Claim{Factor: v.Factor, Part: v.part()}
			if r := l.rows[k]; r != nil {
				c.Began, c.Until = r.Began, r.Until
			}
			out.claims[k] = c
		default:
			if b, ok := v.budget(); ok {
				out.budgets[v.Account] = b
			}
		}
	}
	return out
}

// Terms is the whole tree with every term, depth first, by name.
func (l *Ledger) Terms(now int64) []Term {
	root, _ := l.build(now)
	rank(root)
	var out []Term
	var walk func(*vertex)
	walk = func(v *vertex) {
		if v.up != nil && !v.newcomer {
			out = append(out, v.Term)
		}
		slices.SortFunc(v.children, func(a, b *vertex) int { // an account's users, then the accounts below it
			if (a.User == "") != (b.User == "") {
				return cmp.Compare(b.User, a.User)
			}
			return cmp.Or(cmp.Compare(a.Account, b.Account), cmp.Compare(a.User, b.User))
		})
		for _, c := range v.children {
			walk(c)
		}
	}
	walk(root)
	return out
}

// part is what is due to the vertex of everything.
func (v *vertex) part() int64 {
	p := int64(Scale)
	for ; v.up != nil; v = v.up {
		p = part(p, Scale, v.NormShares)
	}
	return max(p, 1)
}

// budget is that of the account from here up of which most is used.
func (v *vertex) budget() (tightest Budget, found bool) {
	const minute = 1000 * 60_000
	for ; v != nil; v = v.up {
		if v.Budget == 0 {
			continue
		}
		b := Budget{Account: v.Account, UsedMinutes: v.Total.Billed / minute, MaxMinutes: v.Budget, Monthly: v.Monthly}
		if v.Monthly {
			b.UsedMinutes = v.Month / minute
		}
		if !found || b.Percent() > tightest.Percent() {
			tightest, found = b, true
		}
	}
	return tightest, found
}

// build makes the tree of all accounts and users that are configured or have a
// row, with usage summed up.
func (l *Ledger) build(now int64) (*vertex, []*vertex) {
	root := &vertex{}
	root.Depth = -1
	accounts := map[string]*vertex{}
	var all []*vertex
	add := func(up *vertex, t Term) *vertex {
		t.Parent, t.Depth = up.Account, up.Depth+1
		v := &vertex{Term: t, up: up}
		up.children = append(up.children, v)
		all = append(all, v)
		return v
	}
	var account func(name string) *vertex
	account = func(name string) *vertex {
		if v := accounts[name]; v != nil {
			return v
		}
		a, ok := l.config.Tree[name]
		if !ok {
			a.Shares = defaultShares
		}
		up := root
		if a.Parent != "" {
			up = account(a.Parent)
		}
		v := add(up, Term{Account: name, Shares: a.Shares, Budget: a.Budget, Monthly: a.Monthly})
		accounts[name] = v
		add(v, Term{Account: name}).newcomer = true
		return v
	}
	users := map[key]*vertex{}
	user := func(k key) *vertex {
		if users[k] == nil {
			shares, ok := l.config.Tree[k.project].Users[k.user]
			if !ok {
				shares = defaultShares
			}
			users[k] = add(account(k.project), Term{Account: k.project, User: k.user, Shares: shares})
		}
		return users[k]
	}
	for _, name := range slices.Sorted(maps.Keys(l.config.Tree)) {
		account(name)
		for _, u := range slices.Sorted(maps.Keys(l.config.Tree[name].Users)) {
			user(key{name, u})
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(l.rows), byKey) {
		r := *l.rows[k]
		r.Open, r.Models, r.ModelRates = nil, nil, nil // not asked for, and shared with the row
		l.sums(&r, now)
		for v := user(k); v != nil; v = v.up {
			v.Usage = plus(v.Usage, r.Usage)
			v.Month = plus(v.Month, r.MonthBilled)
			v.Total.add(r.Total, 1)
		}
	}
	return root, all
}

// rank gives every user its factor.
func rank(root *vertex) {
	count := 0
	var score func(*vertex)
	score = func(v *vertex) {
		var shares, usage int64
		for _, c := range v.children {
			shares, usage = plus(shares, c.Shares), plus(usage, c.Usage)
		}
		for _, c := range v.children {
			c.NormShares, c.NormUsage = part(c.Shares, shares, Scale), part(c.Usage, usage, Scale)
			if c.newcomer {
				c.NormShares = part(defaultShares, plus(shares, defaultShares), Scale)
			}
			c.LevelFS = levelFS(c, shares, usage)
			if c.User != "" || c.newcomer {
				count++
			}
			score(c)
		}
	}
	score(root)
	left := count
	assign := func(v *vertex, at int) {
		v.Rank, v.Factor = count-at+1, part(int64(at), int64(count), Scale)
	}
	var descend func([]*vertex)
	descend = func(siblings []*vertex) {
		slices.SortStableFunc(siblings, func(a, b *vertex) int {
			return cmp.Or(cmp.Compare(b.LevelFS, a.LevelFS), cmp.Compare(a.Account, b.Account), cmp.Compare(a.User, b.User))
		})
		for len(siblings) > 0 {
			tied := 1
			for tied < len(siblings) && siblings[tied].LevelFS == siblings[0].LevelFS {
				tied++
			}
			at := left
			var below []*vertex // accounts that tie are as one
			for _, v := range siblings[:tied] {
				if v.User != "" || v.newcomer {
					assign(v, at)
					left--
				}
				below = append(below, v.children...)
			}
			if len(below) > 0 {
				descend(below)
			}
			siblings = siblings[tied:]
		}
	}
	descend(slices.Clone(root.children))
}

// levelFS is the ratio of a vertex's part of the shares to its part of the
// usage among its siblings.
func levelFS(v *vertex, shares, usage int64) int64 {
	switch {
	case v.newcomer:
		return Unused
	case v.Shares == 0:
		return 0
	case v.Usage == 0:
		return Unused
	}
	const fine = 1 << 31
	s, u := part(v.Shares, shares, fine), part(v.Usage, usage, fine)
	if u == 0 {
		return Unused
	}
	return part(s, u, Scale)
}

// part is v/of in parts of the unit.
func part(v, of, unit int64) int64 {
	if of == 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(v), uint64(unit))
	if hi >= uint64(of) {
		return Unused - 1
	}
	q, _ := bits.Div64(hi, lo, uint64(of))
	return int64(min(q, Unused-1))
}
