package follow

import (
	"gbatch/internal/cli"
	"gbatch/internal/cli/human"
	"gbatch/internal/client"
)

// Copied says that a log is not the node's own but what is kept of it elsewhere,
// and how far that goes, once for each time that the source changes.
type Copied struct{ said bool }

// Say says it.
func (c *Copied) Say(a *cli.App, log *client.Log) {
	is := !log.Copied.IsZero()
	if is && !c.said {
		if log.Complete {
			a.Say("this is the controller's copy of the log, and all of it: the node cannot be asked, or has it no more")
		} else {
			a.Say("this is the controller's copy of the log, as of %s: the node cannot be asked, or has it no more", log.Copied.Local().Format(human.ISO))
		}
	}
	c.said = is
}
