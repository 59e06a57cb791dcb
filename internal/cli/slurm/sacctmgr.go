package slurm

import (
	"context"
	"slices"
	"strings"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/slurm/getopt"
	"gbatch/internal/cli/slurm/records"
	"gbatch/internal/cli/table"
)

// thing is a row of sacctmgr's lists: its fields by name.
type thing map[string]string

type entity struct {
	names   []string // the first is whole; its beginning is enough
	fields  []records.Field[thing]
	format  string // what is shown without format=
	withAll string // and with withassoc
}

func thingField(name, title string, width int) records.Field[thing] {
	return records.Field[thing]{Name: name, Title: title, Width: width, Cell: func(_ *table.View, x *thing) string { return (*x)[name] }}
}

// assocFields are those of an association: of a user and an account.
var assocFields = []records.Field[thing]{
	thingField("Cluster", "", 10), thingField("Account", "", 10), thingField("User", "", 10), thingField("Partition", "", 10), thingField("Share", "", 9), thingField("Fairshare", "Share", 9),
	thingField("Priority", "", 10), thingField("GrpJobs", "", 7), thingField("GrpTRES", "", 13), thingField("GrpSubmit", "", 9), thingField("GrpWall", "", 11), thingField("GrpTRESMins", "", 13),
	thingField("MaxJobs", "", 7), thingField("MaxTRES", "", 13), thingField("MaxTRESPerNode", "", 14), thingField("MaxSubmit", "", 9), thingField("MaxWall", "", 11), thingField("MaxTRESMins", "", 13),
	thingField("QOS", "", 20), thingField("DefaultQOS", "Def QOS", 9), thingField("GrpTRESRunMins", "", 13), thingField("ParentName", "Par Name", 10), thingField("DefaultAccount", "Def Acct", 10), thingField("AdminLevel", "Admin", 9),
	thingField("Name", "", 10), thingField("Description", "Descr", 20), thingField("Organization", "Org", 20),
}

const assocFormat = "Cluster,Account,User,Partition,Share,Priority,GrpJobs,GrpTRES,GrpSubmit,GrpWall,GrpTRESMins,MaxJobs,MaxTRES,MaxTRESPerNode,MaxSubmit,MaxWall,MaxTRESMins,QOS,DefaultQOS,GrpTRESRunMins"

var entities = []entity{
	{names: []string{"associations", "assoc"}, fields: assocFields, format: assocFormat},
	{names: []string{"users"}, fields: assocFields, format: "User,DefaultAccount,AdminLevel", withAll: "User,DefaultAccount,AdminLevel,Cluster,Account,Partition,Share,Priority,MaxJobs,MaxSubmit,MaxWall,QOS,DefaultQOS"},
	{names: []string{"accounts"}, fields: assocFields, format: "Account,Description,Organization", withAll: "Account,Description,Organization,Cluster,ParentName,User,Share,Priority,GrpJobs,GrpTRES,MaxJobs,MaxTRES,MaxSubmit,MaxWall,QOS,DefaultQOS"},
	{names: []string{"qos"}, format: "Name,Priority,GraceTime,Preempt,PreemptMode,UsageFactor,MaxWall", fields: []records.Field[thing]{
		thingField("Name", "", 10), thingField("Priority", "", 10), thingField("GraceTime", "", 10), thingField("Preempt", "", 10), thingField("PreemptMode", "", 11), thingField("Flags", "", 40),
		thingField("UsageFactor", "", 11), thingField("MaxWall", "", 11), thingField("MaxTRESPU", "", 13), thingField("MaxJobsPU", "", 9), thingField("MaxSubmitPU", "", 11), thingField("GrpTRES", "", 13),
		thingField("MaxTRES", "", 13), thingField("GrpJobs", "", 7), thingField("ID", "", 6), thingField("Description", "Descr", 10)}},
	{names: []string{"clusters"}, format: "Cluster,ControlHost,ControlPort,RPC,Share,QOS,DefaultQOS", fields: []records.Field[thing]{
		thingField("Cluster", "", 10), thingField("Name", "", 10), thingField("ControlHost", "", 15), thingField("ControlPort", "", 12), thingField("RPC", "", 5), thingField("Share", "", 9), thingField("QOS", "", 20),
		thingField("DefaultQOS", "Def QOS", 9), thingField("TRES", "", 20), thingField("NodeCount", "", 9)}},
	{names: []string{"tres"}, format: "Type,Name,ID", fields: []records.Field[thing]{thingField("Type", "", 8), thingField("Name", "", 15), thingField("ID", "", 6)}},
}

