package adm

import (
	"context"
	"fmt"
	"strings"
	"time"

	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/client"
)

// lookAgain is how often nodes that are being drained are looked at.
const lookAgain = 2 * time.Second

// awaitEmpty waits until no job is on the nodes, and says on which there are
// whenever that changes. 0 is any time. Jobs that come meanwhile by name of a node
// cannot be: the nodes are drained.
func awaitEmpty(ctx context.Context, a *cli.App, nodes []string, most time.Duration) error {
	if most > 0 {
		timed, cancel := context.WithTimeoutCause(ctx, most, errLate)
		defer cancel()
		ctx = timed
	}
	for said := ""; ; {
		busy, err := busyNodes(ctx, a, nodes)
		if err == nil && busy == "" {
			return nil
		}
		if err == nil && busy != said {
			a.Say("waiting for %s", busy)
			said = busy
		}
		if err == nil {
			err = client.Sleep(ctx, lookAgain)
		}
		if context.Cause(ctx) == errLate {
			return fmt.Errorf("%w: after %v there are still %s; they are drained, and what runs there goes on", errLate, most, said)
		}
		if err != nil {
			return err
		}
	}
}

var errLate = &exit.Error{Code: exit.Failure, Err: fmt.Errorf("the deadline is over")}

func busyNodes(ctx context.Context, a *cli.App, nodes []string) (string, error) {
	var busy []string
	for _, name := range nodes {
		n, err := a.Client.Node(ctx, name)
		if err != nil {
			return "", err
		}
		if n.Jobs > 0 {
			busy = append(busy, fmt.Sprintf("%d jobs on %s", n.Jobs, name))
		}
	}
	return strings.Join(busy, ", "), nil
}
