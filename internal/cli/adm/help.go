package adm

import (
	"fmt"
	"slices"

	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/manual"
)

// Topics is gadm help.
type Topics struct {
	Topic string `arg:"" optional:"" help:"A topic of the list, as metrics or gctld.yaml. None: the list."`
	Roff  bool   `help:"Print it as a man page: gadm help TOPIC --roff | man -l -."`
}

// Run prints a document, or which there are.
func (o *Topics) Run(a *cli.App) error {
	if o.Topic == "" {
		if o.Roff {
			return exit.Usagef("--roff wants a topic; `gadm help` lists them")
		}
		for _, t := range manual.Topics() {
			fmt.Fprintf(a.Out, "%-16s %s\n", t.Name, t.About)
		}
		return nil
	}
	if slices.Contains(cli.Suite, o.Topic) {
		return exit.Usagef("%s tells of itself: %s --help; gadm help commands has all commands", o.Topic, o.Topic)
	}
	t, err := manual.Find(o.Topic)
	if err != nil {
		return exit.Usagef("%w", err)
	}
	if o.Roff {
		return t.WriteMan(a.Out, cli.Version)
	}
	width := 80
	if a.Term.Out && a.Term.Width > 0 {
		width = max(40, min(a.Term.Width, 100))
	}
	return t.WriteText(a.Out, manual.Style{Width: width, Color: a.Term.Color})
}
