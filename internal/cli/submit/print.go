package submit

import (
	"encoding/json"
	"fmt"
	"slices"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/human"
	"gbatch/internal/cli/jobs"
	"gbatch/internal/job"
)

func mergeNotes(local []job.Note, server []api.Note) []api.Note {
	var out []api.Note
	for _, n := range local {
		out = append(out, api.Note(n))
	}
	seen := map[api.Note]bool{}
	return slices.DeleteFunc(append(out, server...), func(n api.Note) bool {
		twice := seen[n]
		seen[n] = true
		return twice
	})
}

func printNotes(a *cli.App, notes []api.Note) {
	for _, n := range notes {
		if n.Path != "" {
			a.Say("note: %s: %s", n.Path, n.Message)
		} else {
			a.Say("note: %s", n.Message)
		}
	}
}

// printSubmitted tells the number: in a sentence to a person, alone to a
// program. With Follow standard output belongs to the job's log.
func (o *flags) printSubmitted(a *cli.App, r *api.SubmitResponse, name string) error {
	if a.Output.JSON {
		return a.WriteJSON(r)
	}
	printNotes(a, r.Notes)
	text := fmt.Sprintf("submitted job %d (%s)", r.Number, name)
	if r.Repeated {
		text = fmt.Sprintf("job %d (%s) had been submitted with this key already", r.Number, name)
	}
	if o.Hold {
		text += fmt.Sprintf(", on hold: release it with gcancel --release %d", r.Number)
	}
	var err error
	switch {
	case o.Follow, o.Interactive:
		a.Say("%s", text)
	case a.Term.Out && !a.Output.IDs:
		err = a.Tell("%s", text)
	default:
		_, err = fmt.Fprintln(a.Out, r.Number)
	}
	return err
}

func printDryRun(a *cli.App, r *api.SubmitResponse) error {
	if a.Output.JSON {
		return a.WriteJSON(r)
	}
	printNotes(a, r.Notes)
	if r.Effective != nil {
		data, err := json.MarshalIndent(r.Effective, "", "  ")
		if err != nil {
			return fmt.Errorf("encode the effective job: %w", err)
		}
		if _, err := fmt.Fprintln(a.Out, human.CleanLines(cli.EscapeJSON(string(data)))); err != nil {
			return err
		}
	}
	a.Say("nothing was submitted (--dry-run); the job would be billed to project %s", r.Project)
	if e := r.Estimate; e != nil {
		a.Say("%s", jobs.Estimate(a.View(), e))
	}
	return nil
}

// convert prints the native document, as one of several in a line, as --ndjson reads
// them. A password cannot be in it.
func convert(a *cli.App, sub job.Submission, line bool) error {
	notes := mergeNotes(sub.Notes, nil)
	if len(sub.Secrets) > 0 {
		notes = append([]api.Note{{Message: "the values of secrets are left out; give them with gsubmit --secret NAME"}}, notes...)
	}
	if sub.Registry != nil {
		notes = append(notes, api.Note{Message: "the registry's user and password are left out; put USER:PASSWORD@ in front of the image again"})
	}
	if line && len(notes) > 0 {
		a.Say("%s:", sub.Spec.Name)
	}
	printNotes(a, notes)
	encode := func(spec job.Spec) ([]byte, error) { return json.MarshalIndent(spec, "", "  ") }
	if line {
		encode = func(spec job.Spec) ([]byte, error) { return json.Marshal(spec) }
	}
	data, err := encode(sub.Spec)
	if err != nil {
		return fmt.Errorf("encode the job: %w", err)
	}
	_, err = fmt.Fprintln(a.Out, cli.EscapeJSON(string(data)))
	return err
}
