package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"gbatch/internal/job"
)

// readSecrets reads what --secret says: NAME=VALUE, NAME@FILE for what a file
// holds, byte by byte, and NAME alone for the variable of that name. All that
// is wrong is told together, and nothing of a value.
func readSecrets(flags []string) (map[string]string, error) {
	values := map[string]string{}
	var bad []string
	for _, f := range flags {
		name, value, err := readSecret(f)
		switch _, twice := values[name]; {
		case err != nil:
			bad = append(bad, err.Error())
		case twice:
			bad = append(bad, fmt.Sprintf("secret %s is given twice", name))
		default:
			values[name] = value
		}
	}
	if len(bad) > 0 {
		return nil, usageError("%s", strings.Join(bad, "\n"))
	}
	return values, nil
}

func readSecret(flag string) (name, value string, err error) {
	name = flag
	cut := strings.IndexAny(flag, "=@")
	if cut >= 0 {
		name = flag[:cut]
	}
	if wrong := job.SecretName(name); wrong != "" {
		if cut < 0 {
			return "", "", fmt.Errorf("--secret: the name %s; write NAME, NAME=VALUE or NAME@FILE", wrong)
		}
		return "", "", fmt.Errorf("--secret: the name %s", wrong)
	}
	switch {
	case cut < 0:
		v, ok := os.LookupEnv(name)
		if !ok {
			return name, "", fmt.Errorf("secret %s: there is no variable of that name; write %s=VALUE or %s@FILE, or export it", name, name, name)
		}
		value = v
	case flag[cut] == '=':
		value = flag[cut+1:]
	default:
		if value, err = readSecretFile(flag[cut+1:]); err != nil {
			return name, "", fmt.Errorf("secret %s: %w", name, err)
		}
	}
	if wrong := job.SecretValue(value); wrong != "" {
		return name, "", fmt.Errorf("secret %s: its value %s", name, wrong)
	}
	return name, value, nil
}

func readSecretFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, job.MaxSecretsBytes+1))
	return string(b), err
}

// SetSecrets gives a job new values of secrets.
func (a *App) SetSecrets(ctx context.Context, id string, flags []string) error {
	values, err := readSecrets(flags)
	if err != nil {
		return err
	}
	resp, err := a.Client.SetSecrets(ctx, id, values)
	if err != nil {
		return err
	}
	if a.Output.JSON {
		return a.writeJSON(resp)
	}
	names := strings.Join(slices.Sorted(maps.Keys(values)), ", ")
	_, err = fmt.Fprintf(a.Out, "job %d: set %s; %s\n", resp.Number, names, clean(resp.Message))
	return err
}

// withSecrets adds values to a submission and checks that none is missing. It
// gives the document to send.
func withSecrets(doc []byte, sub *job.Submission, values map[string]string) ([]byte, error) {
	sub.SetSecrets(values)
	if err := sub.Spec.CheckSecrets(sub.Secrets); err != nil || len(values) == 0 {
		return doc, err
	}
	return sub.Document()
}

// noteSecrets says what a converted document lacks.
func (a *App) noteSecrets(sub *job.Submission) {
	if len(sub.Secrets) > 0 {
		a.say("note: the values of secrets are left out; give them with gsubmit --secret NAME")
	}
}
