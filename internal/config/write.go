package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// WriteFile puts data into the file at path with exactly the permissions perm,
// whatever the umask. Readers and a crash at any moment see the old or the new
// content, whole; when WriteFile returns nil, the new content is on the disk.
//
// The folder must exist. A symbolic link at path is replaced, not followed.
func WriteFile(path string, data []byte, perm fs.FileMode) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("config: write %s: %w", path, err)
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(perm)
	}
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name()) // what stays behind is not worth a second error
		return fmt.Errorf("config: write %s: %w", path, err)
	}
	if err := syncDir(dir); err != nil {
		return fmt.Errorf("config: write %s: %w", path, err)
	}
	return nil
}
