package login

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"golang.org/x/oauth2"

	"gbatch/internal/client"
)

// In logs a user in; say tells them where, and with which code.
func In(ctx context.Context, c *client.Client, say func(format string, args ...any)) (user string, until time.Time, err error) {
	site, err := client.LoginSite(ctx, c)
	if err != nil {
		return "", until, err
	}
	cfg := config(site)
	da, err := cfg.DeviceAuth(ctx)
	if err != nil {
		return "", until, fmt.Errorf("ask %s for a code: %w", site.Issuer, err)
	}
	say("Open %s in a browser, on any machine, and enter the code %s", da.VerificationURI, da.UserCode)
	if da.VerificationURIComplete != "" {
		say("or open %s", da.VerificationURIComplete)
	}
	said, err := cfg.DeviceAccessToken(ctx, da)
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		switch refused.ErrorCode {
		case "access_denied":
			return "", until, fmt.Errorf("%s says that the login was denied", site.Issuer)
		case "expired_token":
			return "", until, fmt.Errorf("the code %s has expired; log in again", da.UserCode)
		}
	}
	if err != nil {
		return "", until, fmt.Errorf("log in at %s: %w", site.Issuer, err)
	}
	s, err := enter(ctx, c, *site, said, "")
	if err != nil {
		return "", until, err
	}
	return s.User, s.Expires, nil
}

// errNotIn says that nobody is logged in here.
var errNotIn = errors.New("you are not logged in here")

// Out takes the session's token out of force and forgets the session.
func Out(ctx context.Context, c *client.Client) error {
	s, err := read()
	if errors.Is(err, fs.ErrNotExist) {
		return errNotIn
	}
	if err != nil {
		return err
	}
	as := &client.Client{Address: s.Controller, UserAgent: c.UserAgent, Timeout: c.Timeout, Transport: c.Transport, Token: s.Token}
	defer as.Close()
	if err := as.RevokeToken(ctx, s.TokenID); err != nil && time.Now().Before(s.Expires) {
		return fmt.Errorf("the token stays in force until %s: %w", s.Expires.Format(time.RFC3339), err)
	}
	return forget(s)
}
