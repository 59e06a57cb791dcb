package queue

import (
	"strings"

	"gbatch/internal/cli/table"
	"gbatch/internal/job"
)

// dataFields tell what is brought and saved, and which secrets the program gets.
func dataFields(f *table.Fields, g *job.Gbatch) {
	if g == nil {
		return
	}
	var inputs, outputs, secrets []string
	for _, in := range g.Inputs {
		text := in.URI + " at " + in.Path
		if in.Cache {
			text += ", cached"
		}
		inputs = append(inputs, text)
	}
	for _, out := range g.Outputs {
		text := out.Path
		if out.Pattern != "" {
			text += " (" + out.Pattern + ")"
		}
		text += " to " + out.URI
		if out.When != "" {
			text += ", " + map[string]string{job.WhenFailure: "if it fails", job.WhenAlways: "always"}[out.When]
		}
		outputs = append(outputs, text)
	}
	for _, s := range g.Secrets {
		secrets = append(secrets, s.Name)
	}
	f.Add("Inputs", strings.Join(inputs, "\n"))
	f.Add("Outputs", strings.Join(outputs, "\n"))
	f.Add("Secrets", strings.Join(secrets, ", "))
}
