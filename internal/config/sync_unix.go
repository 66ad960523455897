//go:build unix

package config

import (
	"errors"
	"os"
)

// syncDir makes a rename in dir durable (fsync(2) says why the file's own sync
// is not enough).
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
