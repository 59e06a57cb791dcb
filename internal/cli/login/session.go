// Package login logs users in at the site's identity provider, by OAuth's device flow,
// and keeps them logged in: it has the token of the controller made anew before it
// expires. It owns the file of the session; the token is in the file where all
// commands look for it.
package login

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/sys/unix"

	"gbatch/internal/api"
	"gbatch/internal/cli/secret"
	"gbatch/internal/client"
)

// session is what is kept of a login, readable for its user only.
type session struct {
	Controller string        `json:"controller"` // its address: the token is for no other
	Site       api.LoginSite `json:"site"`
	User       string        `json:"user"`
	TokenID    string        `json:"tokenId"`
	Token      string        `json:"token"`
	Created    time.Time     `json:"created"`
	Expires    time.Time     `json:"expires"`
	Refresh    string        `json:"refresh,omitempty"` // empty: the provider gave none, and the user logs in again
}

// file is where the session is kept, beside the token.
func file() (string, error) {
	token, err := client.TokenFile()
	return filepath.Join(filepath.Dir(token), "login"), err
}

func read() (*session, error) {
	path, err := file()
	if err != nil {
		return nil, err
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s := &session{}
	if err := json.Unmarshal(b, s); err != nil {
		return nil, fmt.Errorf("read %s: %w; log in again: gadm login", path, err)
	}
	return s, nil
}

// save writes the session, then the token: a session whose token is not in force yet
// is not found by it.
func (s *session) save() error {
	path, err := file()
	if err != nil {
		return err
	}
	token, err := client.TokenFile()
	if err != nil {
		return err
	}
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	for _, w := range []struct{ path, text string }{{path, string(b)}, {token, s.Token + "\n"}} {
		f, err := secret.NewFile(w.path)
		if err != nil {
			return err
		}
		if err := f.Commit(w.text); err != nil {
			f.Discard()
			return err
		}
	}
	return nil
}

func config(s *api.LoginSite) *oauth2.Config {
	return &oauth2.Config{ClientID: s.ClientID, Scopes: s.Scopes,
		Endpoint: oauth2.Endpoint{DeviceAuthURL: s.DeviceEndpoint, TokenURL: s.TokenEndpoint, AuthStyle: oauth2.AuthStyleInParams}}
}

// enter makes a token of what the provider said.
func enter(ctx context.Context, c *client.Client, site api.LoginSite, said *oauth2.Token, before string) (*session, error) {
	id, ok := said.Extra("id_token").(string)
	if !ok {
		return nil, fmt.Errorf("%s did not say who you are: it sent no ID token", site.Issuer)
	}
	t, err := client.Login(ctx, c, api.LoginRequest{IDToken: id})
	if err != nil {
		return nil, err
	}
	s := &session{Controller: c.Address, Site: site, User: t.User, TokenID: t.ID, Token: t.Secret, Created: t.Created, Expires: t.Expires, Refresh: said.RefreshToken}
	if s.Refresh == "" {
		s.Refresh = before
	}
	return s, s.save()
}

// Refresh has c speak by a new token if its own is of a login and runs out soon. While
// the provider cannot be asked it goes on with the one that it has, as long as that
// holds.
func Refresh(ctx context.Context, c *client.Client, now time.Time) error {
	s, err := read()
	if err != nil || c.Token == "" || s.Token != c.Token || s.Controller != c.Address || s.Refresh == "" || !s.due(now) {
		return nil // what is wrong with the token the controller will say
	}
	unlock, err := lock()
	if err != nil {
		return err
	}
	defer unlock()
	if s, err = read(); err != nil {
		return nil
	}
	if !s.due(now) { // another command was first
		c.Token = s.Token
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	said, err := config(&s.Site).TokenSource(ctx, &oauth2.Token{RefreshToken: s.Refresh}).Token()
	if err == nil {
		asking := &client.Client{Address: c.Address, UserAgent: c.UserAgent, Timeout: c.Timeout, Transport: c.Transport}
		defer asking.Close()
		var next *session
		if next, err = enter(ctx, asking, s.Site, said, s.Refresh); err == nil {
			c.Token = next.Token
			return nil
		}
	}
	if now.Before(s.Expires) {
		return nil
	}
	return fmt.Errorf("your login has run out, and could not be renewed: %w; log in again: gadm login", err)
}

// askTime is how long the provider may take to answer.
const askTime = 15 * time.Second

// due says that a third of a token's life is left.
func (s *session) due(now time.Time) bool {
	return now.After(s.Expires.Add(-s.Expires.Sub(s.Created) / 3))
}

// lock keeps two commands from using one refresh token, which holds once.
func lock() (unlock func(), err error) {
	path, err := file()
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}

// forget removes what is kept of a login.
func forget(s *session) error {
	path, err := file()
	if err != nil {
		return err
	}
	token, err := client.TokenFile()
	if err != nil {
		return err
	}
	remove := []string{path, path + ".lock"}
	if b, err := os.ReadFile(token); err == nil && string(b) == s.Token+"\n" {
		remove = append(remove, token)
	}
	for _, p := range remove {
		if err := os.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
