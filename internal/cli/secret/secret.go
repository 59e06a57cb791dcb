// Package secret reads the values of secrets that people name on a command line.
// It prints none of them, nor any part of one.
package secret

import (
	"fmt"
	"io"
	"os"
	"strings"

	"gbatch/internal/cli/exit"
	"gbatch/internal/job"
)

// Read reads what --secret says: NAME=VALUE, NAME@FILE for what a file
// holds, byte by byte, and NAME alone for the variable of that name. All that
// is wrong is told together, and nothing of a value.
func Read(flags []string, env func(string) (string, bool)) (map[string]string, error) {
	values := map[string]string{}
	var bad []string
	for _, f := range flags {
		name, value, err := readSecret(f, env)
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
		return nil, exit.Usagef("%s", strings.Join(bad, "\n"))
	}
	return values, nil
}

func readSecret(flag string, env func(string) (string, bool)) (name, value string, err error) {
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
		v, ok := env(name)
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
