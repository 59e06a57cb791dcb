package api

import (
	"fmt"
	"log/slog"
)

// Secrets are the values of a job's secrets on their way to the node that runs
// it. They are never logged, stored in clear, or returned to clients.
type Secrets struct {
	Version uint32            `json:"version"` // from 1; grows with each change
	Values  map[string]string `json:"values"`
}

// What is written for secrets by mistake is how many there are.

// String hides the values.
func (s Secrets) String() string { return fmt.Sprintf("%d secrets", len(s.Values)) }

// GoString hides the values.
func (s Secrets) GoString() string { return s.String() }

// LogValue hides the values.
func (s Secrets) LogValue() slog.Value { return slog.StringValue(s.String()) }

// String hides the password.
func (c Credential) String() string { return c.Username + ":****" }

// GoString hides the password.
func (c Credential) GoString() string { return c.String() }

// LogValue hides the password.
func (c Credential) LogValue() slog.Value { return slog.StringValue(c.String()) }