// sacctmgr shows users, accounts and what they may. They are changed by gadm and
// in gctld.yaml.
func sacctmgr(ctx context.Context, a *cli.App, args []string) error {
	k := records.List[thing]{Bar: "|"}
	with := false
	options := slices.DeleteFunc(k.Options(), func(o getopt.Option) bool { return o.Is("-o") }) // which is another one here
	rest, err := getopt.Parse(args, append(options, getopt.Bool(&with, "-s", "--associations"), getopt.Ignored("-i", "--immediate", "-Q", "--quiet", "-r", "--readonly", "-v", "--verbose", "-o", "--oneliner"), getopt.String(&k.Format, "--format"),
		getopt.Instead("use gacct shares --json", "--json", "--yaml")))
	switch {
	case err != nil:
		return err
	case len(rest) < 2 || !slices.Contains([]string{"show", "list"}, strings.ToLower(rest[0])):
		return exit.Usagef("sacctmgr plays show and list of user, account, association, qos, cluster and tres; projects are changed by gadm project and in gctld.yaml")
	}
	what := strings.ToLower(rest[1])
	i := slices.IndexFunc(entities, func(e entity) bool {
		return slices.ContainsFunc(e.names, func(name string) bool { return len(what) > 2 && strings.HasPrefix(name, what) })
	})
	if i < 0 {
		return exit.Usagef("sacctmgr show %s is not played here: there are user, account, association, qos, cluster and tres", what)
	}
	e := entities[i]
	only, err := conditions(rest[2:], e.names[0], &k, &with)
	if err != nil {
		return err
	}
	k.All = e.fields
	if k.Format == "" {
		k.Format = pick(with && e.withAll != "", e.withAll, e.format)
	}
	if _, err := k.Chosen(); err != nil {
		return err
	}
	list, err := things(ctx, a, e.names[0], with)
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(x thing) bool {
		for key, values := range only {
			if !slices.Contains(values, x[key]) {
				return true
			}
		}
		return false
	})
	return k.Write(a.Out, &table.View{Now: a.Now()}, list)
}

// conditions reads what stands behind an entity: conditions KEY=VALUE, names,
// format=, and words such as where.
func conditions(args []string, entity string, k *records.List[thing], with *bool) (only map[string][]string, err error) {
	only = map[string][]string{}
	own := map[string]string{"users": "User", "accounts": "Account", "qos": "Name", "clusters": "Cluster", "associations": "User", "tres": "Type"}[entity]
	keys := map[string]string{"user": "User", "users": "User", "account": "Account", "accounts": "Account", "acct": "Account", "cluster": "Cluster", "clusters": "Cluster", "name": own, "names": own, "type": "Type", "parent": "ParentName"}
	for _, arg := range args {
		key, value, is := strings.Cut(arg, "=")
		switch low := strings.ToLower(key); {
		case is && (low == "format" || low == "fields"):
			k.Format = value
		case is && keys[low] != "":
			only[keys[low]] = strings.Split(value, ",")
		case is:
			return nil, exit.Usagef("Unknown condition: %s; there are user=, account=, cluster=, name= and format=", arg)
		case low == "where" || low == "withsubaccounts" || low == "withdeleted" || low == "wopinfo" || low == "wolimits" || low == "tree":
		case strings.HasPrefix("withassoc", low) && len(low) > 4, low == "withassocs":
			*with = true
		default:
			only[own] = append(only[own], strings.Split(arg, ",")...)
		}
	}
	return only, nil
}

