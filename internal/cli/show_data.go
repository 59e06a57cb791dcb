package cli

import (
	"strings"

	"gbatch/internal/job"
)

// dataFields tell what is brought and saved, and which secrets the program gets.
func dataFields(f *fields, g *job.Gbatch) {
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
	f.add("Inputs", strings.Join(inputs, "\n"))
	f.add("Outputs", strings.Join(outputs, "\n"))
	f.add("Secrets", strings.Join(secrets, ", "))
}
