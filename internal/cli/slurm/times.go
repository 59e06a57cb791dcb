package slurm

import (
	"strings"
	"time"

	"gbatch/internal/cli"
	"gbatch/internal/cli/human"
	"gbatch/internal/cli/slurm/strftime"
	"gbatch/internal/cli/table"
)

// viewOf is how rows are written now: with times as the variable SLURM_TIME_FORMAT
// says. One that means nothing is told, and times are as without it.
func viewOf(a *cli.App) table.View {
	v := table.View{Now: a.Now(), Times: func(t time.Time) string { return t.Local().Format(human.ISO) }}
	switch form, _ := a.Env("SLURM_TIME_FORMAT"); {
	case form == "" || form == "standard":
	case form == "relative":
		v.Times = func(t time.Time) string { return strftime.Relative(t.Local(), v.Now.Local()) }
	case strings.Contains(form, "%"):
		v.Times = func(t time.Time) string { return strftime.Format(form, t.Local()) }
	default:
		a.Say("error: invalid SLURM_TIME_FORMAT = '%s': use standard, relative, or a form with %%, as %%d.%%m. %%H:%%M", human.Clean(form))
	}
	return v
}
