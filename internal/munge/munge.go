// Package munge says who somebody is by MUNGE: a daemon of the site's, one on
// each machine, all with one key, that wraps a text together with the user who
// asked for it. It runs the programs munge and unmunge, which come with the
// daemon.
package munge

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Scheme is MUNGE's in an Authorization header.
const Scheme = "MUNGE "

// life is how long a credential is good for: as long as a request may take to
// arrive, and clocks to differ.
const life = 2 * time.Minute

// patience bounds one run of a program.
const patience = 10 * time.Second

// Payload is what a credential of a request wraps, so that it is good for that
// request alone: uri is its path with the query.
func Payload(method, uri string, body []byte) []byte {
	sum := sha256.Sum256(body)
	return []byte("gbatch 1\n" + method + "\n" + uri + "\n" + hex.EncodeToString(sum[:]))
}

// Encode wraps a payload as the caller. Socket is the daemon's; empty: the
// usual one.
func Encode(ctx context.Context, socket string, payload []byte) (string, error) {
	out, err := run(ctx, "munge", socket, payload, "-t", strconv.Itoa(int(life.Seconds())))
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(out)), nil
}

// Refused is a credential that is no proof: forged, expired, or used before.
type Refused struct{ Why string }

func (r *Refused) Error() string { return "munge: " + r.Why }

// Decode unwraps a credential: who asked for it, and what for. The daemon
// takes each only once. The error is *Refused, or says that MUNGE does not work.
func Decode(ctx context.Context, socket, credential string) (uid uint32, payload []byte, err error) {
	out, err := run(ctx, "unmunge", socket, []byte(credential), "-N", "-k", "STATUS,UID")
	if err != nil {
		return 0, nil, err
	}
	return answer(out)
}

// answer reads what unmunge prints: the credential's fields, an empty line and
// the payload, which is the caller's and may have anything in it.
func answer(out []byte) (uid uint32, payload []byte, err error) {
	head, payload, ok := bytes.Cut(out, []byte("\n\n"))
	status, id := "", ""
	for line := range strings.Lines(string(head)) {
		switch key, value, _ := strings.Cut(line, ":"); key {
		case "STATUS":
			status = strings.TrimSpace(value)
		case "UID":
			id = strings.TrimSpace(value)
		}
	}
	n, err := strconv.ParseUint(id, 10, 32)
	if !ok || status != "0" || err != nil || n == math.MaxUint32 {
		return 0, nil, fmt.Errorf("munge: unmunge said %q", head)
	}
	return uint32(n), payload, nil
}

// refusals are the exit codes of unmunge that are the credential's fault.
var refusals = map[int]string{
	8:  "it is no credential",
	9:  "it is of another version",
	10: "it wants a cipher that is not known here",
	11: "it wants a digest that is not known here",
	12: "it wants a compression that is not known here",
	13: "it wants a realm that is not known here",
	14: "it is forged, or of a site with another key",
	15: "it has expired: see that the clocks agree",
	16: "it is of the future: see that the clocks agree",
	17: "it was used before",
	18: "it is meant for somebody else",
}

func run(ctx context.Context, program, socket string, input []byte, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if socket != "" {
		args = append(args, "-S", socket)
	}
	cmd := exec.CommandContext(ctx, program, args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &out, &errs
	err := cmd.Run()
	if err == nil {
		return out.Bytes(), nil
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && program == "unmunge" && refusals[exit.ExitCode()] != "" {
		return nil, &Refused{refusals[exit.ExitCode()]}
	}
	if errors.Is(err, exec.ErrNotFound) {
		return nil, fmt.Errorf("the program %s is missing: install the package munge", program)
	}
	if text := strings.TrimSpace(errs.String()); text != "" {
		return nil, errors.New(text)
	}
	return nil, fmt.Errorf("run %s: %w", program, err)
}
