// Command gadm is for those who run a site: nodes, GPUs and reservations, and
// who may do what.
package main

import (
	"gbatch/internal/cli"
	"gbatch/internal/cli/adm"
	_ "gbatch/internal/cli/alone"
)

type command struct {
	cli.Help
	cli.Connection
	cli.JSONFlag

	Drain        adm.Drain        `cmd:"" help:"Take nodes, or one GPU, out of scheduling. What runs there goes on."`
	Resume       adm.Resume       `cmd:"" help:"Put nodes, or one GPU, back."`
	Forget       adm.Forget       `cmd:"" help:"Drop nodes that are gone for good."`
	Reserve      adm.Reserve      `cmd:"" help:"Keep nodes, or some of their GPUs, for some jobs or for nobody, during a span of time."`
	Unreserve    adm.Unreserve    `cmd:"" help:"Remove reservations."`
	Reservations adm.Reservations `cmd:"" help:"List reservations."`

	Project     projectCmd      `cmd:"" help:"Projects: who is billed, and who may use what."`
	Policy      policyCmd       `cmd:"" help:"The rules in force."`
	Import      importCmd       `cmd:"" help:"Turn another system's configuration into gbatch's."`
	Audit       adm.Audit       `cmd:"" help:"Who changed what."`
	Login       adm.Login       `cmd:"" help:"Log in at the site's identity provider: a token for you, on this machine."`
	Logout      adm.Logout      `cmd:"" help:"Take the token of gadm login out of force, and forget it."`
	Token       tokenCmd        `cmd:"" help:"Tokens, by which users speak from other machines."`
	NodeToken   nodeTokenCmd    `cmd:"" help:"Tokens, by which machines become nodes."`
	RevokeNode  adm.RevokeNodes `cmd:"" help:"Take nodes' keys away: they are heard no more, and lost in time."`
	Topics      adm.Topics      `cmd:"" name:"help" help:"Show a document: how a site is run, every key of a file, every metric. No topic: the list."`
	Diag        adm.Diag        `cmd:"" help:"How the controller fares: its loop, commits, scheduling rounds, and requests."`
	Controllers controllersCmd  `cmd:"" help:"Several controllers that have all records in common: who they are, who joins and leaves, who leads."`
	Completion  adm.Completion  `cmd:"" help:"Print what makes a shell complete the words of all commands."`
	Web         adm.Web         `cmd:"" help:"Print a link that opens the web page for you, once."`
	JoinString  adm.JoinString  `cmd:"" help:"Print the address by which other machines reach the controller."`
}

type projectCmd struct {
	List   adm.Projects       `cmd:"" help:"List projects."`
	Add    adm.AddProject     `cmd:"" help:"Make a project."`
	Set    adm.SetProject     `cmd:"" help:"Change a project."`
	Remove adm.RemoveProjects `cmd:"" help:"Remove projects that have no jobs."`
}

type policyCmd struct {
	Show   adm.ShowPolicy   `cmd:"" help:"Print the rules in force."`
	Check  adm.CheckPolicy  `cmd:"" help:"Check the controller's configuration file, and say what a reload would change."`
	Reload adm.ReloadPolicy `cmd:"" help:"Take the rules as the file has them now, all or none."`
	WhatIf adm.WhatIf       `cmd:"" help:"Say who would wait for how long by other rules or with more nodes."`
}

type controllersCmd struct {
	List     adm.Controllers       `cmd:"" default:"withargs" help:"List controllers, and how they fare (the default). The other commands: gadm controllers add, remove and transfer; see their --help."`
	Add      adm.AddController     `cmd:"" help:"Let another controller take part, as root on the machine of the one that leads."`
	Remove   adm.RemoveControllers `cmd:"" help:"Let controllers take part no longer."`
	Transfer adm.TransferLead      `cmd:"" help:"Let another controller lead."`
}

type importCmd struct {
	Slurm adm.ImportSlurm `cmd:"" help:"Print what a Slurm site's files are here: projects, shares, classes of service, limits, clusters and nodes, and a note for each line that has no meaning here."`
}

type tokenCmd struct {
	Create adm.CreateToken  `cmd:"" help:"Make a token for a user and print it, this once."`
	List   adm.Tokens       `cmd:"" help:"List tokens."`
	Revoke adm.RevokeTokens `cmd:"" help:"Take tokens out of force, at once."`
}

type nodeTokenCmd struct {
	Create adm.CreateNodeToken `cmd:"" help:"Make a token by which machines become nodes, and print it, this once."`
}

func main() {
	cli.Main(cli.Program{
		Name:  "gadm",
		About: "For those who run a site: nodes and GPUs, reservations, projects, tokens, and who changed what.",
		Examples: []string{
			"gadm drain gpu[01-02] -r \"new driver\"               # no new jobs there",
			"gadm drain gpu03 --gpu 5 -r \"ECC errors\"            # one bad GPU of eight",
			"gadm project add vision --gid 2001 -g vision-lab     # members are a unix group's",
			"gadm node-token create --uses 8 --to join.token     # for eight new nodes",
			"gadm reserve fix --nodes gpu04 --from +2h --for 4h --maintenance",
			"gadm reserve demo --nodes gpu05 --gpus 2 --for 3h -u ann   # two GPUs of eight",
		},
	}, &command{})
}
