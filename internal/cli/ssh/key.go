package ssh

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/crypto/ssh"
)

// keyFile is the key by which ssh knows jobs, in the user's directory. It is worth
// nothing to others: who could use it already stands between ssh and gexec.
const keyFile = "ssh_host_key"

// Key reads the user's key, or makes it.
func Key(dir string) (ssh.Signer, error) {
	file := filepath.Join(dir, keyFile)
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		if err = makeKey(dir, file); err == nil {
			text, err = os.ReadFile(file)
		}
	}
	if err != nil {
		return nil, err
	}
	key, err := ssh.ParsePrivateKey(text)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w; remove it, and run gexec --ssh-config again", file, err)
	}
	return key, nil
}

// makeKey writes a new key, unless another process was quicker.
func makeKey(dir, file string) error {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	block, err := ssh.MarshalPrivateKey(key, "gbatch")
	if err != nil {
		return err
	}
	tmp, err := write(dir, pem.EncodeToMemory(block))
	if err != nil {
		return err
	}
	defer os.Remove(tmp)
	if err := os.Link(tmp, file); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// write makes a file of its own name in dir, which only the user reads.
func write(dir string, text []byte) (name string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

// replace gives a file new content at once, or leaves it as it was.
func replace(file string, text []byte, mode fs.FileMode) error {
	tmp, err := write(filepath.Dir(file), text)
	if err != nil {
		return err
	}
	if err := errors.Join(os.Chmod(tmp, mode), os.Rename(tmp, file)); err != nil {
		os.Remove(tmp)
		return err
	}
	return nil
}
