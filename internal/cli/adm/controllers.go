package adm

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/secret"
	"gbatch/internal/cli/table"
	"gbatch/internal/client"
)

// Controllers is gadm controllers list.
type Controllers struct{}

// Run lists the controllers.
func (*Controllers) Run(ctx context.Context, a *cli.App) error {
	l, err := client.Controllers(ctx, a.Client)
	if done, err := a.Answered(l, err); done {
		return err
	}
	if len(l.Controllers) == 1 && l.Controllers[0].Alone {
		a.Say("this controller is the only one; gadm help controllers says how to have others beside it")
		return nil
	}
	t := table.New("NAME", "ADDRESS", "STATE", "VERSION", "SETTINGS")
	for _, c := range l.Controllers {
		t.Row(c.Name, c.Address, controllerState(c), cmp.Or(c.Version, "-"), settingsState(c, l.Controllers))
	}
	return t.Fit(a.Term.Width).Write(a.Out)
}

// settingsState says how the settings of a controller are beside those of the one that leads.
func settingsState(c api.Controller, all []api.Controller) string {
	leads := slices.IndexFunc(all, func(x api.Controller) bool { return x.Leads })
	switch {
	case c.Unreadable != "":
		return "cannot be used: " + strings.ReplaceAll(c.Unreadable, "\n", "; ")
	case len(c.Differs) > 0:
		return "differ: " + strings.Join(c.Differs, ", ")
	case leads < 0 || c.Version == "":
		return "-"
	case c.Version != all[leads].Version:
		return "of another version"
	}
	return "alike"
}

func controllerState(c api.Controller) string {
	switch {
	case c.Leads:
		return "leads"
	case !c.Answers:
		return "does not answer"
	}
	state := "follows"
	if !c.Counts {
		state = "joining"
	}
	switch {
	case c.Stuck:
		return fmt.Sprintf("takes no records, %d behind", c.Behind)
	case c.Behind > 0:
		return fmt.Sprintf("%s, %d behind", state, c.Behind)
	}
	return state
}

// AddController is gadm controllers add.
type AddController struct {
	Name    string `arg:"" help:"Of the controller among them."`
	Address string `arg:"" name:"host:port" help:"By which the other controllers reach it, as c2.example.org:7078."`
	To      string `required:"" placeholder:"FILE" type:"path" help:"Write what it needs to FILE, which only you can read: gctld init --join takes it there. It holds all keys."`
}

// Run lets another controller take part.
func (o *AddController) Run(ctx context.Context, a *cli.App) error {
	file, err := secret.NewFile(o.To)
	if err != nil {
		return fmt.Errorf("write what the controller needs: %w", err)
	}
	defer file.Discard()
	f, err := client.AddController(ctx, a.Client, api.NewController{Name: o.Name, Address: o.Address})
	if err != nil {
		return err
	}
	text, err := json.Marshal(f)
	if err == nil {
		err = file.Commit(string(text))
	}
	if err != nil {
		return fmt.Errorf("write what the controller needs: %w; the same command writes it again", err)
	}
	a.Say("controller %s may join. Bring %s to its machine, and there, as root:\n\n    gctld init --join %s\n", o.Name, o.To, o.To)
	return nil
}

// RemoveControllers is gadm controllers remove.
type RemoveControllers struct {
	Names []string `arg:"" name:"name" help:"Controllers that shall take part no longer. What they keep stays on their disks."`
}

// Run removes controllers.
func (o *RemoveControllers) Run(ctx context.Context, a *cli.App) error {
	return each(a, o.Names, "controller %s removed\n", func(name string) error { return client.RemoveController(ctx, a.Client, name) })
}

// TransferLead is gadm controllers transfer.
type TransferLead struct {
	Name string `arg:"" optional:"" help:"The controller that shall lead. Default: the one that is the least behind."`
}

// Run lets another controller lead.
func (o *TransferLead) Run(ctx context.Context, a *cli.App) error {
	name := o.Name
	if name == "" {
		name = "any"
	}
	if err := client.TransferLead(ctx, a.Client, name); err != nil {
		return err
	}
	a.Say("another controller leads; gadm controllers says which")
	return nil
}
