package slurm

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gbatch/internal/api"
)

// showLicenses prints what the site counts as Slurm does, all or those that are named.
func (c *control) showLicenses(ctx context.Context, names []string) error {
	info, err := c.app.Client.Cluster(ctx)
	if err != nil {
		return err
	}
	list := info.Licenses
	if len(names) > 0 {
		list = slices.DeleteFunc(list, func(x api.License) bool { return !slices.Contains(names, x.Name) })
	}
	if len(list) == 0 {
		text := "No licenses configured in Slurm."
		if len(names) > 0 {
			text = fmt.Sprintf("License %s not found", strings.Join(names, ","))
		}
		fmt.Fprintln(c.app.Out, text)
		return nil
	}
	between := "\n    "
	if c.oneLine {
		between = " "
	}
	for _, x := range list {
		fmt.Fprintf(c.app.Out, "LicenseName=%s%sTotal=%d Used=%d Free=%d Reserved=0 Remote=no\n", x.Name, between, x.Total, x.Used, max(x.Total-x.Used, 0))
	}
	return nil
}
