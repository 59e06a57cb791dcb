package adm

import (
	"context"
	"time"

	"gbatch/internal/cli"
	"gbatch/internal/cli/login"
)

// Login is gadm login.
type Login struct{}

// Run logs the user in at the site's identity provider.
func (Login) Run(ctx context.Context, a *cli.App) error {
	user, until, err := login.In(ctx, a.Client, a.Say)
	if err != nil {
		return err
	}
	a.Say("you are %s here, until %s; the commands ask the provider again before that", user, until.Format(time.RFC3339))
	return nil
}

// Logout is gadm logout.
type Logout struct{}

// Run ends what Login began.
func (Logout) Run(ctx context.Context, a *cli.App) error {
	if err := login.Out(ctx, a.Client); err != nil {
		return err
	}
	a.Say("logged out: the token is revoked")
	return nil
}
