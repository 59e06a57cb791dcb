package adm

import (
	"context"
	"fmt"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/cli"
)

// Web is gadm web.
type Web struct{}

// webLink is what it prints as JSON.
type webLink struct {
	URL     string    `json:"url"`
	Expires time.Time `json:"expires"`
}

// Run prints a link that opens the web page, once. What makes it good for one login
// is behind the #, which browsers send to nobody.
func (o *Web) Run(ctx context.Context, a *cli.App) error {
	site, err := a.Client.Site(ctx)
	if err != nil {
		return err
	}
	if site.Page == "" {
		return fmt.Errorf("the controller listens on its socket alone, which no browser reaches: set `listen` in gctld.yaml")
	}
	t, err := a.Client.CreateToken(ctx, api.TokenRequest{Use: api.TokenLogin})
	if err != nil {
		return err
	}
	url := site.Page + "#login=" + t.Secret
	if a.Output.JSON {
		return a.WriteJSON(webLink{url, t.Expires})
	}
	a.Say("this link logs %s in, once, until %s", t.User, t.Expires.Format(time.RFC3339))
	fmt.Fprintln(a.Out, url)
	return nil
}
