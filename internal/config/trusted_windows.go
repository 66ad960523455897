package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/windows"
)

// canChange are the rights that let their holder change a file or what a
// folder holds (winnt.h: FILE_WRITE_DATA, FILE_APPEND_DATA, FILE_DELETE_CHILD).
const canChange = 0x2 | 0x4 | 0x40 | windows.DELETE | windows.WRITE_DAC | windows.WRITE_OWNER |
	windows.GENERIC_WRITE | windows.GENERIC_ALL

func openTrusted(path string) (*os.File, error) {
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("config: %q is not an absolute path", path)
	}
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	believed, err := believedOwners()
	if err != nil {
		return nil, fmt.Errorf("config: cannot find out who runs this: %w", err)
	}
	for _, p := range []string{filepath.Dir(path), filepath.Dir(target), target} {
		if err := checkAccess(p, believed); err != nil {
			return nil, err
		}
	}
	info, err := os.Lstat(target)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("config: %s is not a regular file (%s)", target, info.Mode())
	}
	f, err := os.Open(target)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	return f, nil
}

func openRootOwned(path string) (*os.File, error) { return openTrusted(path) }

// believedOwners are the running user, the administrators, and the system
// itself under its two names.
func believedOwners() ([]*windows.SID, error) {
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return nil, err
	}
	admins, err1 := windows.CreateWellKnownSid(windows.WinBuiltinAdministratorsSid)
	system, err2 := windows.CreateWellKnownSid(windows.WinLocalSystemSid)
	const trustedInstaller = "S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464"
	installer, err3 := windows.StringToSid(trustedInstaller)
	return []*windows.SID{user.User.Sid, admins, system, installer}, errors.Join(err1, err2, err3)
}

// checkAccess refuses a file or folder with an owner, or a list entry that
// permits changes, for anyone but the believed.
func checkAccess(path string, believed []*windows.SID) error {
	sd, err := windows.GetNamedSecurityInfo(path, windows.SE_FILE_OBJECT, windows.OWNER_SECURITY_INFORMATION|windows.DACL_SECURITY_INFORMATION)
	if err != nil {
		return &os.PathError{Op: "read the access list of", Path: path, Err: err}
	}
	owner, _, err := sd.Owner()
	if err != nil {
		return fmt.Errorf("config: the owner of %s cannot be read: %w", path, err)
	}
	if !among(owner, believed) {
		return fmt.Errorf("config: %s belongs to %s, who is neither an administrator nor the running user; run: takeown /f %q", path, owner, path)
	}
	dacl, _, err := sd.DACL()
	if err != nil || dacl == nil {
		return fmt.Errorf("config: %s has no access list, so everyone can change it; run: icacls %q /inheritance:r /grant:r \"%%USERNAME%%:F\"", path, path)
	}
	for i := range uint32(dacl.AceCount) {
		var ace *windows.ACCESS_ALLOWED_ACE
		if err := windows.GetAce(dacl, i, &ace); err != nil {
			return fmt.Errorf("config: the access list of %s cannot be read: %w", path, err)
		}
		switch {
		case ace.Header.AceFlags&windows.INHERIT_ONLY_ACE != 0 || ace.Header.AceType == windows.ACCESS_DENIED_ACE_TYPE:
			continue
		case ace.Header.AceType != windows.ACCESS_ALLOWED_ACE_TYPE:
			return fmt.Errorf("config: the access list of %s has a conditional entry, which cannot be judged; remove it with icacls", path)
		}
		sid := (*windows.SID)(unsafe.Pointer(&ace.SidStart))
		if ace.Mask&canChange != 0 && !among(sid, believed) {
			return fmt.Errorf("config: %s can be changed by %s; run: icacls %q /remove *%s", path, sid, path, sid)
		}
	}
	return nil
}

func among(sid *windows.SID, list []*windows.SID) bool {
	for _, s := range list {
		if sid.Equals(s) {
			return true
		}
	}
	return false
}
