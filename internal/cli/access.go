package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/client"
)

// CreateToken makes a token and prints it alone on standard output: it is shown
// this once.
func (a *App) CreateToken(ctx context.Context, r api.TokenRequest, life time.Duration) error {
	r.LifeS = int64(life / time.Second)
	t, err := a.Client.CreateToken(ctx, r)
	if err != nil {
		return err
	}
	if a.Output.JSON {
		return a.writeJSON(t)
	}
	if t.Use == api.TokenJoin {
		node := firstNonEmpty(t.Node, "any node")
		a.say("token %s lets %s join, %d times, until %s; it is shown only now", t.ID, node, t.Left, t.Expires.Format(time.RFC3339))
	} else {
		a.say("token %s speaks for %s until %s; it is shown only now", t.ID, t.User, t.Expires.Format(time.RFC3339))
	}
	fmt.Fprintln(a.Out, t.Secret)
	return nil
}

func firstNonEmpty(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// Tokens lists tokens, never their secrets.
func (a *App) Tokens(ctx context.Context, all bool) error {
	l, err := a.Client.Tokens(ctx, all)
	if err != nil {
		return err
	}
	if a.Output.JSON {
		return a.writeJSON(l)
	}
	t := newTable("ID", "FOR", "STATE", "CREATED", "EXPIRES", "BY", "NOTE")
	for _, k := range l.Tokens {
		who := k.User
		if k.Use == api.TokenJoin {
			who = "join " + firstNonEmpty(k.Node, "any node")
		}
		t.AppendRow(toRow([]string{k.ID, who, a.tokenState(k), k.Created.Format(time.RFC3339), k.Expires.Format(time.RFC3339), k.By, k.Note}))
	}
	return render(a.Out, t, "")
}

func (a *App) tokenState(t api.Token) string {
	switch {
	case !t.Revoked.IsZero():
		return "revoked"
	case a.Now().After(t.Expires):
		return "expired"
	case t.Use == api.TokenJoin && t.Left == 0:
		return "used up"
	case t.Use == api.TokenJoin:
		return strconv.Itoa(t.Left) + " left"
	}
	return "in force"
}

// RevokeTokens takes tokens out of force.
func (a *App) RevokeTokens(ctx context.Context, ids []string) error {
	return a.allOf(ids, "token %s revoked\n", func(id string) error { return a.Client.RevokeToken(ctx, id) })
}

// RevokeNodes takes nodes' keys away.
func (a *App) RevokeNodes(ctx context.Context, nodes []string) error {
	return a.eachNode(DrainOptions{Nodes: nodes}, "revoked", func(node string) error { return a.Client.RevokeNode(ctx, node) })
}

// allOf does something to all that are named and says so.
func (a *App) allOf(names []string, done string, do func(string) error) error {
	var errs []error
	for _, n := range names {
		if err := do(n); err != nil {
			errs = append(errs, err)
			continue
		}
		fmt.Fprintf(a.Out, done, n)
	}
	return errors.Join(errs...)
}

// JoinString prints the address by which other machines reach the controller.
func (a *App) JoinString(ctx context.Context) error {
	s, err := a.Client.Site(ctx)
	if err != nil {
		return err
	}
	if a.Output.JSON {
		return a.writeJSON(s)
	}
	if s.Address == "" {
		return errors.New("this controller listens on its socket only: set `listen` in gctld.yaml and restart it")
	}
	fmt.Fprintln(a.Out, s.Address)
	return nil
}

// ProjectChange is what `gadm project add` and `set` change; nil leaves as it is.
type ProjectChange struct {
	GID, Running, Queued   *int
	Parent, BudgetPeriod   *string
	Budget                 *int64
	UserShares             map[string]int64 // added to those that are there; 0 takes one out
	Shares, GPUMinutes     *int64
	GPUs                   *float64
	Members, Groups        []string // replace, or with + and - add and take out
	Clusters               []int
	AnyCluster, AnyMembers bool
}

// AddProject makes a project.
func (a *App) AddProject(ctx context.Context, name string, c ProjectChange) error {
	p := api.Project{Name: name}
	if err := c.apply(&p); err != nil {
		return err
	}
	if err := a.Client.PutProject(ctx, p, true); err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "project %s made\n", name)
	return nil
}

// SetProject changes a project.
func (a *App) SetProject(ctx context.Context, name string, c ProjectChange) error {
	l, err := a.Client.Projects(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(l.Projects, func(p api.Project) bool { return p.Name == name })
	if i < 0 {
		return &exitError{ExitNotFound, fmt.Errorf("there is no project %q; `gadm project add` makes one", name)}
	}
	if err := c.apply(&l.Projects[i]); err != nil {
		return err
	}
	if err := a.Client.PutProject(ctx, l.Projects[i], false); err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "project %s changed\n", name)
	return nil
}

func (c ProjectChange) apply(p *api.Project) error {
	set(&p.GID, c.GID)
	set(&p.Shares, c.Shares)
	set(&p.Parent, c.Parent)
	set(&p.Budget, c.Budget)
	set(&p.BudgetPeriod, c.BudgetPeriod)
	if p.UserShares == nil {
		p.UserShares = map[string]int64{}
	}
	for user, n := range c.UserShares {
		if p.UserShares[user] = n; n == 0 {
			delete(p.UserShares, user)
		}
	}
	set(&p.Limits.Running, c.Running)
	set(&p.Limits.Queued, c.Queued)
	set(&p.Limits.GPUs, c.GPUs)
	set(&p.Limits.GPUMinutes, c.GPUMinutes)
	if c.AnyMembers {
		p.Members, p.Groups = nil, nil
	}
	var err error
	if p.Members, err = edited(p.Members, c.Members); err != nil {
		return usageError("--member: %w", err)
	}
	if p.Groups, err = edited(p.Groups, c.Groups); err != nil {
		return usageError("--group: %w", err)
	}
	if len(c.Clusters) > 0 || c.AnyCluster {
		p.Clusters = c.Clusters
	}
	return nil
}

