// Package access says who calls and what they may: identities, the tokens and
// keys that the controller gave out, the machine's users and groups, the levels
// of routes, and whose jobs somebody may see. What the rules are, package site
// has; it decides nothing about jobs.
package access
