// Package secret reads the values of secrets that people name on a command line,
// where no value may stand, and writes secrets into files that nobody else can
// read. It prints none of them, nor any part of one.
package secret

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"gbatch/internal/cli/exit"
	"gbatch/internal/job"
)

// Source is where the values of secrets may come from.
type Source struct {
	Env func(string) (string, bool)           // the environment
	In  io.Reader                             // standard input; nil: it is needed for something else
	Ask func(question string) (string, error) // asks a person, without showing the answer; nil: there is none
}

// Read reads what --secret says: NAME alone for the variable of that name, or for
// what a person at the terminal answers, NAME@FILE for what a file holds, byte by
// byte, and NAME@- for what standard input does. A value is never taken from the
// command line: everybody on the machine can read it there. All that is wrong is
// told together, and nothing of a value.
func Read(flags []string, from Source) (map[string]string, error) {
	values := map[string]string{}
	var bad []string
	for _, f := range flags {
		name, value, err := from.read(f)
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

func (from *Source) read(flag string) (name, value string, err error) {
	name = flag
	cut := strings.IndexAny(flag, "=@")
	if cut >= 0 {
		name = flag[:cut]
	}
	if wrong := job.SecretName(name); wrong != "" {
		if cut < 0 {
			return "", "", fmt.Errorf("--secret: the name %s; write NAME or NAME@FILE", wrong)
		}
		return "", "", fmt.Errorf("--secret: the name %s", wrong)
	}
	switch {
	case cut < 0:
		value, err = from.named(name)
	case flag[cut] == '=':
		return name, "", fmt.Errorf("secret %s: everybody on this machine can read a value on the command line; write %s alone, which takes it from the environment or asks, %s@FILE, or %s@- for standard input",
			name, name, name, name)
	case flag[cut+1:] == "-":
		value, err = from.input()
	default:
		value, err = readSecretFile(flag[cut+1:])
	}
	if err != nil {
		return name, "", fmt.Errorf("secret %s: %w", name, err)
	}
	if wrong := job.SecretValue(value); wrong != "" {
		return name, "", fmt.Errorf("secret %s: its value %s", name, wrong)
	}
	return name, value, nil
}

// named is the variable of a name, or what a person says.
func (from *Source) named(name string) (string, error) {
	if v, ok := from.Env(name); ok {
		return v, nil
	}
	if from.Ask == nil {
		return "", fmt.Errorf("there is no variable of that name; export it, or write %s@FILE, or %s@- for standard input", name, name)
	}
	return from.Ask("value of " + name + ": ")
}

// input is standard input, which can be read once.
func (from *Source) input() (string, error) {
	if from.In == nil {
		return "", errors.New("standard input is needed for something else already")
	}
	b, err := io.ReadAll(io.LimitReader(from.In, job.MaxSecretsBytes+1))
	from.In = nil
	return string(b), err
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
