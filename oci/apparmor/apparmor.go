// Package apparmor says whether this kernel can confine containers by an
// AppArmor profile. It loads none: that is the machine's own business, at boot.
package apparmor

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// Where the kernel tells of it.
const (
	fileEnabled  = "/sys/module/apparmor/parameters/enabled"
	fileProfiles = "/sys/kernel/security/apparmor/profiles"
)

// Ready says whether the kernel has AppArmor switched on. The error says why a
// profile cannot be had there, and what to do.
func Ready(profile string) (has bool, err error) {
	text, err := os.ReadFile(fileEnabled)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !strings.HasPrefix(string(text), "Y") {
		return false, nil
	}
	if err != nil {
		return true, fmt.Errorf("look for AppArmor: %w", err)
	}
	list, err := os.Open(fileProfiles)
	if err != nil {
		return true, fmt.Errorf("list AppArmor's profiles: %w; mount -t securityfs securityfs /sys/kernel/security", err)
	}
	defer list.Close()
	return true, loaded(list, profile)
}

// loaded looks for a profile that is enforced.
func loaded(list io.Reader, profile string) error {
	for lines := bufio.NewScanner(list); lines.Scan(); {
		name, mode, _ := strings.Cut(lines.Text(), " (")
		if name != profile {
			continue
		}
		if mode != "enforce)" {
			return fmt.Errorf("AppArmor's profile %s is not enforced: aa-enforce it", profile)
		}
		return nil
	}
	return fmt.Errorf("AppArmor has no profile %s: load it by apparmor_parser -r FILE, as from /etc/apparmor.d", profile)
}
