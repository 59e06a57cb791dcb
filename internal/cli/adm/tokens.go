package adm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/secret"
	"gbatch/internal/cli/table"
	"gbatch/internal/client"
)

// CreateToken is gadm token create.
type CreateToken struct {
	User string        `short:"u" help:"For this user. Default: you."`
	For  time.Duration `default:"720h" help:"How long it holds, as 24h or 90d; at most 366 days."`
	Note string        `help:"What it is for."`
	Save bool          `xor:"to" help:"Write it to gbatch/token in your configuration directory, where the commands look for it, instead of printing it."`
	To   string        `xor:"to" placeholder:"FILE" type:"path" help:"Write it to FILE, which only you can read, instead of printing it."`
}

// Run makes a token for a user.
func (o *CreateToken) Run(ctx context.Context, a *cli.App) error {
	to := o.To
	if o.Save && o.User != "" {
		return exit.Usagef("--save makes the token yours, and -u %s makes it one of %s: name a file by --to", o.User, o.User)
	} else if o.Save {
		var err error
		if to, err = client.TokenFile(); err != nil {
			return fmt.Errorf("find your configuration directory: %w", err)
		}
	}
	return createToken(ctx, a, tokenOrder{api.TokenRequest{Use: api.TokenUser, User: o.User, Note: o.Note}, o.For, to})
}

// CreateNodeToken is gadm node-token create.
type CreateNodeToken struct {
	Node string        `xor:"which" help:"For the node of this name only."`
	Uses int           `xor:"which" help:"For so many nodes. Default: 1."`
	For  time.Duration `default:"1h" help:"How long it holds, as 30m; at most 30 days."`
	Note string        `help:"What it is for."`
	To   string        `placeholder:"FILE" type:"path" help:"Write it to FILE, which only you can read, instead of printing it."`
}

// Run makes a token by which machines become nodes.
func (o *CreateNodeToken) Run(ctx context.Context, a *cli.App) error {
	return createToken(ctx, a, tokenOrder{api.TokenRequest{Use: api.TokenJoin, Node: o.Node, Uses: o.Uses, Note: o.Note}, o.For, o.To})
}

// tokenOrder is a token that is to be made.
type tokenOrder struct {
	api.TokenRequest
	life time.Duration
	to   string // the file to write it to; empty: print it
}

// createToken makes a token and prints it alone on standard output, or writes it
// to a file: it is shown this once. A file that cannot be written is found before
// there is a token that nobody has.
func createToken(ctx context.Context, a *cli.App, o tokenOrder) error {
	o.LifeS = int64(o.life / time.Second)
	var file *secret.File
	if o.to != "" {
		var err error
		if file, err = secret.NewFile(o.to); err != nil {
			return fmt.Errorf("write the token: %w", err)
		}
		defer file.Discard()
	}
	var strangers []string // asked before: with a token the site knows its user
	if o.User != "" {
		strangers = a.Unknown(ctx, []string{o.User})
	}
	t, err := a.Client.CreateToken(ctx, o.TokenRequest)
	if err != nil {
		return err
	}
	a.SayUnknown(strangers)
	shown := "it is shown only now"
	if file != nil {
		if err := file.Commit(t.Secret + "\n"); err != nil {
			return fmt.Errorf("write the token: %w; take the one that was made out of force by `gadm token revoke %s`", err, t.ID)
		}
		shown, t.Secret = "it is in "+o.to, ""
	}
	if a.Output.JSON {
		return a.WriteJSON(t)
	}
	if t.Use == api.TokenJoin {
		node := cmp.Or(t.Node, "any node")
		a.Say("token %s lets %s join, %d times, until %s; %s", t.ID, node, t.Left, t.Expires.Format(time.RFC3339), shown)
	} else {
		a.Say("token %s speaks for %s until %s; %s", t.ID, t.User, t.Expires.Format(time.RFC3339), shown)
	}
	if file == nil {
		fmt.Fprintln(a.Out, t.Secret)
	}
	return nil
}

// Tokens is gadm token list.
type Tokens struct {
	All bool `short:"a" help:"Everyone's, and those to join nodes."`
}

// Run lists tokens, never their secrets.
func (o *Tokens) Run(ctx context.Context, a *cli.App) error {
	l, err := a.Client.Tokens(ctx, o.All)
	if done, err := a.Answered(l, err); done {
		return err
	}
	if len(l.Tokens) == 0 && !o.All {
		a.Say("none is yours; with -a an operator sees everyone's, and those to join nodes")
	}
	t := table.New("ID", "FOR", "STATE", "CREATED", "EXPIRES", "BY", "NOTE")
	for _, k := range l.Tokens {
		who := k.User
		if k.Use == api.TokenJoin {
			who = "join " + cmp.Or(k.Node, "any node")
		}
		t.Row(k.ID, who, tokenState(a, k), k.Created.Format(time.RFC3339), k.Expires.Format(time.RFC3339), k.By, k.Note)
	}
	return t.Fit(a.Term.Width).Write(a.Out)
}

func tokenState(a *cli.App, t api.Token) string {
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

// RevokeTokens is gadm token revoke.
type RevokeTokens struct {
	IDs []string `arg:"" name:"id" help:"Tokens, as list shows them."`
}

// Run takes tokens out of force.
func (o *RevokeTokens) Run(ctx context.Context, a *cli.App) error {
	return each(a, o.IDs, "token %s revoked\n", func(id string) error { return a.Client.RevokeToken(ctx, id) })
}

// RevokeNodes is gadm revoke-node.
type RevokeNodes struct {
	Nodes []string `arg:"" sep:"none" help:"Nodes, as gpu[01-04]."`
}

// Run takes nodes' keys away.
func (o *RevokeNodes) Run(ctx context.Context, a *cli.App) error {
	return eachNode(a, o.Nodes, "%s revoked\n", func(node string) error { return a.Client.RevokeNode(ctx, node) })
}

// JoinString is gadm join-string.
type JoinString struct{}

// Run prints the address by which other machines reach the controller.
func (JoinString) Run(ctx context.Context, a *cli.App) error {
	s, err := a.Client.Site(ctx)
	if done, err := a.Answered(s, err); done {
		return err
	}
	if s.Address == "" {
		return errors.New("this controller listens on its socket only: set `listen` in gctld.yaml and restart it")
	}
	fmt.Fprintln(a.Out, s.Address)
	return nil
}