// things are all rows of a list.
func things(ctx context.Context, a *cli.App, entity string, with bool) ([]thing, error) {
	switch entity {
	case "tres":
		return []thing{{"Type": "cpu", "ID": "1"}, {"Type": "mem", "ID": "2"}, {"Type": "node", "ID": "4"}, {"Type": "gres", "Name": "gpu", "ID": "1001"}}, nil
	case "qos", "clusters":
		return siteThings(ctx, a, entity)
	}
	list, err := associations(ctx, a)
	if err != nil {
		return nil, err
	}
	var out []thing
	seen := map[string]bool{}
	for _, x := range list {
		switch key := pick(entity == "users", x["User"], x["Account"]); {
		case entity == "users" && x["User"] == "", entity == "accounts" && x["User"] != "" && !with:
		case entity != "associations" && !with && seen[key]:
		default:
			seen[key] = true
			out = append(out, x)
		}
	}
	return out, nil
}

// siteThings are the classes of service, or the cluster.
func siteThings(ctx context.Context, a *cli.App, entity string) ([]thing, error) {
	site, err := a.Client.Site(ctx)
	if err != nil {
		return nil, err
	}
	names, limit := classes(site), limitText(site.MaxDurationS, "")
	if entity == "clusters" {
		return []thing{{"Cluster": clusterName, "Name": clusterName, "ControlHost": strings.TrimPrefix(a.Client.Address, "unix://"), "ControlPort": "0", "RPC": "9728", "Share": "1", "QOS": strings.Join(names, ","), "DefaultQOS": site.DefaultQOS}}, nil
	}
	grace := limitText(site.GraceS, "00:00:00")
	out := []thing{}
	for _, name := range names {
		x := thing{"Name": name, "Description": name, "Priority": "0", "GraceTime": grace, "PreemptMode": "cluster", "UsageFactor": "1.000000", "MaxWall": limit}
		for _, q := range site.QOS {
			if q.Name == name {
				x["Priority"], x["Preempt"] = itoa(q.Priority), strings.Join(q.Preempts, ",")
			}
		}
		out = append(out, x)
	}
	return out, nil
}

// classes are the names of all classes of service; jobs that name none are of
// "normal".
func classes(site *api.Site) []string {
	names := []string{"normal"}
	for _, q := range site.QOS {
		if q.Name != "normal" {
			names = append(names, q.Name)
		}
	}
	return names
}

// associations are the users of projects, and the projects; the caller's own too
// if they have used nothing yet.
func associations(ctx context.Context, a *cli.App) ([]thing, error) {
	shares, err := a.Client.Shares(ctx)
	if err != nil {
		return nil, err
	}
	status, err := a.Client.Status(ctx)
	if err != nil {
		return nil, err
	}
	site, err := a.Client.Site(ctx)
	if err != nil {
		return nil, err
	}
	qos := strings.Join(classes(site), ",")
	first := map[string]string{} // the account that stands first for a user
	add := func(list []thing, s api.Share) []thing {
		if s.User != "" && first[s.User] == "" {
			first[s.User] = s.Project
		}
		admin := "None"
		if s.User == status.You && status.Role != "user" {
			admin = map[string]string{"admin": "Administrator", "operator": "Operator"}[status.Role]
		}
		return append(list, thing{"Cluster": clusterName, "Account": s.Project, "Name": s.Project, "User": s.User, "Share": itoa(s.Shares), "Fairshare": itoa(s.Shares), "QOS": qos, "DefaultQOS": site.DefaultQOS,
			"ParentName": pick(s.User == "" && s.Parent == "", rootAccount, s.Parent), "Description": s.Project, "Organization": pick(s.Parent == "", s.Project, s.Parent), "AdminLevel": admin, "MaxWall": limitText(site.MaxDurationS, "")})
	}
	var list []thing
	own := map[string]bool{}
	for _, s := range shares.Shares {
		own[s.Project] = own[s.Project] || s.User == status.You
		list = add(list, s)
	}
	for _, project := range status.Projects {
		if !own[project] {
			list = add(list, api.Share{Project: project, User: status.You, Shares: 1})
		}
	}
	for _, x := range list {
		x["DefaultAccount"] = first[x["User"]]
	}
	return list, nil
}