func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

// edited is a list with names added (+name) and taken out (-name), or replaced
// by names without a sign.
func edited(old, change []string) ([]string, error) {
	out := slices.Clone(old)
	plain := 0
	for _, c := range change {
		switch name := strings.TrimLeft(c, "+-"); {
		case strings.HasPrefix(c, "+"):
			if !slices.Contains(out, name) {
				out = append(out, name)
			}
		case strings.HasPrefix(c, "-"):
			if !slices.Contains(out, name) {
				return nil, fmt.Errorf("%q is not in the list", name)
			}
			out = slices.DeleteFunc(out, func(n string) bool { return n == name })
		default:
			plain++
		}
	}
	if plain > 0 && plain < len(change) {
		return nil, errors.New("give either names with + and -, or the whole new list without")
	}
	if plain > 0 {
		return change, nil
	}
	return out, nil
}

// RemoveProjects removes projects.
func (a *App) RemoveProjects(ctx context.Context, names []string) error {
	return a.allOf(names, "project %s removed\n", func(n string) error { return a.Client.DropProject(ctx, n) })
}

// Projects lists projects.
func (a *App) Projects(ctx context.Context) error {
	l, err := a.Client.Projects(ctx)
	if err != nil {
		return err
	}
	if a.Output.JSON {
		return a.writeJSON(l)
	}
	shares, err := a.Client.Shares(ctx)
	if err != nil {
		return err
	}
	t := newTable("NAME", "GID", "SHARES", "CLUSTERS", "LIMITS", "BUDGET", "FROM", "MEMBERS")
	for _, p := range l.Projects {
		from := "gadm"
		if p.File {
			from = "file"
		}
		t.AppendRow(toRow([]string{p.Name, strconv.Itoa(p.GID), strconv.FormatInt(max(p.Shares, 1), 10), clustersOf(p), limitsOf(p.Limits), budgetOf(shares, p.Name), from, membersOf(p)}))
	}
	return render(a.Out, t, "")
}

// budgetOf is what a project has used of its budget.
func budgetOf(l *api.ShareList, project string) string {
	for _, s := range l.Shares {
		if s.Project == project && s.User == "" && s.Budget != nil {
			return budgetText(s.Budget)
		}
	}
	return ""
}

// budgetText is a budget in GPU-hours: what is used, of what, and for which
// period.
func budgetText(b *api.Budget) string {
	text := fmt.Sprintf("%.1f of %.1f h", b.Used, b.Hours)
	if b.Hours > 0 {
		text += fmt.Sprintf(" (%.0f%%)", 100*b.Used/b.Hours)
	}
	if b.Monthly {
		text += " this month"
	}
	return text
}

func clustersOf(p api.Project) string {
	if len(p.Clusters) == 0 {
		return "all"
	}
	return strings.Trim(strings.Join(strings.Fields(fmt.Sprint(p.Clusters)), ","), "[]")
}

func membersOf(p api.Project) string {
	who := slices.Clone(p.Members)
	for _, g := range p.Groups {
		who = append(who, "group "+g)
	}
	if len(who) == 0 {
		return "everyone"
	}
	return strings.Join(who, ", ")
}

func limitsOf(l api.ProjectLimits) string {
	var out []string
	for _, x := range []struct {
		name  string
		value float64
	}{{"running", float64(l.Running)}, {"queued", float64(l.Queued)}, {"gpus", l.GPUs}, {"gpuMinutes", float64(l.GPUMinutes)}} {
		if x.value > 0 {
			out = append(out, fmt.Sprintf("%s=%v", x.name, x.value))
		}
	}
	return strings.Join(out, " ")
}

// ShowPolicy prints the rules in force.
func (a *App) ShowPolicy(ctx context.Context) error {
	p, err := a.Client.Policy(ctx)
	if err != nil {
		return err
	}
	if a.Output.JSON {
		return a.writeJSON(p)
	}
	fmt.Fprint(a.Out, cleanLines(p.Text))
	return nil
}

// LoadPolicy has the controller read its file again; check only says what that
// would do.
func (a *App) LoadPolicy(ctx context.Context, check bool) error {
	do, done := a.Client.ReloadPolicy, "the rules are in force"
	if check {
		do, done = a.Client.CheckPolicy, "the file is fine"
	}
	p, err := do(ctx)
	if err != nil {
		return err
	}
	if a.Output.JSON {
		return a.writeJSON(p)
	}
	for _, line := range p.Changes {
		fmt.Fprintln(a.Out, clean(line))
	}
	if len(p.Changes) == 0 {
		done += "; nothing changes"
	}
	a.say("%s", done)
	return nil
}

// Audit prints the audit log, oldest of what is asked first.
func (a *App) Audit(ctx context.Context, f client.AuditFilter) error {
	l, err := a.Client.Audit(ctx, f)
	if err != nil {
		return err
	}
	slices.Reverse(l.Entries)
	if a.Output.JSON {
		return a.writeJSON(l)
	}
	t := newTable("TIME", "USER", "FROM", "VIA", "ACTION", "OBJECT", "CHANGE", "RESULT")
	for _, e := range l.Entries {
		t.AppendRow(toRow([]string{e.Time.Format(time.RFC3339), e.User, e.From, e.Via, e.Action, e.Object, e.Change, e.Result}))
	}
	return render(a.Out, t, "")
}
